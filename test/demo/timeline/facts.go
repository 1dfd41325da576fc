package timeline

import (
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor"
)

// Fact is one current fact about an object. Key identifies the fact within the object. A fact is
// new if its line differs from the last one with that key.
type Fact struct {
	Key  string
	Line Line
}

// StepSubject is the subject of lines about the steps of an InstallPlan.
const StepSubject = "  step"

// Facts returns the current facts about an object in display order, without times. It returns none
// for unknown kinds.
func Facts(object client.Object) []Fact {
	switch o := object.(type) {
	case *operatorsv1alpha1.CatalogSource:
		return catalogFacts(o)
	case *operatorsv1alpha1.Subscription:
		return subscriptionFacts(o)
	case *operatorsv1alpha1.InstallPlan:
		return planFacts(o)
	case *operatorsv1alpha1.ClusterServiceVersion:
		return csvFacts(o)
	case *appsv1.Deployment:
		return deploymentFacts(o)
	case *coordinationv1.Lease:
		return leaseFacts(o)
	}
	return nil
}

func catalogFacts(c *operatorsv1alpha1.CatalogSource) []Fact {
	var facts []Fact
	if connection := c.Status.GRPCConnectionState; connection != nil && connection.LastObservedState != "" {
		tone := Busy
		switch connection.LastObservedState {
		case "READY":
			tone = Good
		case "TRANSIENT_FAILURE", "SHUTDOWN":
			tone = Bad
		}
		facts = append(facts, Fact{"connection", Line{
			Subject: "catalog", Name: c.Name, State: connection.LastObservedState, Detail: connection.Address, Tone: tone,
		}})
	}
	if c.Status.Reason != "" {
		facts = append(facts, Fact{"reason", Line{
			Subject: "catalog", Name: c.Name, State: string(c.Status.Reason), Detail: c.Status.Message, Tone: Bad,
		}})
	}
	return facts
}

func subscriptionFacts(s *operatorsv1alpha1.Subscription) []Fact {
	var facts []Fact
	if s.Status.State != "" {
		tone := Busy
		switch s.Status.State {
		case operatorsv1alpha1.SubscriptionStateAtLatest:
			tone = Good
		case operatorsv1alpha1.SubscriptionStateFailed:
			tone = Bad
		}
		facts = append(facts, Fact{"state", Line{
			Subject: "subscription", Name: s.Name, State: string(s.Status.State), Detail: subscriptionDetail(s), Tone: tone,
		}})
	}
	for _, c := range s.Status.Conditions {
		if c.Status != corev1.ConditionTrue || !isTrouble(c.Type) {
			continue
		}
		facts = append(facts, Fact{"condition " + string(c.Type), Line{
			Subject: "subscription", Name: s.Name, State: string(c.Type), Detail: because(c.Reason, c.Message), Tone: Bad,
		}})
	}
	return facts
}

// subscriptionDetail returns the installed and the next version.
func subscriptionDetail(s *operatorsv1alpha1.Subscription) string {
	installed := s.Status.InstalledCSV
	if installed == "" {
		installed = "nothing"
	}
	if s.Status.CurrentCSV == "" || s.Status.CurrentCSV == s.Status.InstalledCSV {
		return installed + " installed"
	}
	return fmt.Sprintf("%s installed, %s to come", installed, s.Status.CurrentCSV)
}

// isTrouble reports whether a condition is true when something is wrong. Other conditions report
// progress, which the InstallPlan's own lines show better.
func isTrouble(t operatorsv1alpha1.SubscriptionConditionType) bool {
	switch t {
	case operatorsv1alpha1.SubscriptionCatalogSourcesUnhealthy, operatorsv1alpha1.SubscriptionInstallPlanMissing,
		operatorsv1alpha1.SubscriptionInstallPlanFailed, operatorsv1alpha1.SubscriptionResolutionFailed,
		operatorsv1alpha1.SubscriptionBundleUnpackFailed:
		return true
	default:
		return false
	}
}

func planFacts(p *operatorsv1alpha1.InstallPlan) []Fact {
	if p.Status.Phase == "" {
		return nil
	}
	phase := Fact{"phase", Line{
		Subject: "plan", Name: p.Name, State: string(p.Status.Phase), Detail: planDetail(p), Tone: planTone(p.Status.Phase),
	}}
	steps := stepFacts(p)
	if p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseComplete && p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseFailed {
		return append([]Fact{phase}, steps...)
	}
	facts := slices.Concat(steps, []Fact{phase}) // the phase comes after the steps
	for _, c := range p.Status.Conditions {
		if c.Status == corev1.ConditionFalse {
			facts = append(facts, Fact{"condition " + string(c.Type), Line{
				Subject: "plan", Name: p.Name, State: fmt.Sprintf("%d of %d", len(steps), len(p.Status.Plan)),
				Detail: because(string(c.Reason), c.Message), Tone: Bad,
			}})
		}
	}
	return facts
}

// stepFacts returns facts about the completed steps of an InstallPlan.
func stepFacts(p *operatorsv1alpha1.InstallPlan) []Fact {
	var facts []Fact
	for i, step := range p.Status.Plan {
		if step == nil || (step.Status != operatorsv1alpha1.StepStatusCreated && step.Status != operatorsv1alpha1.StepStatusPresent) {
			continue
		}
		facts = append(facts, Fact{fmt.Sprintf("step %d", i), Line{
			Subject: StepSubject, Name: fmt.Sprintf("%d of %d", i+1, len(p.Status.Plan)), State: string(step.Status),
			Detail: step.Resource.Kind + " " + step.Resource.Name,
		}})
	}
	return facts
}

func planDetail(p *operatorsv1alpha1.InstallPlan) string {
	detail := "for " + strings.Join(p.Spec.ClusterServiceVersionNames, ", ")
	if p.Spec.Approval == operatorsv1alpha1.ApprovalManual && !p.Spec.Approved {
		detail += ", waiting for approval"
	}
	return detail
}

func planTone(phase operatorsv1alpha1.InstallPlanPhase) Tone {
	switch phase {
	case operatorsv1alpha1.InstallPlanPhaseComplete:
		return Good
	case operatorsv1alpha1.InstallPlanPhaseFailed:
		return Bad
	default:
		return Busy
	}
}

func csvFacts(c *operatorsv1alpha1.ClusterServiceVersion) []Fact {
	if c.IsCopied() || c.Status.Phase == "" {
		return nil
	}
	tone := Busy
	switch c.Status.Phase {
	case operatorsv1alpha1.CSVPhaseSucceeded:
		tone = Good
	case operatorsv1alpha1.CSVPhaseFailed:
		tone = Bad
	default:
	}
	return []Fact{{"phase", Line{
		Subject: "csv", Name: c.Name, State: string(c.Status.Phase),
		Detail: because(string(c.Status.Reason), c.Status.Message), Tone: tone,
	}}}
}

func deploymentFacts(d *appsv1.Deployment) []Fact {
	line := Line{
		Subject: "deployment", Name: d.Name, State: "waiting", Tone: Busy,
		Detail: availability(d),
	}
	if Available(d) {
		line.State, line.Tone = "available", Good
	}
	return []Fact{{"available", line}}
}

// availability describes the replicas of a Deployment. During an update, it has more than it wants.
func availability(d *appsv1.Deployment) string {
	text := fmt.Sprintf("%d of %d available", min(d.Status.AvailableReplicas, wanted(d)), wanted(d))
	if surplus := d.Status.Replicas - wanted(d); surplus > 0 {
		text += fmt.Sprintf(", %d more during the update", surplus)
	}
	return text
}

// Available reports whether all replicas of the Deployment are up to date and available, and no old ones remain.
func Available(d *appsv1.Deployment) bool {
	want := wanted(d)
	return d.Status.ObservedGeneration >= d.Generation && d.Status.UpdatedReplicas >= want &&
		d.Status.Replicas <= d.Status.UpdatedReplicas && d.Status.AvailableReplicas >= want
}

// wanted returns the desired number of replicas.
func wanted(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1 // the API's default
	}
	return *d.Spec.Replicas
}

func leaseFacts(l *coordinationv1.Lease) []Fact {
	line := Line{Subject: "leader", Name: l.Name, State: "no leader", Detail: "the lease was released", Tone: Busy}
	if holder := Holder(l); holder != "" {
		line.State, line.Tone, line.Detail = holder, Good, "leads"
	}
	return []Fact{{"holder", line}}
}

// Holder returns the name of the process that holds the Lease; empty for none.
func Holder(l *coordinationv1.Lease) string {
	if l.Spec.HolderIdentity == nil {
		return ""
	}
	return supervisor.IdentityOf(*l.Spec.HolderIdentity)
}

// because joins a reason and a message. Either may be empty.
func because(reason, message string) string {
	if reason == "" || message == "" {
		return reason + message
	}
	return reason + ": " + message
}
