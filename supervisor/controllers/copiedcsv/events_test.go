package copiedcsv

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/events"
)

func TestProblemsByNamespace(t *testing.T) {
	got := problemsByNamespace(map[string]string{"b": "x is there"}, map[string]failure{
		"publish a/x": {namespace: "a", times: 3, problem: "refused"}, "publish c/x": {namespace: "c", times: 2, problem: "refused"},
	})
	want := map[string]string{
		"a": "refused", "b": "x is there; delete it, or remove the namespace from the OperatorGroup's targets",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestEmitBlocked checks the Events for two blocked namespaces, for one more, and for more than the
// limit.
func TestEmitBlocked(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	r, o, h := &reconciler{events: recorder}, seen([]string{""}, nil), knowing(fingerprint{})
	const begin = "Warning CopyBlocked Not copied everywhere: "
	why := map[string]string{}
	for _, tt := range []struct{ more, want []string }{
		{more: []string{"a", "b"}, want: []string{"namespace a: no", "namespace b: no"}},
		{more: []string{"a", "c"}, want: []string{"namespace c: no"}},
		{},
		{more: []string{"d", "e", "f", "g", "h"}, want: []string{
			"namespace d: no", "namespace e: no", "namespace f: no", "2 more namespaces, the first of which have Events of their own",
		}},
	} {
		why = maps.Clone(why)
		for _, namespace := range tt.more {
			why[namespace] = "no"
		}
		r.emitBlocked(o, h, why)
		for _, want := range tt.want {
			if got := <-recorder.Events; got != begin+want {
				t.Errorf("%q, want %q", got, begin+want)
			}
		}
		if left := len(recorder.Events); left > 0 {
			t.Errorf("%d more Events than %q", left, tt.want)
		}
	}
}

func TestEmitChangesOnly(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	r := &reconciler{events: recorder}
	found := func() []string {
		var lines []string
		for {
			select {
			case line := <-recorder.Events:
				lines = append(lines, line)
			default:
				return lines
			}
		}
	}
	h := knowing(fingerprint{})
	off := seen([]string{""}, []string{"pantry"}, func(o *input) { o.enabled, o.now = false, noon().Add(time.Hour) })
	for i, want := range [][]string{{"Warning DisabledCopiedCSVs CSV copying disabled for kitchen/kettle.v1"}, nil} {
		r.emitEvents(off, h, decide(off, h, fingerprint{}))
		if diff := cmp.Diff(want, found()); diff != "" {
			t.Errorf("pass %d: -want, +got:\n%s", i, diff)
		}
	}
	off.copies = nil
	r.emitEvents(off, knowing(fingerprint{}), decide(off, knowing(fingerprint{}), fingerprint{}))
	if got := found(); got != nil {
		t.Errorf("a new process emits an Event of an old version: %v", got)
	}

	on := seen([]string{""}, nil)
	failed := step{action: createCopy, namespace: "pantry"}
	for range 3 {
		r.emitEvents(on, h, decide(on, h, fingerprint{}))
		if found() != nil {
			t.Error("an Event of a few failures is emitted")
		}
		h.fail(failed, noon(), errors.New("quota exceeded"))
	}
	for i, want := range [][]string{{"Warning CopyBlocked Not copied everywhere: namespace pantry: quota exceeded"}, nil} {
		r.emitEvents(on, h, decide(on, h, fingerprint{}))
		if diff := cmp.Diff(want, found()); diff != "" {
			t.Errorf("pass %d: -want, +got:\n%s", i, diff)
		}
	}
	delete(h.failures, failed.String())
	r.emitEvents(on, h, decide(on, h, fingerprint{}))
	if got := found(); got != nil {
		t.Errorf("that a trouble is over is no event: %v", got)
	}
}
