package docs

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/docs/reference/facts"
	"github.com/chandlery/chandlery/supervisor/explain"
)

// code returns the product's code, which is loaded once.
var code = sync.OnceValues(func() (*facts.Code, error) { return facts.Load(context.Background(), root) })

func load(t *testing.T) *facts.Code {
	t.Helper()
	read, err := code()
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// TestFacts checks one value for each form in which the code can declare a metric, a state or a
// name.
func TestFacts(t *testing.T) {
	t.Parallel()
	code := load(t)
	metrics, err := code.Metrics()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []facts.Metric{
		{Name: "chandlery_registry_catalog_loads_total", Type: "counter", Labels: []string{"result"}, Help: "Attempts to load content, by result.", Package: "server"},
		{Name: "chandlery_registry_build_info", Type: "gauge", Labels: []string{"version", "commit", "goversion"}, Help: "Always 1. The labels show the running build.", Package: "server"},
		{Name: "chandlery_registry_requests_total", Type: "counter", Labels: []string{"service", "method", "code"}, Help: "Completed calls, by status code.", Package: "server"},
		{Name: "csv_count", Type: "gauge", Help: "ClusterServiceVersions. Copies do not count.", Package: "supervisor/controllers/clusterserviceversion"},
	} {
		i := slices.IndexFunc(metrics, func(m facts.Metric) bool { return m.Name == want.Name })
		if i < 0 {
			t.Errorf("%s was not found", want.Name)
		} else if diff := cmp.Diff(want, metrics[i]); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	states := code.States()
	for kind, values := range map[facts.Kind][]string{
		facts.Condition: {"ResolutionFailed", "NewerVersionHeld", "Upgradeable", "Available"},
		facts.Reason:    {"InstallCheckFailed", "Pinned", "UnhealthyCatalogSourceFound", "NodeGone", "Unauthorized"},
		facts.Phase:     {"Planning", "InstallReady"},
		facts.State:     {"UpgradePending"},
		facts.Event:     {"Adopted", "ForeignClusterRole"},
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

// TestNames compares annotations.md with the names in the code.
func TestNames(t *testing.T) {
	t.Parallel()
	page := pages(t)["docs/reference/annotations.md"]
	documented := map[string]int{}
	for _, table := range page.Tables {
		for _, row := range table.Body() {
			if slices.Contains(row.Cells, "") || len(row.Cells) != len(table.Header) {
				t.Errorf("%s:%d: a cell is empty", page.Path, row.Line)
			}
			for _, name := range spans(row.Cells[0]) {
				documented[name] = row.Line
			}
		}
	}
	for _, item := range page.items() {
		documented[item[0].Text] = item[0].Line
	}
	compareNames(t.Errorf, load(t).Names(), documented)
}

// compareNames reports each name that one of both lacks.
func compareNames(complain func(string, ...any), found map[string][]string, documented map[string]int) {
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(documented)), func(d string) bool { return stands(d, name) }) {
			complain("docs/reference/annotations.md lacks %s, which is in %s: say what it is on, who writes it and what it does",
				name, strings.Join(found[name], ", "))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(documented)) {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(found)), func(f string) bool { return f != ownPrefix && stands(name, f) }) {
			complain("docs/reference/annotations.md:%d: %s is nowhere in the code any more", documented[name], name)
		}
	}
}

// ownPrefix is the prefix of this project's names. It is not a name.
const ownPrefix = "chandlery.dev/"

// stands reports whether a documented name matches a name in the code. The documented name may have
// further parts in capitals, which differ between objects.
func stands(documented, found string) bool {
	rest, ok := strings.CutPrefix(documented, found)
	switch {
	case !ok:
		return false
	case rest == "" || found == ownPrefix:
		return true
	default:
		return strings.ContainsAny(found[len(found)-1:], "/.-") && unicode.IsUpper(rune(rest[0]))
	}
}

func TestCompareNames(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason     string
		found      string
		documented string
		complaints int
	}{
		"Same":      {reason: "a name that both have", found: "olm.owner", documented: "olm.owner"},
		"Prefix":    {reason: "what differs is in capitals", found: "olm.api.", documented: "olm.api.HASH"},
		"Other":     {reason: "another name is none of a prefix", found: "operators.coreos.com/", documented: "operators.coreos.com/gone", complaints: 2},
		"Longer":    {reason: "nor one that goes on", found: "olm.owner", documented: "olm.owner.kind", complaints: 2},
		"OwnPrefix": {reason: "that of ours stands for none", found: "chandlery.dev/", documented: "chandlery.dev/gone", complaints: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			complaints := 0
			compareNames(func(string, ...any) { complaints++ }, map[string][]string{tc.found: {"x"}}, map[string]int{tc.documented: 1})
			if complaints != tc.complaints {
				t.Errorf("%s: %d complaints, want %d", tc.reason, complaints, tc.complaints)
			}
		})
	}
}

// TestStates compares conditions.md with the conditions, reasons, phases, states and Events
// in the code.
func TestStates(t *testing.T) {
	t.Parallel()
	page := pages(t)["docs/reference/conditions.md"]
	documented, complaints := stated(page)
	for _, complaint := range complaints {
		t.Error(complaint)
	}
	found := load(t).States()
	for kind, values := range found {
		for _, value := range slices.Sorted(maps.Keys(values)) {
			// A reason in the code may be the reason of an Event.
			if documented[kind][value] == 0 && (kind != facts.Reason || documented[facts.Event][value] == 0) {
				t.Errorf("%s lacks the %s %s, which is in %s: give its cause and its remedy",
					page.Path, kind, value, strings.Join(values[value], ", "))
			}
		}
	}
	for kind, values := range documented {
		for _, value := range slices.Sorted(maps.Keys(values)) {
			if !known(found, kind, value) {
				t.Errorf("%s:%d: the %s %s is nowhere in the code any more", page.Path, values[value], kind, value)
			}
		}
	}
}

// known reports whether the code has a value. Phases also are reasons of conditions, and Events
// share reasons with conditions.
func known(found map[facts.Kind]map[string][]string, kind facts.Kind, value string) bool {
	in := func(kinds ...facts.Kind) bool {
		return slices.ContainsFunc(kinds, func(k facts.Kind) bool { return len(found[k][value]) > 0 })
	}
	switch kind {
	case facts.Event:
		return in(facts.Event, facts.Reason, facts.Phase, facts.Condition)
	case facts.Reason:
		return in(facts.Reason, facts.Phase)
	default:
		return in(kind)
	}
}

// stated returns the values in the tables of a page, and the problems of the tables.
func stated(page Page) (map[facts.Kind]map[string]int, []string) {
	documented := map[facts.Kind]map[string]int{}
	var complaints []string
	for _, table := range page.Tables {
		cause, remedy := slices.Index(table.Header, "Cause"), slices.Index(table.Header, "Remedy")
		if cause < 0 || remedy < 0 {
			continue
		}
		for _, row := range table.Body() {
			if len(row.Cells) != len(table.Header) || row.Cells[cause] == "" || row.Cells[remedy] == "" {
				complaints = append(complaints, fmt.Sprintf("%s:%d: a row without cause or remedy", page.Path, row.Line))
				continue
			}
			for i, header := range table.Header {
				kind := facts.Kind(strings.ToLower(header))
				if !slices.Contains([]facts.Kind{facts.Condition, facts.Reason, facts.Phase, facts.State, facts.Event}, kind) {
					continue
				}
				for _, value := range spans(row.Cells[i]) {
					if documented[kind] == nil {
						documented[kind] = map[string]int{}
					}
					documented[kind][value] = row.Line
				}
			}
		}
	}
	return documented, complaints
}

func TestStated(t *testing.T) {
	t.Parallel()
	documented, complaints := stated(Parse("x.md", "| Condition | Reason | Cause | Remedy |\n|---|---|---|---|\n"+
		"| `A` | `B`, `C` | x | y |\n| | `D` | x | y |\n| | `E` | x | |\n\n| Other | Table |\n|---|---|\n| `F` | |\n"))
	if len(complaints) != 1 || !strings.HasPrefix(complaints[0], "x.md:5:") {
		t.Errorf("complaints %q", complaints)
	}
	if got := slices.Sorted(maps.Keys(documented[facts.Reason])); !slices.Equal(got, []string{"B", "C", "D"}) {
		t.Errorf("reasons %q", got)
	}
	if len(documented) != 2 || documented[facts.Condition]["A"] != 3 {
		t.Errorf("documented %v", documented)
	}
}

// TestMetrics compares metrics.md with the metrics of the programs.
func TestMetrics(t *testing.T) {
	t.Parallel()
	metrics, err := load(t).Metrics()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, m := range metrics {
		want = append(want, strings.Join(append([]string{m.Name, m.Type}, m.Labels...), " "))
	}
	var got []string
	page := pages(t)["docs/reference/metrics.md"]
	for _, item := range page.items() {
		var words []string
		for _, code := range item {
			words = append(words, code.Text)
		}
		got = append(got, strings.Join(words, " "))
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/reference/metrics.md is stale, run make generate: -code +page:\n%s", diff)
	}
}

// TestFindings compares findings.md with the codes of findings.
func TestFindings(t *testing.T) {
	t.Parallel()
	var want, got []string
	for _, code := range explain.Codes() {
		want = append(want, code.Code)
	}
	for _, table := range pages(t)["docs/reference/findings.md"].Tables {
		for _, row := range table.Body() {
			got = append(got, spans(row.Cells[0])[0])
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/reference/findings.md is stale, run make generate: -code +page:\n%s", diff)
	}
}
