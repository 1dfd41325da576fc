package suite_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

// TestEveryRuleIsReviewed compares the rules with the tables of docs/security.md.
func TestEveryRuleIsReviewed(t *testing.T) {
	all := everything(t)
	documented := tables(t, "../../docs/security.md")
	var want []string
	for _, row := range documented {
		want = append(want, row...)
	}
	var got []string
	for key, u := range all {
		switch u.GetKind() {
		case "ClusterRole":
			got = append(got, flatten(u.GetName(), as[rbacv1.ClusterRole](t, all, key).Rules)...)
		case "Role":
			got = append(got, flatten(u.GetNamespace()+"/"+u.GetName(), as[rbacv1.Role](t, all, key).Rules)...)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules (-in docs/security.md +in deploy/rbac):\n%s", diff)
	}
	if len(got) < 50 {
		t.Errorf("only %d rights were found", len(got))
	}
}

// TestRulesHaveNoWildcard checks that no rule has a wildcard, which would make the list of rules worthless.
func TestRulesHaveNoWildcard(t *testing.T) {
	all := everything(t)
	for key, u := range all {
		if !strings.HasSuffix(u.GetKind(), "Role") {
			continue
		}
		for _, rule := range as[rbacv1.ClusterRole](t, all, key).Rules {
			// Users and groups cannot be impersonated: the supervisor impersonates only
			// ServiceAccounts that an OperatorGroup names.
			if slices.Contains(rule.Verbs, "impersonate") && !slices.Equal(rule.Resources, []string{"serviceaccounts"}) {
				t.Errorf("%s: %v", key, rule)
			}
			for _, names := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs} {
				if slices.ContainsFunc(names, func(s string) bool { return strings.Contains(s, "*") }) {
					t.Errorf("%s: %v", key, rule)
				}
			}
		}
	}
	for key, u := range all {
		if !strings.HasSuffix(u.GetKind(), "RoleBinding") {
			continue
		}
		binding := as[rbacv1.ClusterRoleBinding](t, all, key)
		if binding.RoleRef.Name != "chandlery-supervisor" || len(binding.Subjects) != 1 || binding.Subjects[0].Name != "chandlery-supervisor" {
			t.Errorf("%s binds %s to %v", key, binding.RoleRef.Name, binding.Subjects)
		}
	}
}

// flatten returns one line for each permission.
func flatten(role string, rules []rbacv1.PolicyRule) []string {
	var lines []string
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					lines = append(lines, right(role, group, resource, strings.Join(rule.ResourceNames, " "), verb))
				}
			}
		}
	}
	return lines
}

func right(role, group, resource, names, verb string) string {
	if group == "core" {
		group = ""
	}
	return strings.TrimSpace(fmt.Sprintf("%s may %s %s in %q %s", role, verb, resource, group, names))
}

// tables returns the permissions in each table of a document that has a column "Verbs". A table
// without a column for the role belongs to the supervisor.
func tables(t *testing.T, file string) [][]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var (
		found  [][]string
		header []string
	)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			header = nil
			continue
		}
		cells := split(strings.Trim(line, "|"), "|")
		switch {
		case header == nil:
			header = cells
		case slices.Contains(header, "Verbs") && !strings.HasPrefix(cells[0], "---"):
			found = append(found, row(header, cells))
		}
	}
	return found
}

func row(header, cells []string) []string {
	cell := func(name string) string {
		if i := slices.Index(header, name); i >= 0 && i < len(cells) {
			return cells[i]
		}
		return ""
	}
	role := cell("Role")
	if role == "" {
		role = "chandlery-supervisor"
	}
	var lines []string
	for _, group := range split(cell("API group"), ",") {
		for _, resource := range split(cell("Resources"), ",") {
			for _, verb := range split(verbs.Replace(cell("Verbs")), ",") {
				lines = append(lines, right(role, group, resource, cell("Names"), verb))
			}
		}
	}
	return lines
}

// verbs replaces the document's names for several verbs.
var verbs = strings.NewReplacer("read", "get, list, watch", "write", "create, update, patch, delete")

func split(text, separator string) []string {
	parts := strings.Split(text, separator)
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

// TestRightsOfUsers pins the permissions that the roles grant to users of a namespace. A tenant who
// could write another kind, or any status, could install what no catalog offers.
func TestRightsOfUsers(t *testing.T) {
	all := everything(t)
	for role, want := range map[string][]string{
		"view": nil,
		"edit": {
			`edit may create subscriptions in "operators.coreos.com"`,
			`edit may delete catalogsources in "operators.coreos.com"`,
			`edit may delete clusterserviceversions in "operators.coreos.com"`,
			`edit may delete installplans in "operators.coreos.com"`,
			`edit may delete subscriptions in "operators.coreos.com"`,
			`edit may patch subscriptions in "operators.coreos.com"`,
			`edit may update subscriptions in "operators.coreos.com"`,
		},
	} {
		t.Run(role, func(t *testing.T) {
			reads := 0
			var got []string
			for key, u := range all {
				if u.GetKind() != "ClusterRole" || u.GetLabels()["rbac.authorization.k8s.io/aggregate-to-"+role] != "true" {
					continue
				}
				for _, rule := range as[rbacv1.ClusterRole](t, all, key).Rules {
					all := len(rule.Verbs)
					rule.Verbs = slices.DeleteFunc(rule.Verbs, func(verb string) bool {
						return slices.Contains([]string{"get", "list", "watch"}, verb)
					})
					reads += all - len(rule.Verbs)
					got = append(got, flatten(role, []rbacv1.PolicyRule{rule})...)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("rights to write (-want +got):\n%s", diff)
			}
			if reads == 0 {
				t.Error("no right to read was found")
			}
		})
	}
}
