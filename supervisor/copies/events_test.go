package copies

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/events"
)

func TestBlockedNote(t *testing.T) {
	if got := blockedNote(nil, nil); got != "" {
		t.Errorf("nothing is blocked, but: %s", got)
	}
	got := blockedNote(map[string]string{"b": "x is there", "c": "x is there"}, map[string]setback{"publish a/x": {namespace: "a", times: 3, problem: "refused"}})
	const remedy = "; delete that one, or take the namespace out of the OperatorGroup's targets"
	want := "Not copied everywhere: namespace a: refused; namespace b: x is there" + remedy + "; namespace c: x is there" + remedy
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	many := map[string]setback{}
	for _, namespace := range []string{"a", "b", "c", "d", "e"} {
		many["publish "+namespace] = setback{namespace: namespace, times: 3, problem: "no"}
	}
	want = "Not copied everywhere: namespace a: no; namespace b: no; namespace c: no; and 2 more namespaces"
	if diff := cmp.Diff(want, blockedNote(nil, many)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestTellOnlyNews(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	r := &reconciler{events: recorder}
	told := func() []string {
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
	off := seen([]string{""}, []string{"pantry"}, func(o *observation) { o.enabled, o.now = false, noon().Add(time.Hour) })
	for i, want := range [][]string{{"Warning DisabledCopiedCSVs CSV copying disabled for kitchen/kettle.v1"}, nil} {
		r.tell(off, h, decide(off, h, fingerprint{}))
		if diff := cmp.Diff(want, told()); diff != "" {
			t.Errorf("pass %d: -want, +got:\n%s", i, diff)
		}
	}
	off.copies = nil
	r.tell(off, knowing(fingerprint{}), decide(off, knowing(fingerprint{}), fingerprint{}))
	if got := told(); got != nil {
		t.Errorf("a process that has just begun tells what is old: %v", got)
	}

	on := seen([]string{""}, nil)
	failed := step{action: publish, namespace: "pantry"}
	for range 3 {
		r.tell(on, h, decide(on, h, fingerprint{}))
		if told() != nil {
			t.Error("a trouble is told that may pass")
		}
		h.fail(failed, noon(), errors.New("quota exceeded"))
	}
	for i, want := range [][]string{{"Warning CopyBlocked Not copied everywhere: namespace pantry: quota exceeded"}, nil} {
		r.tell(on, h, decide(on, h, fingerprint{}))
		if diff := cmp.Diff(want, told()); diff != "" {
			t.Errorf("pass %d: -want, +got:\n%s", i, diff)
		}
	}
	delete(h.setbacks, failed.String())
	r.tell(on, h, decide(on, h, fingerprint{}))
	if got := told(); got != nil {
		t.Errorf("that a trouble is over is no event: %v", got)
	}
}
