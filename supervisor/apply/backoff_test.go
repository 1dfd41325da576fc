package apply_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/apply"
)

func TestBackoffIsBounded(t *testing.T) {
	l := apply.Backoff()
	failing := reconcile.Request{NamespacedName: types.NamespacedName{Name: "failing"}}
	var last time.Duration
	for range 100 {
		pause := l.When(failing)
		if pause < last {
			t.Errorf("a pause of %s after one of %s", pause, last)
		}
		last = pause
	}
	if last != 15*time.Second {
		t.Errorf("after a hundred errors the pause is %s, not 15s", last)
	}
	if pause := l.When(reconcile.Request{}); pause != 5*time.Millisecond {
		t.Errorf("another request pauses %s after its first error, not 5ms", pause)
	}
}
