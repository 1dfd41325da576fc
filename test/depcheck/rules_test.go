package depcheck_test

import (
	"path"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/test/depcheck"
	"github.com/chandlery/chandlery/test/golist"
)

// TestDirectionOfDependencies checks the current module.
func TestDirectionOfDependencies(t *testing.T) {
	t.Parallel()
	packages, err := golist.Load(t.Context(), "../..", "./...")
	if err != nil {
		t.Fatalf("listing the packages of the module: %v", err)
	}
	source, err := depcheck.Parse("../..", product()...)
	if err != nil {
		t.Fatal(err)
	}
	var controllers []string
	for _, folder := range source.Controllers() {
		if _, is := depcheck.ControllersElsewhere()[folder]; is {
			continue
		}
		if path.Dir(folder) != "supervisor/controllers" {
			t.Errorf("%s sets up a controller: move it to supervisor/controllers", folder)
		}
		controllers = append(controllers, folder)
	}
	if len(controllers) < 9 {
		t.Errorf("%d controllers were found, want at least 9", len(controllers))
	}
	rules := slices.Concat(depcheck.Rules(), depcheck.ControllerRules(controllers))
	for _, violation := range depcheck.Violations(packages, rules) {
		t.Error(violation)
	}
}

// TestTwoContracts covers the rule that depends on two packages at a time.
func TestTwoContracts(t *testing.T) {
	t.Parallel()
	const (
		module = depcheck.Module
		other  = "github.com/operator-framework/operator-registry/pkg/api"
	)
	cases := map[string]struct {
		reason string
		path   string
		deps   []string
		broken bool
	}{
		"Both":      {"a program that links both panics", "cmd/registry", []string{module + "/proto/api", other}, true},
		"Ours":      {"our own contract alone is linked", "cmd/registry", []string{module + "/proto/api"}, false},
		"Theirs":    {"authoring links theirs alone", "cmd/catalog", []string{other}, false},
		"Itself":    {"our contract must not depend on theirs", "proto/api", []string{other}, true},
		"Extension": {"the extension alone registers another package", "cmd/other", []string{module + "/proto/chandlery/registry/v1", other}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			packages := []golist.Package{{ImportPath: module + "/" + tc.path, Deps: tc.deps}}
			got := len(depcheck.Violations(packages, depcheck.Rules())) > 0
			if diff := cmp.Diff(tc.broken, got); diff != "" {
				t.Errorf("%s: -want broken +got:\n%s", tc.reason, diff)
			}
		})
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
		"Siblings":           {"server may not use supervisor", "server", module + "/supervisor/plansteps", true},
		"SupervisorToServer": {"supervisor may not use server", "supervisor/catalogs", module + "/server", true},
		"Shared":             {"both may use what they share", "server", module + "/internal/connlimit", false},
		"SharedOutwards":     {"what they share may use neither", "internal/connlimit", module + "/server", true},
		"Controllers":        {"controllers may not use each other", "supervisor/controllers/subscription", module + "/supervisor/controllers/installplan", true},
		"OwnPackages":        {"a controller may use its own folder", "supervisor/controllers/subscription", module + "/supervisor/controllers/subscription/transitions", false},
		"PureNeighbour":      {"a controller may use a pure package", "supervisor/controllers/subscription", module + "/supervisor/resolution", false},
		"SimilarName":        {"a prefix of a name is not a folder", "supervisor/controllers/operatorgroup", module + "/supervisor/controllers/operatorgroups", false},
		"PureClient":         {"resolution talks to nobody", "supervisor/resolution/constraint", "k8s.io/client-go/dynamic", true},
		"PureTypes":          {"what operator-registry links are types", "supervisor/resolution/constraint", "k8s.io/apimachinery/pkg/apis/meta/v1", false},
		"ForeignModule":      {"the registry links no Kubernetes client", "cmd/registry", "k8s.io/client-go/rest", true},
		"Action":             {"no program links the image library of opm", "cmd/catalog", "github.com/operator-framework/operator-registry/alpha/action", true},
		"Migrations":         {"migrations need no image library", "cmd/catalog", "github.com/operator-framework/operator-registry/alpha/action/migrations", false},
		"Property":           {"what does not link pkg/api may be used", "supervisor/resolution", "github.com/operator-framework/operator-registry/alpha/property", false},
		"Contract":           {"authoring does not link our contract", "cmd/catalog", module + "/proto/api", true},
		"API":                {"the API types are used", "supervisor/plansteps", "github.com/operator-framework/api/pkg/operators/v1alpha1", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			packages := []golist.Package{{ImportPath: module + "/" + tc.path, Deps: []string{"fmt", tc.dep}}}
			rules := slices.Concat(depcheck.Rules(), depcheck.ControllerRules([]string{
				"supervisor/controllers/installplan", "supervisor/controllers/subscription", "supervisor/controllers/operatorgroup",
			}))
			got := len(depcheck.Violations(packages, rules)) > 0
			if diff := cmp.Diff(tc.broken, got); diff != "" {
				t.Errorf("%s: -want broken +got:\n%s", tc.reason, diff)
			}
		})
	}
}
