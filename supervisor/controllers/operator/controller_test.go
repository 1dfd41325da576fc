package operator

import (
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestLabelThatNothingBears has Operators whose labels are not valid. A selector for such a label
// would select everything.
func TestLabelThatNothingBears(t *testing.T) {
	r := &reconciler{}
	for _, name := range []string{strings.Repeat("a", 64), "a/b", ""} {
		result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
		if err != nil || result != (ctrl.Result{}) {
			t.Errorf("%q: %v, %v", name, result, err)
		}
	}
}

// TestDelay checks how long an event of an Operator waits.
func TestDelay(t *testing.T) {
	clock := testclock.NewFakePassiveClock(noon().Time)
	r := &reconciler{clock: clock}
	if wait := r.delay("kettle.kitchen"); wait != batchDelay {
		t.Errorf("one that was never written waits %v", wait)
	}
	r.starts.Store("kettle.kitchen", clock.Now())
	clock.SetTime(noon().Add(400 * time.Millisecond))
	if wait := r.delay("kettle.kitchen"); wait != 1100*time.Millisecond {
		t.Errorf("one that was just written waits %v", wait)
	}
	if wait := r.delay("lid.kitchen"); wait != batchDelay {
		t.Errorf("another one waits %v", wait)
	}
	clock.SetTime(noon().Add(time.Minute))
	if wait := r.delay("kettle.kitchen"); wait != batchDelay {
		t.Errorf("one that was written long ago waits %v", wait)
	}
	if err := r.act(t.Context(), "kettle.kitchen", nil, actionNone, operatorsv1.OperatorStatus{}); err != nil {
		t.Fatal(err)
	}
	if _, remembered := r.starts.Load("kettle.kitchen"); remembered {
		t.Error("a reconciliation that changed nothing is remembered")
	}
}
