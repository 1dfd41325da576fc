package operator

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestLabelThatNothingBears has Operators whose labels are not valid. A selector for such a label
// would select everything.
func TestLabelThatNothingBears(t *testing.T) {
	r := &operatorReconciler{}
	for _, name := range []string{strings.Repeat("a", 64), "a/b", ""} {
		result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
		if err != nil || result != (ctrl.Result{}) {
			t.Errorf("%q: %v, %v", name, result, err)
		}
	}
}

// TestStatusDelay checks when an Operator may be written again.
func TestStatusDelay(t *testing.T) {
	clock := testclock.NewFakePassiveClock(noon().Time)
	r := &operatorReconciler{clock: clock}
	if wait := r.statusDelay("kettle.kitchen"); wait != 0 {
		t.Errorf("one that was never written waits %v", wait)
	}
	r.lastWrites.Store("kettle.kitchen", clock.Now())
	clock.SetTime(noon().Add(400 * time.Millisecond))
	if wait := r.statusDelay("kettle.kitchen"); wait != 4600*time.Millisecond {
		t.Errorf("one that was just written waits %v", wait)
	}
	if wait := r.statusDelay("lid.kitchen"); wait != 0 {
		t.Errorf("another one waits %v", wait)
	}
	clock.SetTime(noon().Add(time.Minute))
	if wait := r.statusDelay("kettle.kitchen"); wait > 0 {
		t.Errorf("one that was written long ago waits %v", wait)
	}
	if _, remembered := r.lastWrites.Load("kettle.kitchen"); remembered {
		t.Error("what no longer counts is remembered")
	}
}
