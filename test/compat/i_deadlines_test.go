package compat_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/pause"
)

// deadlineSlack bounds how much later than its deadline a plan fails. OLM retries every five seconds, later if it is
// busy, and the times of a status are whole seconds.
func deadlineSlack() time.Duration { return max(7*time.Second, compattest.RetryWindow()/4) }

// awaiting returns a plan whose steps each need a ClusterServiceVersion that does not exist.
func (f *planFixture) awaiting(name string, csvs ...string) *operatorsv1alpha1.InstallPlan {
	f.t.Helper()
	// OLM sets a condition, whose time then stays, while the OperatorGroup has no targets.
	awaitTargets(f.Cluster)
	var steps []*operatorsv1alpha1.Step
	for _, csv := range csvs {
		k := kindNamed("ConfigMap")
		manifest := setMetadata(setMetadata(f.manifestOf(k), "ownerReferences", []any{ownerReference(csv, "")}), "name", "for-"+csv)
		steps = append(steps, f.step(k, manifest, unresolved, func(s *operatorsv1alpha1.Step) { s.Resource.Name = "for-" + csv }))
	}
	return f.plan(name, steps...)
}

// inTime fails unless a plan failed at its deadline, or later by some slack.
func (f *planFixture) inTime(p *operatorsv1alpha1.InstallPlan, slack time.Duration) {
	f.t.Helper()
	window := compattest.RetryWindow()
	if after := failedAfter(p); after < window-time.Second || after > window+slack {
		f.t.Errorf("InstallPlan %s failed %s after its start, want %s", p.Name, after, window)
	}
}

// TestDeadlines checks when a plan fails.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	window := compattest.RetryWindow()
	compattest.Check(t, "I1", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		p := f.awaiting("by-hand", "ghost")
		f.retrying(p, "ghost")
		f.fails(retryLimit(), p, "ghost")
		f.inTime(p, deadlineSlack())
	})
	compattest.Check(t, "I2-10m", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		p := f.awaiting("by-hand", "ghost")
		pause.For(t.Context(), window-3*time.Second)
		f.retrying(p, "ghost")
		f.fails(retryLimit(), p, "ghost")
		f.inTime(p, deadlineSlack())
	})
	compattest.Check(t, "I3", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		p := f.awaiting("by-hand", "ghost")
		f.retrying(p, "ghost")
		text := strings.TrimPrefix(p.Status.Message, "retrying execution due to error: ")
		f.fails(retryLimit(), p, text)
		if !strings.HasPrefix(p.Status.Message, text) || !strings.HasPrefix(p.Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled).Message, text) {
			t.Errorf("the messages do not begin with %q: %s", text, f.Manifest(p.Status))
		}
	})
	compattest.Check(t, "I4", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		p := f.awaiting("by-hand", "ghost", "wraith")
		f.retrying(p, "ghost")
		first := p.Status.StartTime
		pause.For(t.Context(), window/2)
		f.Make(f.CSV("ghost"))
		f.retrying(p, "wraith")
		f.fails(retryLimit(), p, "wraith")
		f.inTime(p, deadlineSlack())
		if moved := p.Status.StartTime.Sub(first.Time); moved < window/2-time.Second {
			t.Errorf("status.startTime moved by %s, so the second step did not have the whole retry timeout", moved)
		}
	})
	compattest.Check(t, "I5", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		p := f.awaiting("by-hand", "ghost")
		f.retrying(p, "ghost")
		pause.For(t.Context(), time.Until(p.Status.StartTime.Add(window-2*time.Second)))
		f.Make(f.CSV("ghost"))
		f.Eventually(soon(), func() string {
			if left := f.Read(p); left != "" {
				return left
			}
			switch p.Status.Phase {
			case operatorsv1alpha1.InstallPlanPhaseFailed:
				t.Fatalf("the plan failed: %s", p.Status.Message)
			case operatorsv1alpha1.InstallPlanPhaseComplete:
				return ""
			default:
			}
			return "the plan is in phase " + string(p.Status.Phase)
		})
	})
}

// TestFailedPlans checks plans that continue after a failure, or that fail for other reasons than a deadline.
func TestFailedPlans(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "I6", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		p := f.awaiting("by-hand", "ghost")
		f.fails(retryLimit(), p, "ghost")
		f.Make(f.CSV("ghost"))
		f.completeWithin(compattest.Patience, p)
	})
	compattest.Check(t, "I7", func(t *testing.T, c *compattest.Cluster) {
		f, k := newPlanFixture(t, c), kindNamed("Service")
		account := newInstallerAccount(t, f.Cluster, ruleFor("", "configmaps", "get"))
		account.use()
		p := f.plan("by-hand", f.step(k, f.manifestOf(k)))
		f.retrying(p, "forbidden")
		pause.For(t.Context(), max(compattest.RetryWindow()+deadlineSlack(), c.Rest()))
		f.retrying(p, "forbidden")
	})
	compattest.Check(t, "I10", func(t *testing.T, c *compattest.Cluster) {
		f, k := newPlanFixture(t, c), kindNamed("Role")
		p := f.plan("by-hand", f.step(k, f.manifestOf(kindNamed("ConfigMap"))))
		f.refuses(p, "Role", "ConfigMap")
	})
	compattest.Check(t, "I12", func(t *testing.T, c *compattest.Cluster) {
		f, k, versions := newPlanFixture(t, c), kindNamed("CustomResourceDefinition"), kindNamed("ClusterServiceVersion")
		f.complete(f.plan("first", f.step(k, f.manifestOf(k))))
		manifest := strings.Replace(f.Manifest(f.manifestOf(k)), `"name":"v1"`, `"name":"v2"`, 1)
		unsafe := f.step(k, nil, func(s *operatorsv1alpha1.Step) { s.Resource.Manifest = manifest })
		p := f.plan("second", f.step(versions, f.manifestOf(versions)), unsafe)
		f.fails(retryLimit(), p, "risk of data loss updating", "no ClusterServiceVersion was created")
		f.absent(f.objectOf(versions))
	})
}

// TestManyDeadlines checks when many plans fail. It is not parallel, because the load would disturb other cases.
func TestManyDeadlines(t *testing.T) {
	compattest.CheckAlone(t, "I11", func(t *testing.T, c *compattest.Cluster) {
		// A namespace keeps five plans that have ended.
		var plans []*operatorsv1alpha1.InstallPlan
		f := &planFixture{stepObjects: stepObjects{c, t}}
		for range 10 {
			in := *c
			in.Namespace = c.NewNamespace()
			in.Make(&operatorsv1.OperatorGroup{
				ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: "group"}, Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{in.Namespace}},
			})
			for i := range 5 {
				plans = append(plans, (&planFixture{stepObjects: stepObjects{&in, t}, crane: c.CSV("crane.v1")}).awaiting(fmt.Sprintf("by-hand-%d", i), fmt.Sprintf("ghost-%d", i)))
			}
		}
		// OLM retries the plans one after the other.
		slack := max(deadlineSlack(), compattest.RetryWindow()*3/4)
		for _, p := range plans {
			f.fails(retryLimit(), p, "ghost")
			f.inTime(p, slack)
		}
	})
}
