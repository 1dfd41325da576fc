package discovery

import (
	"errors"
	"strings"
	"testing"
)

func TestGrantNames(t *testing.T) {
	here := widgets()
	here.Namespace = "shop"
	unnamed := widgets()
	unnamed.Resource = ""
	for name, tc := range map[string]struct {
		reason string
		target Target
		why    Reason
		user   string
		want   []string
		not    string
	}{
		"Cluster": {"everywhere is the cluster", widgets(), ReasonMayNotList, "alice", []string{
			"kind: ClusterRole\n", "kind: ClusterRoleBinding\n", "  - example.com\n", "  - widgets\n", "  - list\n", "kind: User\n", "name: alice\n",
		}, "namespace:"},
		"Namespace": {"a namespace is enough", here, ReasonMayNotList, "alice", []string{"kind: Role\n", "kind: RoleBinding\n", "namespace: shop\n"}, "ClusterRole"},
		"Account": {
			"accounts are no users", here, ReasonMayNotList, "system:serviceaccount:ops:robot",
			[]string{"kind: ServiceAccount\n  name: robot\n  namespace: ops\n"},
			"kind: User",
		},
		"Unknown":      {"the administrator puts the name", here, ReasonMayNotList, "", []string{"name: " + placeholder}, "name: \"\""},
		"Discovery":    {"both are missing", here, ReasonMayNotDiscover, "alice", []string{"kind: Role\n", "name: system:discovery\n"}, ""},
		"UnnamedAlone": {"a role needs the name of the resource", unnamed, ReasonMayNotDiscover, "alice", []string{"name: system:discovery\n"}, "kind: ClusterRole\nmetadata"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := missingPermissions(tc.target, tc.why, tc.user)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tc.want {
				if !strings.Contains(got, want) {
					t.Errorf("%s: it lacks %q:\n%s", tc.reason, want, got)
				}
			}
			if tc.not != "" && strings.Contains(got, tc.not) {
				t.Errorf("%s: it has %q:\n%s", tc.reason, tc.not, got)
			}
		})
	}
}

func TestRefusedUser(t *testing.T) {
	for text, want := range map[string]string{
		`widgets.example.com is forbidden: User "alice" cannot list resource "widgets"`: "alice",
		`forbidden: User "al\"ice" cannot get path "/apis/example.com"`:                 `al"ice`,
		`forbidden: User "" cannot`: "",
		`forbidden`:                 "",
	} {
		if got := refusedUser(errors.New(text)); got != want {
			t.Errorf("refusedUser(%q) = %q, want %q", text, got, want)
		}
	}
}
