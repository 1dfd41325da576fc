package timeline

import (
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Explain returns lines about the state of an object and its reason, for a failed wait. It returns
// none for unknown kinds.
func Explain(object client.Object) []string {
	switch o := object.(type) {
	case *operatorsv1alpha1.CatalogSource:
		return explainCatalog(o)
	case *operatorsv1alpha1.Subscription:
		return explainSubscription(o)
	case *operatorsv1alpha1.InstallPlan:
		return explainPlan(o)
	case *operatorsv1alpha1.ClusterServiceVersion:
		return explainCSV(o)
	case *appsv1.Deployment:
		return explainDeployment(o)
	}
	return nil
}

func explainCatalog(c *operatorsv1alpha1.CatalogSource) []string {
	state := "unknown"
	if c.Status.GRPCConnectionState != nil {
		state = c.Status.GRPCConnectionState.LastObservedState
	}
	lines := []string{fmt.Sprintf("CatalogSource %s/%s at %s: connection %s %s", c.Namespace, c.Name, c.Spec.Address, state,
		because(string(c.Status.Reason), c.Status.Message))}
	for _, c := range c.Status.Conditions {
		lines = append(lines, condition(c.Type, string(c.Status), c.Reason, c.Message))
	}
	return lines
}

func explainSubscription(s *operatorsv1alpha1.Subscription) []string {
	lines := []string{fmt.Sprintf("Subscription %s/%s: state %q, installed %q, current %q",
		s.Namespace, s.Name, s.Status.State, s.Status.InstalledCSV, s.Status.CurrentCSV)}
	for _, c := range s.Status.Conditions {
		lines = append(lines, condition(string(c.Type), string(c.Status), c.Reason, c.Message))
	}
	return lines
}

func explainPlan(p *operatorsv1alpha1.InstallPlan) []string {
	lines := []string{fmt.Sprintf("InstallPlan %s/%s: phase %q, approved %t %s",
		p.Namespace, p.Name, p.Status.Phase, p.Spec.Approved, p.Status.Message)}
	for _, c := range p.Status.Conditions {
		lines = append(lines, condition(string(c.Type), string(c.Status), string(c.Reason), c.Message))
	}
	for _, step := range p.Status.Plan {
		if step != nil && step.Status != operatorsv1alpha1.StepStatusCreated && step.Status != operatorsv1alpha1.StepStatusPresent {
			lines = append(lines, fmt.Sprintf("  step %s %s: %s", step.Resource.Kind, step.Resource.Name, step.Status))
		}
	}
	return lines
}

func explainCSV(c *operatorsv1alpha1.ClusterServiceVersion) []string {
	if c.IsCopied() {
		return nil
	}
	lines := []string{fmt.Sprintf("ClusterServiceVersion %s/%s: phase %q %s", c.Namespace, c.Name, c.Status.Phase,
		because(string(c.Status.Reason), c.Status.Message))}
	for _, r := range c.Status.RequirementStatus {
		if r.Status == operatorsv1alpha1.RequirementStatusReasonPresent {
			continue
		}
		lines = append(lines, condition(r.Kind+" "+r.Name, string(r.Status), "", r.Message))
		for _, d := range r.Dependents {
			if d.Status != operatorsv1alpha1.DependentStatusReasonSatisfied {
				lines = append(lines, "  "+condition(d.Kind, string(d.Status), "", d.Message))
			}
		}
	}
	return lines
}

func explainDeployment(d *appsv1.Deployment) []string {
	lines := []string{fmt.Sprintf("Deployment %s/%s: %s", d.Namespace, d.Name, availability(d))}
	for _, c := range d.Status.Conditions {
		lines = append(lines, condition(string(c.Type), string(c.Status), c.Reason, c.Message))
	}
	return lines
}

// condition formats the four parts of a condition.
func condition(name, status, reason, message string) string {
	line := fmt.Sprintf("  %s=%s", name, status)
	if text := because(reason, message); text != "" {
		line += " " + text
	}
	return line
}
