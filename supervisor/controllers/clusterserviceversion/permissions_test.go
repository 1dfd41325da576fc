package clusterserviceversion

import (
	"slices"
	"strconv"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// TestRulesWithManyCombinations has rules that stand for many permissions. Their comparison must not exhaust the memory.
func TestRulesWithManyCombinations(t *testing.T) {
	t.Parallel()
	rule := func(n int) rbacv1.PolicyRule {
		var names []string
		for i := range n {
			names = append(names, "n"+strconv.Itoa(i))
		}
		return rbacv1.PolicyRule{APIGroups: names, Resources: names, Verbs: names, ResourceNames: names}
	}
	all := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}
	const satisfied, not = operatorsv1alpha1.DependentStatusReasonSatisfied, operatorsv1alpha1.DependentStatusReasonNotSatisfied
	for name, tt := range map[string]struct {
		asked, granted []rbacv1.PolicyRule
		want           operatorsv1alpha1.StatusReason
	}{
		"Few":         {[]rbacv1.PolicyRule{rule(10)}, []rbacv1.PolicyRule{all}, satisfied},
		"Many":        {[]rbacv1.PolicyRule{rule(30)}, []rbacv1.PolicyRule{all}, not},
		"Overflow":    {[]rbacv1.PolicyRule{rule(100_000)}, []rbacv1.PolicyRule{all}, not},
		"Literal":     {[]rbacv1.PolicyRule{rule(30)}, []rbacv1.PolicyRule{all, rule(30)}, satisfied},
		"Comparisons": {[]rbacv1.PolicyRule{rule(10), rule(11), rule(12), rule(13)}, append(slices.Repeat([]rbacv1.PolicyRule{{}}, 100), all), not},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := ruleStatuses("", tt.asked, tt.granted)
			if got := found[len(found)-1].Status; got != tt.want {
				t.Errorf("the last rule is %s, want %s", got, tt.want)
			}
		})
	}
}
