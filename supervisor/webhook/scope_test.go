package webhook

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	anyScope       = admissionregistrationv1.AllScopes
	namespacedOnly = admissionregistrationv1.NamespacedScope
	clusterOnly    = admissionregistrationv1.ClusterScope
)

// ruleFor returns a rule for creations of some resources, without a scope if it is empty.
func ruleFor(scope admissionregistrationv1.ScopeType, groups []string, resources ...string) admissionregistrationv1.RuleWithOperations {
	rule := admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: groups, APIVersions: []string{"v1"}, Resources: resources},
	}
	if scope != "" {
		rule.Scope = &scope
	}
	return rule
}

func TestRestrictRules(t *testing.T) {
	core, tea, mixed := []string{""}, []string{"tea.example.com"}, []string{"", "tea.example.com"}
	pots := []schema.GroupResource{{Group: "tea.example.com", Resource: "pots"}}
	cases := map[string]struct {
		reason string
		scope  Scope
		rule   admissionregistrationv1.RuleWithOperations
		want   []admissionregistrationv1.RuleWithOperations
	}{
		"AllNamespaces": {
			"a group for all namespaces bounds no rule",
			Scope{AllNamespaces: true},
			ruleFor(anyScope, core, "*/*"),
			[]admissionregistrationv1.RuleWithOperations{ruleFor(anyScope, core, "*/*")},
		},
		"AllNamespacesAccount": {
			"one that names an account bounds rules by scope, as any other",
			Scope{AllNamespaces: true, Account: "weak", ClusterScoped: pots},
			ruleFor(anyScope, mixed, "*/*"),
			[]admissionregistrationv1.RuleWithOperations{ruleFor(namespacedOnly, mixed, "*/*"), ruleFor(clusterOnly, tea, "pots", "pots/*")},
		},
		"Named":    {"what is named may be in no namespace", Scope{}, ruleFor("", tea, "cups"), []admissionregistrationv1.RuleWithOperations{ruleFor(namespacedOnly, tea, "cups")}},
		"Wildcard": {"and so may be what a wildcard stands for", Scope{}, ruleFor("", core, "*"), []admissionregistrationv1.RuleWithOperations{ruleFor(namespacedOnly, core, "*")}},
		"Everything": {
			"subresources included",
			Scope{},
			ruleFor(anyScope, core, "*/*"),
			[]admissionregistrationv1.RuleWithOperations{ruleFor(namespacedOnly, core, "*/*")},
		},
		"Namespaced":     {"a rule for namespaced objects stays", Scope{ClusterScoped: pots}, ruleFor(namespacedOnly, tea, "*"), []admissionregistrationv1.RuleWithOperations{ruleFor(namespacedOnly, tea, "*")}},
		"Cluster":        {"a rule for others has nothing left", Scope{}, ruleFor(clusterOnly, tea, "*"), nil},
		"ClusterForeign": {"unless they are the operator's", Scope{ClusterScoped: pots}, ruleFor(clusterOnly, tea, "cans"), nil},
		"ClusterOwn": {
			"then they stay",
			Scope{ClusterScoped: pots},
			ruleFor(clusterOnly, tea, "pots", "pots/status", "cans"),
			[]admissionregistrationv1.RuleWithOperations{ruleFor(clusterOnly, tea, "pots", "pots/status")},
		},
		"OwnAmongAll": {
			"and a wildcard stands for them too",
			Scope{ClusterScoped: pots},
			ruleFor("", mixed, "*"),
			[]admissionregistrationv1.RuleWithOperations{ruleFor(namespacedOnly, mixed, "*"), ruleFor(clusterOnly, tea, "pots")},
		},
		"OwnAmongEverything": {
			"with subresources",
			Scope{ClusterScoped: pots},
			ruleFor(anyScope, mixed, "*/*"),
			[]admissionregistrationv1.RuleWithOperations{ruleFor(namespacedOnly, mixed, "*/*"), ruleFor(clusterOnly, tea, "pots", "pots/*")},
		},
		"OwnSubresource": {
			"or with one",
			Scope{ClusterScoped: pots},
			ruleFor(anyScope, tea, "*/scale"),
			[]admissionregistrationv1.RuleWithOperations{ruleFor(namespacedOnly, tea, "*/scale"), ruleFor(clusterOnly, tea, "pots/scale")},
		},
		"OtherGroup": {
			"a resource of that name in another group is another",
			Scope{ClusterScoped: pots},
			ruleFor(anyScope, core, "pots"),
			[]admissionregistrationv1.RuleWithOperations{ruleFor(namespacedOnly, core, "pots")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := tc.rule.DeepCopy()
			got := tc.scope.rules([]admissionregistrationv1.RuleWithOperations{tc.rule})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nrules(...): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before, &tc.rule); diff != "" {
				t.Errorf("the rule of the version was changed:\n%s", diff)
			}
		})
	}
}

func TestRestrictExcludesSupervisor(t *testing.T) {
	spared := metav1.LabelSelectorRequirement{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"chandlery-system"}}
	team := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	cases := map[string]struct {
		reason   string
		scope    Scope
		selector *metav1.LabelSelector
		want     *metav1.LabelSelector
	}{
		"All":     {"of all namespaces", Scope{AllNamespaces: true, Excluded: "chandlery-system"}, nil, &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{spared}}},
		"Some":    {"and of those of a group", Scope{Excluded: "chandlery-system"}, team, &metav1.LabelSelector{MatchLabels: team.MatchLabels, MatchExpressions: []metav1.LabelSelectorRequirement{spared}}},
		"Outside": {"one outside the cluster has none", Scope{}, team, team},
		"Nowhere": {"and a missing selector stays missing", Scope{AllNamespaces: true}, nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := tc.scope.Restrict(Objects{
				Validating: []*admissionregistrationv1.ValidatingWebhookConfiguration{{Webhooks: []admissionregistrationv1.ValidatingWebhook{{NamespaceSelector: tc.selector, Rules: []admissionregistrationv1.RuleWithOperations{ruleFor("", []string{""}, "*")}}}}},
				Mutating:   []*admissionregistrationv1.MutatingWebhookConfiguration{{Webhooks: []admissionregistrationv1.MutatingWebhook{{NamespaceSelector: tc.selector, Rules: []admissionregistrationv1.RuleWithOperations{ruleFor("", []string{""}, "*")}}}}},
			})
			validating, mutating := objects.Validating[0].Webhooks[0], objects.Mutating[0].Webhooks[0]
			for kind, got := range map[string]*metav1.LabelSelector{"validating": validating.NamespaceSelector, "mutating": mutating.NamespaceSelector} {
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s\n%s: -want, +got:\n%s", tc.reason, kind, diff)
				}
			}
			if bounded := validating.Rules[0].Scope != nil && mutating.Rules[0].Scope != nil; bounded == tc.scope.AllNamespaces {
				t.Errorf("the rules are bounded: %t", bounded)
			}
			if len(team.MatchExpressions) > 0 {
				t.Error("the selector of the group was changed")
			}
		})
	}
}

func TestRefusesWebhooksForOthers(t *testing.T) {
	cases := map[string]struct {
		reason string
		scope  Scope
		rule   admissionregistrationv1.RuleWithOperations
		want   string
	}{
		"Namespaced":    {"namespaced kinds are bounded by the selector", Scope{Group: "own"}, ruleFor("", []string{"", "apps"}, "pods", "deployments/scale"), ""},
		"Wildcard":      {"wildcards by the scope", Scope{Group: "own"}, ruleFor("", []string{"", "rbac.authorization.k8s.io"}, "*/*"), ""},
		"Roles":         {"cluster-scoped kinds of Kubernetes are not for a bounded group", Scope{Group: "own"}, ruleFor("", []string{"rbac.authorization.k8s.io"}, "roles", "clusterroles"), "clusterroles.rbac.authorization.k8s.io"},
		"RolesAll":      {"but for one that targets all", Scope{AllNamespaces: true}, ruleFor("", []string{"rbac.authorization.k8s.io"}, "clusterroles"), ""},
		"RolesAccount":  {"unless it names an account", Scope{Group: "own", AllNamespaces: true, Account: "weak"}, ruleFor("", []string{"rbac.authorization.k8s.io"}, "clusterroles"), "clusterroles.rbac.authorization.k8s.io"},
		"Subresource":   {"nor are their subresources", Scope{Group: "own"}, ruleFor("", []string{""}, "namespaces/finalize"), "namespaces"},
		"AnyGroup":      {"in any of the groups", Scope{Group: "own"}, ruleFor(namespacedOnly, []string{"apps", ""}, "nodes"), "nodes"},
		"Definitions":   {"definitions least of all", Scope{Group: "own"}, ruleFor("", []string{"apiextensions.k8s.io"}, "customresourcedefinitions"), "customresourcedefinitions.apiextensions.k8s.io"},
		"Claimed":       {"a kind that the version owns may be brought later", Scope{Group: "own"}, ruleFor(clusterOnly, []string{"example.com"}, "etcds"), ""},
		"Foreign":       {"one that it does not own never is", Scope{Group: "own"}, ruleFor(clusterOnly, []string{"example.com"}, "pots"), "pots.example.com"},
		"ForeignScoped": {"if it may be namespaced, its scope bounds it", Scope{Group: "own"}, ruleFor("", []string{"example.com"}, "pots"), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			csv := fixture()
			csv.Spec.WebhookDefinitions[1].Rules = append(csv.Spec.WebhookDefinitions[1].Rules, tc.rule)
			want := ""
			if tc.want != "" {
				want = "spec.webhookdefinitions[1].rules[1].resources: webhook rules cannot include the cluster-scoped " + tc.want +
					", as OperatorGroup own does not target all namespaces; leave it out, or install the operator for all namespaces"
			}
			if tc.want != "" && tc.scope.Account != "" {
				want = "spec.webhookdefinitions[1].rules[1].resources: webhook rules cannot include the cluster-scoped " + tc.want +
					", as OperatorGroup own names ServiceAccount weak; leave it out, or install the operator for all namespaces without spec.serviceAccountName"
			}
			got := ""
			if err := tc.scope.Validate(csv); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\nRefusal(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRefusesWebhooksForLeases(t *testing.T) {
	for resource, refused := range map[string]bool{
		"leases": true, "leases/status": true, "*": true, "*/*": true, "*/status": true, "leasecandidates": false,
	} {
		csv := fixture()
		csv.Spec.WebhookDefinitions[0].Rules = []admissionregistrationv1.RuleWithOperations{ruleFor("", []string{"apps", "coordination.k8s.io"}, resource)}
		_, err := Servers(csv)
		if (err != nil) != refused {
			t.Errorf("%s: error %v, want one: %t", resource, err, refused)
		}
		invalid := &InvalidError{}
		if refused && (!errors.As(err, &invalid) || invalid.Reason != operatorsv1alpha1.CSVReasonInvalidWebhookDescription) {
			t.Errorf("%s: reason %s", resource, invalid.Reason)
		}
	}
}
