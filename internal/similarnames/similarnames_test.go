package similarnames

import (
	"slices"
	"testing"
)

func TestOf(t *testing.T) {
	t.Parallel()
	names := []string{"manager", "proxy", "Manage", "kube-rbac-proxy"}
	for name, want := range map[string][]string{
		"":        nil,
		"manger":  {"manager", "Manage"},
		"MANAGER": {"manager", "Manage"},
		"proxi":   {"proxy"},
		"rbac":    {"kube-rbac-proxy"},
		"unknown": nil,
	} {
		if got := Of(name, names); !slices.Equal(got, want) {
			t.Errorf("Of(%q) = %q, want %q", name, got, want)
		}
	}
}
