package compat_test

import (
	"context"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/pause"
)

// The stages of TestRestarts.
const (
	prepared = iota
	stopped
	started
	interrupted
	ledByOther
	handedBack
)

// The settings --install-plan-retry-timeout of the supervisors after ledByOther and handedBack.
const (
	shortWindow  = time.Second
	mediumWindow = 5 * time.Second
)

// TestRestarts checks what the manager does after a restart, an outage of the API server, a change of leader and a
// handback. Each of these happens once for all cases, while no other test runs.
func TestRestarts(t *testing.T) {
	// The supervisor looks for OLM when it starts.
	handback := compattest.RestartSupervisor(mediumWindow, compattest.InstallOLM, compattest.Command("takeover", "--yes", "--supervisor-namespace", "default"),
		compattest.Command("handback", "--yes", "--supervisor-namespace", "default"), compattest.RemoveOLM)
	restored := true
	changing := func(act compattest.Action) compattest.Action {
		return func(ctx context.Context) error {
			restored = false
			return act(ctx)
		}
	}
	t.Cleanup(func() {
		if !restored {
			if err := compattest.RestartSupervisor(compattest.RetryWindow())(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		}
	})
	stages := compattest.NewStages(
		compattest.Prepared, compattest.StopManager, compattest.StartManager, compattest.InterruptAPIServer(4*time.Second),
		changing(compattest.ChangeLeader(shortWindow)), changing(handback),
	)
	type reach = func(stage int)
	stages.Check(t, "D14", func(t *testing.T, c *compattest.Cluster, reach reach) {
		held, source := goods(c, "goods"), ofGoods(c, "goods")
		c.Make(held, source)
		owned(c, held, compattest.Patience, owner(source))
		reach(started)
		before := held.ResourceVersion
		reach(handedBack)
		if left := c.Read(held); left != "" || held.ResourceVersion != before {
			t.Errorf("the ConfigMap was written: %s %s", left, c.Manifest(held.ObjectMeta))
		}
		owned(c, held, time.Second, owner(source))
	})
	stages.Check(t, "G10-Stopped", testPlanDeletedWhileStopped)
	stages.Check(t, "H26-Restart", testWarningsAfterRestarts)
	stages.Check(t, "I2-1s", func(t *testing.T, c *compattest.Cluster, reach reach) {
		reach(ledByOther)
		failsAfter(t, c, shortWindow)
	})
	stages.Check(t, "I2-5s", func(t *testing.T, c *compattest.Cluster, reach reach) {
		reach(handedBack)
		failsAfter(t, c, mediumWindow)
	})
	stages.Check(t, "I8", func(t *testing.T, c *compattest.Cluster, reach reach) {
		y := newYard(t, c)
		reach(prepared)
		p := y.awaiting("by-hand", "ghost")
		y.retrying(p, "ghost")
		start := p.Status.StartTime.Time
		pause.For(t.Context(), time.Until(start.Add(compattest.RetryWindow()/2)))
		reach(started)
		y.fails(retryLimit(), p, "ghost")
		y.inTime(p)
		if !p.Status.StartTime.Time.Equal(start) {
			t.Errorf("status.startTime moved from %s to %s", start, p.Status.StartTime)
		}
	})
	stages.Check(t, "I9", func(t *testing.T, c *compattest.Cluster, reach reach) {
		y := newYard(t, c)
		reach(started)
		p := y.awaiting("by-hand", "ghost")
		y.retrying(p, "ghost")
		pause.For(t.Context(), time.Until(p.Status.StartTime.Add(compattest.RetryWindow()-2*time.Second)))
		reach(interrupted)
		back := time.Now()
		y.fails(retryLimit(), p, "ghost")
		if after := time.Since(back); after > 2*deadlineSlack() {
			t.Errorf("the plan failed %s after the API server was back", after)
		}
	})
	stages.Check(t, "J15-Restart", func(t *testing.T, c *compattest.Cluster, reach reach) {
		u := newUpgradeCase(t, c)
		u.reports(reportFalse, 0)
		u.Make(u.next)
		u.held(notUpgradeable)
		generation := u.condition.Generation
		reach(started)
		u.AtRest(restTime, u.condition)
		u.held(notUpgradeable)
		if u.condition.Generation != generation {
			t.Errorf("generation %d, want %d", u.condition.Generation, generation)
		}
	})
}

// failsAfter checks that a plan with a failing step fails when a retry timeout has passed.
func failsAfter(t *testing.T, c *compattest.Cluster, window time.Duration) {
	t.Helper()
	y := newYard(t, c)
	p := y.awaiting("by-hand", "ghost")
	y.fails(compattest.Patience, p, "ghost")
	if after := failedAfter(p); after < window-time.Second || after > window+2*time.Second {
		t.Errorf("the plan failed %s after its start, want %s", after, window)
	}
}

// testPlanDeletedWhileStopped deletes a plan that waits for approval while no manager runs.
func testPlanDeletedWhileStopped(t *testing.T, c *compattest.Cluster, reach func(int)) {
	m := &mill{Cluster: c, t: t}
	sub := m.subscribe(m.entry("mill.v1", "1.0.0", m.bundleCSV("mill.v1")), approvedByHand)
	p := m.planOf(sub)
	m.inPhase(p, operatorsv1alpha1.InstallPlanPhaseRequiresApproval)
	reach(stopped)
	m.remove(p)
	reach(started)
	next := m.replacedBy(sub, p)
	m.inPhase(next, operatorsv1alpha1.InstallPlanPhaseRequiresApproval)
	m.onlyPlan(next)
}

// testWarningsAfterRestarts installs an object with an unknown field before a restart and a change of leader.
func testWarningsAfterRestarts(t *testing.T, c *compattest.Cluster, reach func(int)) {
	m := &mill{Cluster: c, t: t}
	p := m.install(field(m.object("ConfigMap"), "1", "bogus"))
	m.warned(p, "ConfigMap", unknown("bogus"))
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: m.yard().hookName(kindNamed("ConfigMap"))}}
	if left := c.Read(object); left != "" {
		t.Fatal(left)
	}
	before := object.ResourceVersion
	for _, stage := range []int{started, ledByOther} {
		reach(stage)
		c.AtRest(restTime, object)
		if object.ResourceVersion != before {
			t.Errorf("the object was written: %s", m.Manifest(object.ManagedFields))
		}
		if list := m.warnings(p); len(list) != 1 {
			t.Errorf("the plan has the warnings %q", list)
		}
	}
}
