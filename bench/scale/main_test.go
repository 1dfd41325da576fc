package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/test/audit"
	"github.com/chandlery/chandlery/test/scale"
)

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		want   []int
		fails  bool
	}{
		"Default": {"all sizes are measured", nil, []int{10, 50, 200, 1000}, false},
		"Some":    {"sizes are in the order given", []string{"--namespaces", "50,10"}, []int{50, 10}, false},
		"Zero":    {"no namespace costs nothing", []string{"--namespaces", "10,0"}, nil, true},
		"Word":    {"a size is a number", []string{"--namespaces", "ten"}, nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o, err := parse(tc.args, io.Discard)
			if (err != nil) != tc.fails {
				t.Fatalf("%s: parse(%q) = %v, want an error: %t", tc.reason, tc.args, err, tc.fails)
			}
			if diff := cmp.Diff(tc.want, o.sizes); err == nil && diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestReport(t *testing.T) {
	ours := &scale.Batch{
		Before: 1, Namespaces: 2, Took: 3 * time.Second, Supervisor: 200 * time.Millisecond, APIServer: time.Second, ControllerManager: 50 * time.Millisecond, Memory: 40 << 20, Resident: 60 << 20,
		Requests: slices.Concat(
			slices.Repeat([]audit.Request{{Verb: "create", Resource: "deployments.apps"}}, 2),
			[]audit.Request{{Verb: "list", Resource: "secrets"}, {Verb: "get", Resource: "configmaps"}},
		),
		Reconciles: map[string]int{"subscription": 10, "operator": 13, "unknown": 1},
	}
	floor := &scale.Batch{Before: 1, Namespaces: 2, Took: 2 * time.Second, APIServer: time.Second}
	text := report("a machine", []round{{namespaces: 2, names: []string{"supervisor", "floor"}, batches: []*scale.Batch{ours, floor}}}, afterwards{
		cached: []scale.Cached{{Kind: "Subscription", Objects: 2, Whole: 9000, Kept: 4000}},
		rest:   &scale.Batch{Before: 2, Namespaces: 2, Span: 30 * time.Second, Memory: 40 << 20, Supervisor: time.Second, Requests: ours.Requests[2:]},
		update: ours,
	})
	for _, want := range []string{
		"a machine; one supervisor.\n",
		"| 2 | supervisor | 3.0 s | 1.50 | 1500 ms | 1.5 | 0.5 | 1.0 | 0.0 | 0 | 0 | 100 ms | 500 ms | 25 ms | 40.0 MiB | 60.0 MiB |\n",
		"| 2 | floor | 2.0 s | 1.00 | 1000 ms | 0.0 | 0.0 | 0.0 | 0.0 | 0 | 0 |  | 500 ms |  |  |  |\n",
		"With 2 namespaces, at rest, the supervisor sends 4.0 requests in a minute, 0.0 of them writes;",
		"It has 40.0 MiB of anonymous memory, and uses 2000 ms of processor time in a minute.\n",
		"is in all 2 namespaces 3.0 s after the catalog has it: 1500 ms, 1.5 requests and\n0.0 Events for each, 0 conflicts.\n",
		"| Controller | 2 | Budget | Why |\n|---|---|---|---|\n| operator | 6.5 | 12, 15 more for the first | Components change",
		"| subscription | 5.0 | 16.5, 20 more for the first | The Subscription,",
		"| unknown | 0.5 | none |  |\n",
		"| create | deployments.apps | 1.00 | 1 | The Deployment of the version. |\n",
		"| get | configmaps | 0.50 | 15 in a minute |",
		"| Subscription | 2 | 9000 bytes | 4000 bytes |\n",
		"all installations together:\n\n- 1 list secrets\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
}

func TestMeasure(t *testing.T) {
	var installed []int
	counting := func(name string) side {
		return side{name: name, install: func(_ context.Context, n int) (*scale.Batch, error) {
			installed = append(installed, n)
			return &scale.Batch{Namespaces: n}, nil
		}}
	}
	small := counting("small")
	small.most = 1
	rounds, err := measure(t.Context(), []int{1, 2}, []side{counting("a"), small, counting("b")})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{1, 1, 1, 2, 2}, installed); diff != "" {
		t.Errorf("the sides of a size follow each other, but one that has a limit: -want +got:\n%s", diff)
	}
	if got := rounds[1]; got.namespaces != 2 || len(got.batches) != 2 || !slices.Equal(got.names, []string{"a", "b"}) {
		t.Errorf("got %+v", got)
	}
	fails := errors.New("no control plane")
	_, err = measure(t.Context(), []int{1}, []side{{name: "a", install: func(context.Context, int) (*scale.Batch, error) { return nil, fails }}})
	if !errors.Is(err, fails) {
		t.Errorf("got %v, want the error of the side", err)
	}
}

func TestProfiler(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/debug/pprof/allocs" || r.URL.Query().Get("seconds") == "5" {
			_, _ = io.WriteString(w, r.URL.Path)
			return
		}
		http.NotFound(w, r)
	}))
	defer server.Close()
	dir := filepath.Join(t.TempDir(), "profiles")
	p := profiler{address: server.Listener.Addr().String(), prefix: filepath.Join(dir, "50-")}
	finish, err := p.start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := finish(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"50-allocs-before.pb.gz": "/debug/pprof/allocs", "50-allocs.pb.gz": "/debug/pprof/allocs"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	if err := p.store(t.Context(), "none", "none"); err == nil {
		t.Error("a profile that is not served was stored")
	}
}
