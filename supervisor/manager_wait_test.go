package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

// TestStepDown checks that a leader that steps down has Events about it and waits, although its context has ended.
func TestStepDown(t *testing.T) {
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).Build()
	ready := &readiness{}
	r := &waitReporter{client: c, namespace: "home", identity: "pod-1", notReady: ready.setWaiting, log: logr.Discard()}
	reason := errors.New("OLM works here")
	ended, end := context.WithCancel(t.Context())
	end()
	r.stepDown(ended, reason)
	if err := ready.err(t.Context()); !errors.Is(err, reason) {
		t.Errorf("the probe answers %v", err)
	}
	var events corev1.EventList
	if err := c.List(t.Context(), &events, client.InNamespace("home")); err != nil {
		t.Fatal(err)
	}
	var reasons []string
	for _, e := range events.Items {
		reasons = append(reasons, e.Reason)
	}
	slices.Sort(reasons)
	if !slices.Equal(reasons, []string{api.ReasonSteppingDown, api.ReasonWaitingToLead}) {
		t.Errorf("Events %v", reasons)
	}
	r.end()
	if ready.waiting.Load() != nil {
		t.Error("the probe does not know of the end")
	}
}

// TestReasonsOfWait checks that the log has each reason of a wait once.
func TestReasonsOfWait(t *testing.T) {
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	r := &waitReporter{
		client: fake.NewClientBuilder().WithScheme(scheme).Build(), namespace: "home", notReady: func(error) {},
		log: funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}),
	}
	beside := func(ready int32, names ...string) error {
		e := &competing.Error{Finding: competing.Finding{State: competing.Running}}
		for _, name := range names {
			e.Finding.Workloads = append(e.Finding.Workloads, competing.Workload{Namespace: "olm", Name: name, Replicas: 1, Ready: ready})
		}
		return fmt.Errorf("taking over: %w", e)
	}
	pods, incomplete := errors.New("pod x has not ended"), errors.New("the takeover is not finished")
	for _, reason := range []error{
		beside(1, "a", "b"), beside(0, "a", "b"), beside(0, "b"), pods, pods, incomplete, beside(1, "b"),
	} {
		r.report(t.Context(), reason)
	}
	r.end()
	r.report(t.Context(), beside(1, "b"))
	if len(lines) != 7 || !strings.Contains(lines[0], "olm/a") || !strings.Contains(lines[1], "olm/b") || strings.Contains(lines[1], "olm/a") ||
		!strings.Contains(lines[2], "has not ended") || !strings.Contains(lines[3], "not finished") || !strings.Contains(lines[4], "olm/b") ||
		!strings.Contains(lines[6], "olm/b") {
		t.Errorf("log:\n%s", strings.Join(lines, "\n"))
	}
}

// TestWaitReporter checks that a wait has one line in the log at its begin and one at its end, one Event, and an
// answer of the probe in between.
func TestWaitReporter(t *testing.T) {
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).Build()
	var lines []string
	ready := &readiness{}
	r := &waitReporter{
		client: c, namespace: "home", identity: "pod-1", notReady: ready.setWaiting,
		log: funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}),
	}
	reason := errors.New("OLM works here: " + strings.Repeat("x", api.MaxEventNote))
	r.end()
	r.report(t.Context(), reason)
	r.report(t.Context(), reason)
	if err := ready.err(t.Context()); !errors.Is(err, reason) {
		t.Errorf("the probe answers %v", err)
	}
	r.end()
	if ready.waiting.Load() != nil {
		t.Error("the probe does not know of the end")
	}
	if len(lines) != 2 || !strings.Contains(lines[0], reason.Error()) {
		t.Errorf("log: %q", lines)
	}
	var events corev1.EventList
	if err := c.List(t.Context(), &events, client.InNamespace("home")); err != nil {
		t.Fatal(err)
	}
	if len(events.Items) != 1 || events.Items[0].InvolvedObject.Name != api.LeaseName || events.Items[0].Reason != api.ReasonWaitingToLead || len(events.Items[0].Message) > api.MaxEventNote {
		t.Errorf("events: %+v", events.Items)
	}
}
