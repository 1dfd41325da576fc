package webhook

import (
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Scope bounds the objects for which the API server calls the admission webhooks of a version. A namespace
// selector does not bound calls for cluster-scoped objects: the scope of a rule does.
type Scope struct {
	// Group is the name of the OperatorGroup.
	Group string
	// AllNamespaces is true if the OperatorGroup targets all namespaces.
	AllNamespaces bool
	// Account is the name of the ServiceAccount that the OperatorGroup names; empty for none.
	Account string
	// ClusterScoped are the cluster-scoped resources whose definitions an install plan of the
	// version created or adopted.
	ClusterScoped []schema.GroupResource
	// Excluded is the namespace of the supervisor, for whose objects no webhook is called. It is empty if the
	// supervisor runs outside the cluster.
	Excluded string
}

// Unbounded reports whether the OperatorGroup bounds no rule: it targets all namespaces and names no
// ServiceAccount.
func (s Scope) Unbounded() bool { return s.AllNamespaces && s.Account == "" }

// boundReason returns why the OperatorGroup bounds rules, and the remedy.
func (s Scope) boundReason() (why, remedy string) {
	if s.AllNamespaces {
		return fmt.Sprintf("OperatorGroup %s names ServiceAccount %s", s.Group, s.Account),
			"leave it out, or install the operator for all namespaces without spec.serviceAccountName"
	}
	return fmt.Sprintf("OperatorGroup %s does not target all namespaces", s.Group), "leave it out, or install the operator for all namespaces"
}

// Validate returns an error about webhooks of a version that exceed a bounded group; nil if there are none. It
// does not depend on definitions, which may be created later.
func (s Scope) Validate(csv *operatorsv1alpha1.ClusterServiceVersion) error {
	if s.Unbounded() {
		return nil
	}
	for i := range csv.Spec.WebhookDefinitions {
		d := &csv.Spec.WebhookDefinitions[i]
		for j := range d.Rules {
			resource, refused := refusedResource(csv, &d.Rules[j])
			if !refused {
				continue
			}
			why, remedy := s.boundReason()
			return &InvalidError{
				Reason:  operatorsv1alpha1.CSVReasonInvalidWebhookDescription,
				Field:   fmt.Sprintf("spec.webhookdefinitions[%d].rules[%d].resources", i, j),
				Problem: fmt.Sprintf("webhook rules cannot include the cluster-scoped %s, as %s", resource, why),
				Remedy:  remedy,
			}
		}
	}
	return nil
}

// refusedResource returns the first resource of a rule that a bounded group refuses: a cluster-scoped one of
// Kubernetes itself, or one in a rule with the scope Cluster whose definition csv does not own.
func refusedResource(csv *operatorsv1alpha1.ClusterServiceVersion, rule *admissionregistrationv1.RuleWithOperations) (schema.GroupResource, bool) {
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			name, _, _ := strings.Cut(resource, "/")
			gr := schema.GroupResource{Group: group, Resource: name}
			switch {
			case name == "*":
			case isClusterScoped(gr), scopeOf(rule) == admissionregistrationv1.ClusterScope && !csv.OwnsCRD(gr.String()):
				return gr, true
			}
		}
	}
	return schema.GroupResource{}, false
}

// scopeOf returns the scope of a rule, with the default of the API.
func scopeOf(rule *admissionregistrationv1.RuleWithOperations) admissionregistrationv1.ScopeType {
	if rule.Scope == nil {
		return admissionregistrationv1.AllScopes
	}
	return *rule.Scope
}

// Restrict returns objects whose webhooks are called only within the scope.
func (s Scope) Restrict(o Objects) Objects {
	validating := make([]*admissionregistrationv1.ValidatingWebhookConfiguration, 0, len(o.Validating))
	for _, c := range o.Validating {
		c = c.DeepCopy()
		for i := range c.Webhooks {
			c.Webhooks[i].Rules = s.rules(c.Webhooks[i].Rules)
			c.Webhooks[i].NamespaceSelector = s.namespaces(c.Webhooks[i].NamespaceSelector)
		}
		validating = append(validating, c)
	}
	mutating := make([]*admissionregistrationv1.MutatingWebhookConfiguration, 0, len(o.Mutating))
	for _, c := range o.Mutating {
		c = c.DeepCopy()
		for i := range c.Webhooks {
			c.Webhooks[i].Rules = s.rules(c.Webhooks[i].Rules)
			c.Webhooks[i].NamespaceSelector = s.namespaces(c.Webhooks[i].NamespaceSelector)
		}
		mutating = append(mutating, c)
	}
	o.Validating, o.Mutating = validating, mutating
	return o
}

// namespaces returns a selector that excludes the namespace of the supervisor.
func (s Scope) namespaces(selector *metav1.LabelSelector) *metav1.LabelSelector {
	if s.Excluded == "" {
		return selector
	}
	out := &metav1.LabelSelector{}
	if selector != nil {
		out = selector.DeepCopy()
	}
	out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{s.Excluded},
	})
	return out
}

// rules returns rules that match namespaced objects, and cluster-scoped ones only of the kinds within the
// scope.
func (s Scope) rules(list []admissionregistrationv1.RuleWithOperations) []admissionregistrationv1.RuleWithOperations {
	if s.Unbounded() {
		return list
	}
	var out []admissionregistrationv1.RuleWithOperations
	for i := range list {
		rule := &list[i]
		scope := scopeOf(rule)
		if scope != admissionregistrationv1.ClusterScope {
			out = append(out, scoped(rule, admissionregistrationv1.NamespacedScope))
		}
		if scope == admissionregistrationv1.NamespacedScope {
			continue
		}
		for _, own := range s.ClusterScoped {
			if resources := matching(rule, own); len(resources) > 0 {
				restricted := scoped(rule, admissionregistrationv1.ClusterScope)
				restricted.APIGroups, restricted.Resources = []string{own.Group}, resources
				out = append(out, restricted)
			}
		}
	}
	return out
}

func scoped(rule *admissionregistrationv1.RuleWithOperations, scope admissionregistrationv1.ScopeType) admissionregistrationv1.RuleWithOperations {
	out := *rule.DeepCopy()
	out.Scope = &scope
	return out
}

// matching returns the resources of a rule that match one resource, without wildcards for resources.
func matching(rule *admissionregistrationv1.RuleWithOperations, own schema.GroupResource) []string {
	if !slices.Contains(rule.APIGroups, own.Group) {
		return nil
	}
	var out []string
	for _, resource := range rule.Resources {
		name, sub, isSub := strings.Cut(resource, "/")
		switch {
		case name != "*" && name != own.Resource:
		case resource == "*/*":
			out = append(out, own.Resource, own.Resource+"/*")
		case isSub:
			out = append(out, own.Resource+"/"+sub)
		default:
			out = append(out, own.Resource)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// isClusterScoped reports whether a resource of Kubernetes itself is cluster-scoped. For other groups only the
// definitions show the scope, so rules for them are narrowed.
func isClusterScoped(gr schema.GroupResource) bool {
	return slices.Contains(clusterScoped[gr.Group], gr.Resource)
}

// clusterScoped are the cluster-scoped resources of Kubernetes itself, by group.
var clusterScoped = map[string][]string{
	"": {"componentstatuses", "namespaces", "nodes", "persistentvolumes"},
	"admissionregistration.k8s.io": {
		"mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "validatingadmissionpolicies", "validatingadmissionpolicybindings",
	},
	"apiextensions.k8s.io":         {"customresourcedefinitions"},
	"apiregistration.k8s.io":       {"apiservices"},
	"authentication.k8s.io":        {"selfsubjectreviews", "tokenreviews"},
	"authorization.k8s.io":         {"selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews"},
	"certificates.k8s.io":          {"certificatesigningrequests", "clustertrustbundles"},
	"flowcontrol.apiserver.k8s.io": {"flowschemas", "prioritylevelconfigurations"},
	"internal.apiserver.k8s.io":    {"storageversions"},
	"networking.k8s.io":            {"ingressclasses", "ipaddresses", "servicecidrs"},
	"node.k8s.io":                  {"runtimeclasses"},
	"rbac.authorization.k8s.io":    {"clusterrolebindings", "clusterroles"},
	"resource.k8s.io":              {"deviceclasses", "devicetaintrules", "resourceslices"},
	"scheduling.k8s.io":            {"priorityclasses"},
	"storage.k8s.io":               {"csidrivers", "csinodes", "storageclasses", "volumeattachments", "volumeattributesclasses"},
	"storagemigration.k8s.io":      {"storageversionmigrations"},
}
