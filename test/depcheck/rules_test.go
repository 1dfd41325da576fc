package depcheck_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/test/depcheck"
	"github.com/chandlery/chandlery/test/golist"
)

// TestDirectionOfDependencies is the check itself, on the module as it stands.
func TestDirectionOfDependencies(t *testing.T) {
	t.Parallel()
	packages, err := golist.Load(t.Context(), "../..", "./...")
	if err != nil {
		t.Fatalf("listing the packages of the module: %v", err)
	}
	rules := slices.Concat(depcheck.Rules(), depcheck.ControllerRules())
	for _, violation := range depcheck.Violations(packages, rules) {
		t.Error(violation)
	}
}

func TestViolations(t *testing.T) {
	t.Parallel()
	const module = depcheck.Module
	cases := map[string]struct {
		reason string
		path   string
		dep    string
		broken bool
	}{
		"Inwards":            {"server may use bundles", "server/registry", module + "/bundles/index", false},
		"Outwards":           {"bundles may not use server", "bundles/index", module + "/server", true},
		"SameLayer":          {"a layer may use itself", "bundles/index", module + "/bundles", false},
		"Siblings":           {"server may not use supervisor", "server", module + "/supervisor/plan", true},
		"SupervisorToServer": {"supervisor may not use server", "supervisor/catalogs", module + "/server", true},
		"Shared":             {"both may use what they share", "server", module + "/internal/connlimit", false},
		"SharedOutwards":     {"what they share may use neither", "internal/connlimit", module + "/server", true},
		"Controllers":        {"controllers may not use each other", "supervisor/subscription", module + "/supervisor/installplan", true},
		"OwnPackages":        {"a controller may use its own folder", "supervisor/subscription", module + "/supervisor/subscription/ledger", false},
		"PureNeighbour":      {"a controller may use a pure package", "supervisor/subscription", module + "/supervisor/resolver", false},
		"SimilarName":        {"a prefix of a name is not a folder", "supervisor/operatorgroup", module + "/supervisor/operatorgroups", false},
		"ForeignModule":      {"the registry links no Kubernetes client", "cmd/registry", "k8s.io/client-go/rest", true},
		"Oracle":             {"the oracle is never linked", "test/oracle", "github.com/operator-framework/operator-registry/pkg/api", true},
		"API":                {"the API types are used", "supervisor/plan", "github.com/operator-framework/api/pkg/operators/v1alpha1", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			packages := []golist.Package{{ImportPath: module + "/" + tc.path, Deps: []string{"fmt", tc.dep}}}
			rules := slices.Concat(depcheck.Rules(), depcheck.ControllerRules())
			got := len(depcheck.Violations(packages, rules)) > 0
			if diff := cmp.Diff(tc.broken, got); diff != "" {
				t.Errorf("%s: -want broken +got:\n%s", tc.reason, diff)
			}
		})
	}
}
