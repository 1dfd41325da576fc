package suite_test

import (
	"encoding/json"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// refused renders the chart with wrong settings and returns what helm prints. The schema names all wrong settings at once.
func refused(t *testing.T, settings ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program(t), append([]string{"template", "chandlery", chart}, settings...)...).CombinedOutput()
	if err == nil {
		t.Fatalf("the chart accepts %q", settings)
	}
	return string(out)
}

// TestWrongSettingsAreRefused checks that the schema refuses wrong settings and names them.
func TestWrongSettingsAreRefused(t *testing.T) {
	refusals := map[string]string{
		"replicas=0":                             "'/replicas': ",
		"replica=3":                              "'': additional properties 'replica' not allowed",
		"leaderElection.leaseDuration=soon":      "'/leaderElection/leaseDuration': ",
		"catalogs.server=opm":                    "'/catalogs/server': ",
		"bundleCache.size=1GB":                   "'/bundleCache/size': ",
		"extraVolumeMounts[0].name=more":         "'/extraVolumeMounts/0': missing property 'mountPath'",
		"imageRegistries.pullSecrets={pull}":     "'/imageRegistries/pullSecrets/0': ",
		"catalogCache.existingClaim=My_Claim":    "'/catalogCache/existingClaim': ",
		"packageManifests=always":                "'/packageManifests': ",
		"globalCatalogNamespace.podSecurity=lax": "'/globalCatalogNamespace/podSecurity': ",
		`bundleKinds[0].group=Shop Example,bundleKinds[0].kind=Widget,bundleKinds[0].resource=widgets`: "'/bundleKinds/0/group': ",
		`bundleKinds[1].group=shop.example,bundleKinds[1].kind=Role,bundleKinds[1].resource=roles`:     "'/bundleKinds/1/kind': ",
		`bundleKinds[2].group=shop.example,bundleKinds[2].kind=Widget,bundleKinds[2].resource=*`:       "'/bundleKinds/2/resource': ",
	}
	var settings []string
	for _, setting := range slices.Sorted(maps.Keys(refusals)) {
		settings = append(settings, "--set", setting)
	}
	out := refused(t, settings...)
	for setting, refusal := range refusals {
		if !strings.Contains(out, "- at "+refusal) {
			t.Errorf("%s: no refusal of %s in:\n%s", setting, refusal, out)
		}
	}
}

// TestBundleKindsAreThoseOfTheFlag checks that the schema accepts the kinds that the flag accepts, and no others.
func TestBundleKindsAreThoseOfTheFlag(t *testing.T) {
	kinds := map[string]bool{
		"shop.example/Widget":                        true,
		"apps/StatefulSet":                           true,
		"shop.example/Sign:cluster":                  true,
		"policy/PodDisruptionBudget":                 true,
		"scheduling.k8s.io/PriorityClass:cluster":    true,
		"Shop Example/Widget":                        false,
		"*/Widget":                                   false,
		"shop..example/Widget":                       false,
		"/Widget":                                    false,
		strings.Repeat("a.", 127) + "a/Widget":       false,
		"shop.example/*":                             false,
		"shop.example/widget":                        false,
		"shop.example/Role":                          false,
		"shop.example/BundleSecret":                  false,
		"shop.example/Subscription":                  false,
		"rbac.authorization.k8s.io/Role":             false,
		"operators.coreos.com/CatalogSource":         false,
		"operators.coreos.com/ClusterServiceVersion": false,
		"policy/PodDisruptionBudget:cluster":         false,
		"scheduling.k8s.io/PriorityClass":            false,
	}
	values := slices.Sorted(maps.Keys(kinds))
	var want, got, right []string
	for _, value := range values {
		if !kinds[value] {
			want = append(want, value)
		} else {
			right = append(right, value)
		}
		if err := new(plansteps.Kinds).Set(value); (err == nil) != kinds[value] {
			t.Errorf("the flag with %s: error %v", value, err)
		}
	}
	for _, match := range regexp.MustCompile(`- at '/bundleKinds/(\d+)`).FindAllStringSubmatch(refused(t, "--set-json", bundleKinds(t, values)), -1) {
		i, err := strconv.Atoi(match[1])
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, values[i])
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("kinds that the chart refuses (-want +got):\n%s", diff)
	}
	output(t, program(t), "template", "chandlery", chart, "--set-json", bundleKinds(t, right))
}

// bundleKinds returns the setting of the chart for values of the flag.
func bundleKinds(t *testing.T, values []string) string {
	t.Helper()
	var kinds []map[string]any
	for _, value := range values {
		name, clusterScoped := strings.CutSuffix(value, ":cluster")
		group, kind, _ := strings.Cut(name, "/")
		kinds = append(kinds, map[string]any{"group": group, "kind": kind, "resource": "widgets", "clusterScoped": clusterScoped})
	}
	setting, err := json.Marshal(kinds)
	if err != nil {
		t.Fatal(err)
	}
	return "bundleKinds=" + string(setting)
}
