package scale

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/test/audit"
)

// requests returns a number of equal requests.
func requests(n int, verb, resource string, code int) []audit.Request {
	return slices.Repeat([]audit.Request{{Verb: verb, Resource: resource, Code: code}}, n)
}

// usual returns a batch within the budget, in ten namespaces.
func usual() *Batch {
	return &Batch{
		Before: 40, Namespaces: 10, Took: 10 * time.Second, Span: time.Minute,
		Requests: slices.Concat(
			requests(10, "create", "deployments.apps", 201), requests(60, "patch", csvs+"/status", 200),
			requests(20, "get", csvs, 200), requests(90, "create", events, 201), requests(12, "get", "configmaps", 404),
		),
		Reconciles: map[string]int{"subscription": 100, "operator": 80, "olmconfig": 4},
	}
}

// exceededCase is a change of a usual batch, and what then exceeds the budget.
type exceededCase struct {
	reason string
	change func(*Batch)
	want   []string
}

// exceededRequests returns cases with requests.
func exceededRequests() map[string]exceededCase {
	return map[string]exceededCase{
		"Usual": {reason: "a batch within the budget", change: func(*Batch) {}},
		"Row": {
			reason: "a kind has a budget of its own",
			change: func(b *Batch) { b.Requests = append(b.Requests, requests(1, "create", "deployments.apps", 201)...) },
			want:   []string{"11 create deployments.apps for 10 installations, want at most 10"},
		},
		"Unknown": {
			reason: "a kind without a row must not occur",
			change: func(b *Batch) { b.Requests = append(b.Requests, requests(1, "list", "secrets", 200)...) },
			want:   []string{"1 list secrets for 10 installations, which the budget does not have"},
		},
		"OtherVerb": {
			reason: "a row is for one verb alone",
			change: func(b *Batch) { b.Requests = append(b.Requests, requests(1, "update", csvs+"/status", 200)...) },
			want:   []string{"1 update " + csvs + "/status for 10 installations, which the budget does not have"},
		},
		"First": {
			reason: "what the first namespace adds is for no later one",
			change: func(b *Batch) { b.Requests = append(b.Requests, requests(1, "create", crds, 201)...) },
			want:   []string{"1 create " + crds + " for 10 installations, want at most 0"},
		},
		"FirstBatch": {
			reason: "the first namespace adds the definition",
			change: func(b *Batch) { b.Before, b.Requests = 0, append(b.Requests, requests(1, "create", crds, 201)...) },
		},
		"RequestsOfFirstBatch": {
			reason: "the first namespace adds to all requests what it adds to rows",
			change: func(b *Batch) {
				b.Before, b.Requests = 0, append(b.Requests, requests(511, "update", "clusterroles"+rbac, 200)...)
			},
			want: []string{"511 update clusterroles" + rbac + " for 10 installations, want at most 33"},
		},
		"Clock": {
			reason: "what follows the clock has a budget for a minute",
			change: func(b *Batch) { b.Requests = append(b.Requests, requests(6, "get", "configmaps", 404)...) },
			want:   []string{"18 get configmaps for 10 installations, want at most 16"},
		},
		"Conflicts": {
			reason: "conflicts have a limit of their own and count for no row",
			change: func(b *Batch) { b.Requests = append(b.Requests, requests(3, "update", "deployments.apps", 409)...) },
		},
		"Exists": {
			reason: "the creation of what exists is one more creation",
			change: func(b *Batch) { b.Requests = append(b.Requests, requests(1, "create", "deployments.apps", 409)...) },
			want:   []string{"11 create deployments.apps for 10 installations, want at most 10"},
		},
		"Reads": {
			reason: "reads have a limit all together",
			change: func(b *Batch) { b.Requests = append(b.Requests, requests(190, "get", csvs, 200)...) },
			want: []string{
				"210 reads for 10 installations, want at most 200",
				"210 get " + csvs + " for 10 installations, want at most 22",
			},
		},
		"Requests": {
			reason: "requests have a limit all together, writes of RBAC among them",
			change: func(b *Batch) { b.Requests = append(b.Requests, requests(511, "update", "clusterroles"+rbac, 200)...) },
			want: []string{
				"601 requests for 10 installations, want at most 600",
				"511 update clusterroles" + rbac + " for 10 installations, want at most 30",
			},
		},
	}
}

// exceededReconciles returns cases with controllers.
func exceededReconciles() map[string]exceededCase {
	return map[string]exceededCase{
		"Controller": {
			reason: "a controller has a budget of its own, which does not grow with time",
			change: func(b *Batch) { b.Took, b.Span, b.Reconciles["operator"] = time.Hour, time.Hour, 121 },
			want:   []string{"121 reconcile operator for 10 installations, want at most 120"},
		},
		"UnknownController": {
			reason: "a controller without a row must not run", change: func(b *Batch) { b.Reconciles["copies"] = 1 },
			want: []string{"1 reconcile copies for 10 installations, which the budget does not have"},
		},
		"PeriodicController": {
			reason: "the budget of a controller that follows the clock is for a minute",
			change: func(b *Batch) { b.Reconciles["olmconfig"] = 32 },
			want:   []string{"32 reconcile olmconfig for 10 installations, want at most 31"},
		},
	}
}

func TestExceeded(t *testing.T) {
	cases := exceededRequests()
	maps.Copy(cases, exceededReconciles())
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := usual()
			tc.change(b)
			if diff := cmp.Diff(tc.want, Exceeded(b)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestTooManyConflicts(t *testing.T) {
	batch := func(namespaces, conflicts int) *Batch {
		return &Batch{Namespaces: namespaces, Requests: slices.Concat(
			requests(conflicts, "update", "deployments.apps", 409), requests(9, "update", "deployments.apps", 200), requests(9, "create", "deployments.apps", 409),
		)}
	}
	for name, tc := range map[string]struct {
		batches []*Batch
		want    string
	}{
		"None":    {batches: []*Batch{batch(10, 0)}},
		"Limit":   {batches: []*Batch{batch(10, 2)}},
		"TooMany": {batches: []*Batch{batch(10, 3)}, want: "3 conflicts for 10 installations, want at most 2: map[update deployments.apps:3]"},
		"Few":     {batches: []*Batch{batch(5, 2), batch(20, 3)}},
		"Sum":     {batches: []*Batch{batch(5, 2), batch(20, 4)}, want: "6 conflicts for 25 installations, want at most 5: map[update deployments.apps:6]"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := TooManyConflicts(tc.batches...); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestGrown(t *testing.T) {
	later := func(change func(*Batch)) *Batch {
		b := usual()
		b.Before = 180
		change(b)
		return b
	}
	same := later(func(*Batch) {})
	passes := func(controller string, n int) *Batch {
		return later(func(b *Batch) { b.Reconciles[controller] = n })
	}
	cases := map[string]struct {
		reason string
		late   []*Batch
		want   []string
	}{
		"Same":   {reason: "the cost of an installation is the same", late: []*Batch{same}},
		"Within": {reason: "a factor of 1.2 is allowed", late: []*Batch{passes("subscription", 135)}},
		"Passes": {
			reason: "passes of one controller grow", late: []*Batch{passes("subscription", 137)},
			want: []string{"18.0 reconciles for one installation beside 40 others, 21.7 beside 180: want at most 1.2 times as many"},
		},
		"New": {
			reason: "a controller that made no pass makes some", late: []*Batch{passes("copies", 40)},
			want: []string{"18.0 reconciles for one installation beside 40 others, 22.0 beside 180: want at most 1.2 times as many"},
		},
		"Periodic": {reason: "what follows the clock belongs to no installation", late: []*Batch{passes("olmconfig", 100)}},
		"Requests": {
			reason: "requests grow",
			late:   []*Batch{later(func(b *Batch) { b.Requests = append(b.Requests, requests(19, "get", csvs, 200)...) })},
			want:   []string{"9.0 requests for one installation beside 40 others, 10.9 beside 180: want at most 1.2 times as many"},
		},
		"Load": {
			reason: "two later batches without growth show that load made the passes of the other",
			late:   []*Batch{passes("subscription", 200), same, same},
		},
		"Mostly": {
			reason: "one later batch without growth does not excuse two others", late: []*Batch{passes("subscription", 200), same, passes("subscription", 150)},
			want: []string{"18.0 reconciles for one installation beside 40 others, 23.0 beside 180: want at most 1.2 times as many"},
		},
		"Slow": {
			reason: "time excuses no growth",
			late:   []*Batch{later(func(b *Batch) { b.Took, b.Reconciles["operator"] = time.Hour, 117 })},
			want:   []string{"18.0 reconciles for one installation beside 40 others, 21.7 beside 180: want at most 1.2 times as many"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Grown(usual(), tc.late...)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestTotals(t *testing.T) {
	b := usual()
	b.Requests = append(b.Requests, requests(1, "patch", "roles"+rbac, 409)...)
	want := Totals{Reads: 20, Writes: 71, Conflicts: 1, Events: 90}
	if diff := cmp.Diff(want, b.Totals()); diff != "" {
		t.Errorf("requests that follow the clock are in none: -want +got:\n%s", diff)
	}
}

// TestBudget checks the table itself.
func TestBudget(t *testing.T) {
	var all, read float64
	seen := map[Kind]bool{}
	for _, row := range slices.Concat(Budget(), Reconciliations()) {
		if seen[row.Kind] {
			t.Errorf("%s has two rows", row.Kind)
		}
		seen[row.Kind] = true
		if words := len(strings.Fields(row.Why)); words == 0 || words > 25 || !strings.HasSuffix(row.Why, ".") {
			t.Errorf("%s: the reason %q is not one short sentence", row.Kind, row.Why)
		}
		if row.Each == 0 && row.First == 0 && row.Minute == 0 {
			t.Errorf("%s may never occur; remove the row", row.Kind)
		}
		if row.Minute > 0 && row.Each > 0 {
			t.Errorf("%s both follows the clock and belongs to an installation", row.Kind)
		}
		request := audit.Request{Verb: row.Verb, Resource: row.Resource}
		switch {
		case isEvent(request) || row.Verb == reconcile:
		case request.Reads():
			read += row.Each
			all += row.Each
		default:
			all += row.Each
		}
	}
	if all > MaxRequests || read > MaxReads {
		t.Errorf("the rows allow %.1f requests and %.1f reads, want at most %d and %d", all, read, MaxRequests, MaxReads)
	}
}

func TestAdded(t *testing.T) {
	got := added(map[string]int{"a": 1, "b": 2}, map[string]int{"a": 4, "b": 2, "c": 1})
	if diff := cmp.Diff(map[string]int{"a": 3, "c": 1}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestNames(t *testing.T) {
	if diff := cmp.Diff([]string{"scale-0009", "scale-0010"}, Names(9, 11)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestCatalogText(t *testing.T) {
	manifests, err := plainManifests("gadget")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{fileCRD, fileCSV}, slices.Sorted(maps.Keys(manifests))); diff != "" {
		t.Errorf("a plain bundle has a version and a definition: -want +got:\n%s", diff)
	}
	inline, err := CatalogText("gadget", CatalogBundle{Version: "1.0.0", Manifests: manifests})
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(inline), "olm.bundle.object"); n != 2 {
		t.Errorf("got %d manifests, want 2", n)
	}
	pulled, err := CatalogText("gadget", CatalogBundle{Version: "1.0.0", Image: "registry.invalid/gadget@sha256:1", Manifests: manifests})
	if err != nil {
		t.Fatal(err)
	}
	if text := string(pulled); strings.Contains(text, "olm.bundle.object") || !strings.Contains(text, `"image":"registry.invalid/gadget@sha256:1"`) {
		t.Errorf("a bundle image has its manifests; got %s", text)
	}
	if _, err := CatalogText("gadget", CatalogBundle{Version: "1.0.0", Manifests: map[string]string{"bad.yaml": "a: ["}}); err == nil {
		t.Error("a manifest that is no YAML was accepted")
	}
}

func TestUpdated(t *testing.T) {
	manifests, err := plainManifests("gadget")
	if err != nil {
		t.Fatal(err)
	}
	csv := updated(manifests, "gadget", "1.0.0", "1.1.0")[fileCSV]
	for _, want := range []string{"  name: gadget.v1.1.0\n", "  version: 1.1.0\n  replaces: gadget.v1.0.0\n"} {
		if !strings.Contains(csv, want) {
			t.Errorf("want %q in\n%s", want, csv)
		}
	}
	text, err := CatalogText("gadget", CatalogBundle{Version: "1.0.0"}, CatalogBundle{Version: "1.1.0"})
	if want := `{"name":"gadget.v1.1.0","replaces":"gadget.v1.0.0"}`; err != nil || strings.Count(string(text), want) != 1 {
		t.Errorf("want %s once in %s (%v)", want, text, err)
	}
	if want := `{"entries":[{"name":"gadget.v1.0.0"}],"name":"first",`; !strings.Contains(string(text), want) {
		t.Errorf("want %s in %s", want, text)
	}
}
