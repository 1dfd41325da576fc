package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/chandlery/chandlery/test/demo/timeline"
)

func newSilentWorld(out *bytes.Buffer) *world {
	return &world{
		printer: &printer{out: out, began: time.Now()},
		tracker: timeline.NewTracker(),
		changed: make(chan struct{}),
	}
}

func installPlan(phase operatorsv1alpha1.InstallPlanPhase) *operatorsv1alpha1.InstallPlan {
	p := &operatorsv1alpha1.InstallPlan{}
	p.Name, p.UID, p.Status.Phase = "install-1", "1", phase
	step := &operatorsv1alpha1.Step{Status: operatorsv1alpha1.StepStatusCreated}
	step.Resource.Kind = "Role"
	p.Status.Plan = []*operatorsv1alpha1.Step{step}
	return p
}

func TestWorldTellsChanges(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := newSilentWorld(&out)
	foreign := &coordinationv1.Lease{}
	foreign.Name = "node-1"
	w.observe(foreign)
	w.observe(installPlan(operatorsv1alpha1.InstallPlanPhaseInstalling))
	w.observe(installPlan(operatorsv1alpha1.InstallPlanPhaseInstalling))
	w.steps = true
	w.observe(installPlan(operatorsv1alpha1.InstallPlanPhaseComplete))
	w.gone(cache.DeletedFinalStateUnknown{Obj: installPlan(operatorsv1alpha1.InstallPlanPhaseComplete)})
	w.gone("not an object")
	var states []string
	for line := range strings.Lines(out.String()) {
		states = append(states, strings.Fields(line)[3])
	}
	if got, want := strings.Join(states, " "), "Installing Complete deleted"; got != want {
		t.Errorf("told %q, want %q:\n%s", got, want, out.String())
	}
}

func TestWorldAwait(t *testing.T) {
	t.Parallel()
	errBoom := errors.New("boom")
	cases := map[string]struct {
		reason string
		limit  time.Duration
		after  int // number of checks after which it holds
		fail   error
		cancel bool
		want   error
	}{
		"AtOnce":   {"what holds already is not waited for", time.Minute, 0, nil, false, nil},
		"Later":    {"a change makes it look again", time.Minute, 3, nil, false, nil},
		"Never":    {"what does not come true in time is late", 50 * time.Millisecond, 1 << 30, nil, false, &lateError{}},
		"Failing":  {"a look that fails ends it", time.Minute, 0, errBoom, false, errBoom},
		"Canceled": {"the end of the demo ends it, with its cause", time.Minute, 1 << 30, nil, true, errBoom},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			w := newSilentWorld(&out)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if tc.cancel {
				cancel(errBoom)
			}
			looks := 0
			err := w.await(ctx, "it holds", tc.limit, func(context.Context) (bool, error) {
				if tc.fail != nil {
					return false, tc.fail
				}
				looks++
				if looks <= tc.after && name == "Later" {
					w.observe(installPlan(operatorsv1alpha1.InstallPlanPhaseInstalling))
				}
				return looks > tc.after, nil
			})
			var late *lateError
			switch {
			case errors.As(tc.want, &late):
				if !errors.As(err, &late) {
					t.Errorf("%s: await = %v, want a *lateError", tc.reason, err)
				}
			case !errors.Is(err, tc.want):
				t.Errorf("%s: await = %v, want %v", tc.reason, err, tc.want)
			}
		})
	}
}
