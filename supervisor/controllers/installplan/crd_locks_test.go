package installplan

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestDefinitionsWrittenSinceTheyWereRead(t *testing.T) {
	at := func(version string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetName("cups.example.com")
		u.SetResourceVersion(version)
		return u
	}
	locks := newCRDLocks()
	if locks.changed("cups.example.com", at("7")) || locks.changed("cups.example.com", nil) {
		t.Error("a definition that was never written has changed")
	}
	locks.recordWrite(at("8"))
	for name, tc := range map[string]struct {
		reason string
		read   *unstructured.Unstructured
		want   bool
	}{
		"Before": {"it was read before the write", at("7"), true},
		"After":  {"it was read after it", at("8"), false},
		"Later":  {"another client has written since", at("9"), false},
		"Absent": {"it was not there, and is now", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := locks.changed("cups.example.com", tc.read); got != tc.want {
				t.Errorf("%s: changed %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
	release := locks.lock("cups.example.com")
	next := make(chan struct{})
	go func() {
		locks.lock("cups.example.com")()
		close(next)
	}()
	select {
	case <-next:
		t.Fatal("two plans write a definition at once")
	default:
	}
	release()
	<-next
}
