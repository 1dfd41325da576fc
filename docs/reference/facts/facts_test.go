package facts

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLoad checks one value for each form in which the code can declare a metric, a state or a
// name.
func TestLoad(t *testing.T) {
	t.Parallel()
	code, err := Load(t.Context(), "../../..")
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := code.Metrics()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []Metric{
		{Name: "chandlery_registry_catalog_loads_total", Type: "counter", Labels: []string{"result"}, Help: "Attempts to load content, by result.", Package: "server"},
		{Name: "chandlery_registry_build_info", Type: "gauge", Labels: []string{"version", "commit", "goversion"}, Help: "Always 1; the labels say what is running.", Package: "server"},
		{Name: "chandlery_registry_requests_total", Type: "counter", Labels: []string{"service", "method", "code"}, Help: "Calls that have ended, by status code.", Package: "server"},
		{Name: "csv_count", Type: "gauge", Help: "ClusterServiceVersions that are looked after; copies are not.", Package: "supervisor/controllers/clusterserviceversion"},
	} {
		i := slices.IndexFunc(metrics, func(m Metric) bool { return m.Name == want.Name })
		if i < 0 {
			t.Errorf("%s was not found", want.Name)
		} else if diff := cmp.Diff(want, metrics[i]); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	states := code.States()
	for kind, values := range map[Kind][]string{
		Condition: {"ResolutionFailed", "NewerVersionHeld", "Upgradeable", "Available"},
		Reason:    {"InstallCheckFailed", "Pinned", "UnhealthyCatalogSourceFound", "NodeGone", "Unauthorized"},
		Phase:     {"Planning", "InstallReady"},
		State:     {"UpgradePending"},
		Event:     {"Adopted", "ForeignClusterRole"},
	} {
		for _, value := range values {
			if len(states[kind][value]) == 0 {
				t.Errorf("the %s %s was not found", kind, value)
			}
		}
	}
	names := code.Names()
	for _, name := range []string{"chandlery.dev/pin", "olm.operatorGroup", "operatorframework.io/properties", "olm.og."} {
		if len(names[name]) == 0 {
			t.Errorf("the name %s was not found", name)
		}
	}
	if found := names["operators.coreos.com/v1alpha1"]; found != nil {
		t.Errorf("the version of an API was taken for a name of an annotation, in %s", found)
	}
}

func TestUnit(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"a_duration_seconds": "seconds", "a_bytes": "bytes", "a_bytes_total": "bytes", "a_total": "number",
		"a_timestamp_seconds": "seconds since 1970",
	} {
		if got := (Metric{Name: name}).Unit(); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
