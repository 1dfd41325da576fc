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
func (y *yard) awaiting(name string, csvs ...string) *operatorsv1alpha1.InstallPlan {
	y.t.Helper()
	var steps []*operatorsv1alpha1.Step
	for _, csv := range csvs {
		k := kindNamed("ConfigMap")
		manifest := setMetadata(setMetadata(y.hook(k), "ownerReferences", []any{ownerReference(csv, "")}), "name", "for-"+csv)
		steps = append(steps, y.step(k, manifest, unresolved, func(s *operatorsv1alpha1.Step) { s.Resource.Name = "for-" + csv }))
	}
	return y.plan(name, steps...)
}

// inTime fails unless a plan failed at its deadline.
func (y *yard) inTime(p *operatorsv1alpha1.InstallPlan) {
	y.t.Helper()
	window := compattest.RetryWindow()
	if after := failedAfter(p); after < window-time.Second || after > window+deadlineSlack() {
		y.t.Errorf("InstallPlan %s failed %s after its start, want %s", p.Name, after, window)
	}
}

// TestDeadlines checks when a plan fails.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	window := compattest.RetryWindow()
	compattest.Check(t, "I1", func(t *testing.T, c *compattest.Cluster) {
		y := newYard(t, c)
		p := y.awaiting("by-hand", "ghost")
		y.retrying(p, "ghost")
		y.fails(retryLimit(), p, "ghost")
		y.inTime(p)
	})
	compattest.Check(t, "I2-10m", func(t *testing.T, c *compattest.Cluster) {
		y := newYard(t, c)
		p := y.awaiting("by-hand", "ghost")
		pause.For(t.Context(), window-3*time.Second)
		y.retrying(p, "ghost")
		y.fails(retryLimit(), p, "ghost")
		y.inTime(p)
	})
	compattest.Check(t, "I3", func(t *testing.T, c *compattest.Cluster) {
		y := newYard(t, c)
		p := y.awaiting("by-hand", "ghost")
		y.retrying(p, "ghost")
		text := strings.TrimPrefix(p.Status.Message, "retrying execution due to error: ")
		y.fails(retryLimit(), p, text)
		if !strings.HasPrefix(p.Status.Message, text) || !strings.HasPrefix(p.Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled).Message, text) {
			t.Errorf("the messages do not begin with %q: %s", text, y.Manifest(p.Status))
		}
	})
	compattest.Check(t, "I4", func(t *testing.T, c *compattest.Cluster) {
		y := newYard(t, c)
		p := y.awaiting("by-hand", "ghost", "wraith")
		y.retrying(p, "ghost")
		first := p.Status.StartTime
		pause.For(t.Context(), window/2)
		y.Make(y.CSV("ghost"))
		y.retrying(p, "wraith")
		y.fails(retryLimit(), p, "wraith")
		y.inTime(p)
		if moved := p.Status.StartTime.Sub(first.Time); moved < window/2-time.Second {
			t.Errorf("status.startTime moved by %s, so the second step did not have the whole retry timeout", moved)
		}
	})
	compattest.Check(t, "I5", func(t *testing.T, c *compattest.Cluster) {
		y := newYard(t, c)
		p := y.awaiting("by-hand", "ghost")
		y.retrying(p, "ghost")
		pause.For(t.Context(), time.Until(p.Status.StartTime.Add(window-2*time.Second)))
		y.Make(y.CSV("ghost"))
		y.Eventually(soon(), func() string {
			if left := y.Read(p); left != "" {
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
	compattest.Check(t, "I6", func(t *testing.T, c *compattest.Cluster) {
		y := newYard(t, c)
		p := y.awaiting("by-hand", "ghost")
		y.fails(retryLimit(), p, "ghost")
		y.Make(y.CSV("ghost"))
		y.completeWithin(compattest.Patience, p)
	})
	compattest.Check(t, "I7", func(t *testing.T, c *compattest.Cluster) {
		y, k := newYard(t, c), kindNamed("Service")
		y.agent(ruleFor("", "configmaps", "get"))
		y.useAgent()
		p := y.plan("by-hand", y.step(k, y.hook(k)))
		y.retrying(p, "forbidden")
		pause.For(t.Context(), max(window+deadlineSlack(), c.Rest()))
		y.retrying(p, "forbidden")
	})
	compattest.Check(t, "I10", func(t *testing.T, c *compattest.Cluster) {
		y, k := newYard(t, c), kindNamed("Role")
		p := y.plan("by-hand", y.step(k, y.hook(kindNamed("ConfigMap"))))
		y.refuses(p, "Role", "ConfigMap")
	})
	compattest.Check(t, "I12", func(t *testing.T, c *compattest.Cluster) {
		y, k, versions := newYard(t, c), kindNamed("CustomResourceDefinition"), kindNamed("ClusterServiceVersion")
		y.complete(y.plan("first", y.step(k, y.hook(k))))
		manifest := strings.Replace(y.Manifest(y.hook(k)), `"name":"v1"`, `"name":"v2"`, 1)
		unsafe := y.step(k, nil, func(s *operatorsv1alpha1.Step) { s.Resource.Manifest = manifest })
		p := y.plan("second", y.step(versions, y.hook(versions)), unsafe)
		y.fails(retryLimit(), p, "risk of data loss updating")
		y.absent(y.object(versions))
	})
}

// TestManyDeadlines checks when many plans fail. It is not parallel, because the load would disturb other cases.
func TestManyDeadlines(t *testing.T) {
	compattest.CheckAlone(t, "I11", func(t *testing.T, c *compattest.Cluster) {
		// A namespace keeps five plans that have ended.
		var plans []*operatorsv1alpha1.InstallPlan
		y := &yard{Cluster: c, t: t}
		for range 10 {
			in := *c
			in.Namespace = c.NewNamespace()
			in.Make(&operatorsv1.OperatorGroup{
				ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: "group"}, Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{in.Namespace}},
			})
			for i := range 5 {
				plans = append(plans, (&yard{Cluster: &in, t: t, crane: c.CSV("crane.v1")}).awaiting(fmt.Sprintf("by-hand-%d", i), fmt.Sprintf("ghost-%d", i)))
			}
		}
		for _, p := range plans {
			y.fails(retryLimit(), p, "ghost")
			y.inTime(p)
		}
	})
}
