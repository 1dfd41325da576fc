package main

import (
	"bytes"
	"os"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// TestPeaksAreLimitsOfPods compares the budgets of memory with the manifests.
func TestPeaksAreLimitsOfPods(t *testing.T) {
	t.Parallel()
	for manifest, want := range map[string]int64{
		"../../deploy/supervisor/deployment.yaml":                  maxPeak,
		"../../deploy/components/packagemanifests/deployment.yaml": maxServerPeak,
	} {
		text, err := os.ReadFile(manifest)
		if err != nil {
			t.Fatal(err)
		}
		// The first document is the Deployment.
		deployment := &appsv1.Deployment{}
		if err := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096).Decode(deployment); err != nil {
			t.Fatal(err)
		}
		if got := deployment.Spec.Template.Spec.Containers[0].Resources.Limits.Memory().Value(); got != want {
			t.Errorf("%s: limit of memory %d, want %d", manifest, got, want)
		}
	}
}

// TestCheckBudgets compares figures with the budgets.
func TestCheckBudgets(t *testing.T) {
	t.Parallel()
	const mebi = 1 << 20
	peer := figures{idle: 100 * mebi, processor: 4 * time.Second}
	within := figures{table: 80 * time.Millisecond, list: 400 * time.Millisecond, processor: 300 * time.Millisecond, peak: 200 * mebi}
	rest := restFigures{on: 68 * mebi, off: 50 * mebi, emptyOn: 45 * mebi, emptyOff: 30 * mebi, lease: 3 * time.Second, peak: 300 * mebi}
	for name, tt := range map[string]struct {
		change func(own, peer *figures, rest *restFigures)
		want   string
	}{
		"Within": {func(_, _ *figures, _ *restFigures) {}, ""},
		"Table":  {func(own, _ *figures, _ *restFigures) { own.table = time.Second }, "a table: 1s, want at most 100ms"},
		"List":   {func(own, _ *figures, _ *restFigures) { own.list = time.Second }, "a full list: 1s, want at most 500ms"},
		"API":    {func(_, _ *figures, r *restFigures) { r.emptyOff = 29 * mebi }, "memory of the API without a catalog: 16.0 MiB, want at most 15.0 MiB"},
		"Catalog": {
			func(_, _ *figures, r *restFigures) { r.on, r.emptyOff = 69*mebi, 31*mebi },
			"more memory of the API with a catalog: 5.0 MiB, want at most 4.0 MiB",
		},
		"Memory": {
			func(_, peer *figures, _ *restFigures) { peer.idle = 80 * mebi },
			"memory of the API beside OLM's package server: 18.0 MiB, want at most 16.0 MiB",
		},
		"Lease":     {func(_, _ *figures, r *restFigures) { r.lease = time.Minute }, "age of the Lease during full lists: 1m0s, want at most 10s"},
		"Crowd":     {func(_, _ *figures, r *restFigures) { r.table = time.Second }, "a table during full lists: 1s, want at most 100ms"},
		"Peak":      {func(_, _ *figures, r *restFigures) { r.peak = 1025 * mebi }, "resident memory after full lists: 1025.0 MiB, want at most 1024.0 MiB"},
		"Server":    {func(own, _ *figures, _ *restFigures) { own.peak = 513 * mebi }, "resident memory of a package server: 513.0 MiB, want at most 512.0 MiB"},
		"Processor": {func(own, _ *figures, _ *restFigures) { own.processor = time.Second }, "processor time beside OLM's package server: 1s, want at most 400ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own, peer, rest := within, peer, rest
			tt.change(&own, &peer, &rest)
			err := checkBudgets(own, peer, rest)
			if (err == nil) != (tt.want == "") || err != nil && err.Error() != tt.want {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}
