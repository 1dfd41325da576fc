package compat_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	restarted
)

// The settings --install-plan-retry-timeout of the supervisors after ledByOther, handedBack and restarted.
const (
	shortWindow   = time.Second
	mediumWindow  = 5 * time.Second
	defaultWindow = time.Minute
)

// modeOfDirectory is the path of the schema of emptyDir.mode in the definition of ClusterServiceVersions. The supervisor
// knows this field of Kubernetes 1.37.
const modeOfDirectory = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/install/properties/spec/properties/deployments/items" +
	"/properties/spec/properties/template/properties/spec/properties/volumes/items/properties/emptyDir/properties/mode"

// TestRestarts checks what the manager does after a restart, an outage of the API server, a change of leader and a
// handback. Each of these happens once for all cases, while no other test runs.
func TestRestarts(t *testing.T) {
	// A supervisor that finds OLM does not start, so OLM is removed again.
	handback := compattest.RestartManager(mediumWindow, compattest.InstallOLM, compattest.Command("takeover", "--yes", "--supervisor-namespace", "default"),
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
			if err := compattest.RestartManager(compattest.RetryWindow())(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		}
	})
	stages := compattest.NewStages(
		compattest.Prepared, compattest.StopManager, compattest.StartManager, compattest.InterruptAPIServer(4*time.Second),
		changing(compattest.ChangeLeader(shortWindow)), changing(handback),
		changing(compattest.RestartManager(defaultWindow)),
	)
	type reach = func(stage int)
	stages.Check(t, "D14", testHandback)
	stages.Check(t, "G10-Stopped", testPlanDeletedWhileStopped)
	stages.Check(t, "G18", testPlanWithoutStatus)
	stages.Check(t, "H21", testNewerField)
	stages.Check(t, "H26-Restart", testWarningsAfterRestarts)
	stages.Check(t, "I1-Default", func(t *testing.T, c *compattest.Cluster, reach reach) {
		reach(restarted)
		failsAfter(t, c, defaultWindow)
	})
	stages.Check(t, "I2-1s", func(t *testing.T, c *compattest.Cluster, reach reach) {
		reach(ledByOther)
		failsAfter(t, c, shortWindow)
	})
	stages.Check(t, "I2-5s", func(t *testing.T, c *compattest.Cluster, reach reach) {
		reach(handedBack)
		failsAfter(t, c, mediumWindow)
	})
	stages.Check(t, "I8", testDeadlineAfterRestart)
	stages.Check(t, "I9", testDeadlineInOutage)
	stages.Check(t, "K5-Start", testCopyOfLoserAtStart)
	stages.Check(t, "P6-Restart", inheritedCase{count: 10, version: lampWithAnnotations, annotations: fewPodAnnotations}.testAfterRestarts)
	stages.Check(t, "P8-Restart", inheritedCase{count: 10, version: lampOfKubectl, annotations: allPodAnnotations}.testAfterRestarts)
	stages.Check(t, "P10-Restart", inheritedCase{
		count: 1, version: lampOfKubectl, annotations: allPodAnnotations, change: []func(*appsv1.Deployment){byHand},
	}.testAfterRestarts)
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
	stages.Run()
}

// testCopyOfLoserAtStart has a copy of a version that lost a conflict, which was created while no manager ran.
func testCopyOfLoserAtStart(t *testing.T, c *compattest.Cluster, reach func(int)) {
	n := newNeighbours(t, c, "k5-start.field.example", "m")
	c.Make(n.loser)
	reaches(c, n.loser, failedPhase, conflictingGroups)
	reach(stopped)
	copied := n.formerCopy()
	c.Make(copied)
	reach(started)
	c.Gone(30*time.Second, copied)
}

// testHandback hands the cluster back to OLM.
func testHandback(t *testing.T, c *compattest.Cluster, reach func(int)) {
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
}

// testDeadlineAfterRestart restarts the manager within the retry timeout.
func testDeadlineAfterRestart(t *testing.T, c *compattest.Cluster, reach func(int)) {
	f := newPlanFixture(t, c)
	reach(prepared)
	p := f.awaiting("by-hand", "ghost")
	f.retrying(p, "ghost")
	start := p.Status.StartTime.Time
	pause.For(t.Context(), time.Until(start.Add(compattest.RetryWindow()/2)))
	reach(started)
	// The next manager takes the lead and reads the cluster first.
	trial := c.CSV("trial.v1")
	c.Make(trial)
	c.Eventually(compattest.Patience, func() string {
		if left := c.Read(trial); left != "" || trial.Status.Phase != "" {
			return left
		}
		return "the manager does not work yet"
	})
	back := time.Now()
	f.fails(retryLimit(), p, "ghost")
	failure := p.Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled).LastTransitionTime.Time
	due := start.Add(compattest.RetryWindow())
	if failure.Before(due) || failure.After(due.Add(deadlineSlack())) && failure.After(back.Add(deadlineSlack())) {
		t.Errorf("the plan was due at %s, the manager was back at %s, and the plan failed at %s", due, back, failure)
	}
	if !p.Status.StartTime.Time.Equal(start) {
		t.Errorf("status.startTime moved from %s to %s", start, p.Status.StartTime)
	}
}

// testDeadlineInOutage has an outage of the API server at the end of the retry timeout.
func testDeadlineInOutage(t *testing.T, c *compattest.Cluster, reach func(int)) {
	f := newPlanFixture(t, c)
	reach(started)
	p := f.awaiting("by-hand", "ghost")
	f.retrying(p, "ghost")
	start := p.Status.StartTime.Time
	pause.For(t.Context(), time.Until(start.Add(compattest.RetryWindow()-2*time.Second)))
	reach(interrupted)
	back := time.Now()
	f.fails(retryLimit(), p, "ghost")
	failure := p.Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled)
	if after := failure.LastTransitionTime.Sub(back); after > deadlineSlack()+restartTime {
		t.Errorf("the plan failed %s after the API server was back", after)
	}
	if !p.Status.StartTime.Time.Equal(start) || failedAfter(p) < compattest.RetryWindow() {
		t.Errorf("status.startTime was %s and is %s; the plan failed after %s", start, p.Status.StartTime, failedAfter(p))
	}
	if strings.Contains(failure.Message, "connect") {
		t.Errorf("the plan failed because of the outage: %s", failure.Message)
	}
}

// restartTime is how long a manager needs until it reads and writes the cluster again.
const restartTime = 5 * time.Second

// failsAfter checks that a plan with a failing step fails when a retry timeout has passed.
func failsAfter(t *testing.T, c *compattest.Cluster, window time.Duration) {
	t.Helper()
	f := newPlanFixture(t, c)
	p := f.awaiting("by-hand", "ghost")
	f.fails(compattest.Patience, p, "ghost")
	if after := failedAfter(p); after < window || after > window+2*time.Second {
		t.Errorf("the plan failed %s after its start, want %s", after, window)
	}
}

// testPlanDeletedWhileStopped deletes a plan that waits for approval while no manager runs.
func testPlanDeletedWhileStopped(t *testing.T, c *compattest.Cluster, reach func(int)) {
	b := newBundleFixture(t, c)
	sub := b.subscribe(b.entry("mill.v1", "1.0.0", b.bundleCSV("mill.v1")), approvedByHand)
	p := b.planOf(sub)
	b.inPhase(p, operatorsv1alpha1.InstallPlanPhaseRequiresApproval)
	reach(stopped)
	b.remove(p)
	reach(started)
	next := b.replacedBy(sub, p)
	b.inPhase(next, operatorsv1alpha1.InstallPlanPhaseRequiresApproval)
	b.onlyPlan(next)
}

// testPlanWithoutStatus stops the manager after it has created a plan and before it can write its status.
func testPlanWithoutStatus(t *testing.T, c *compattest.Cluster, reach func(int)) {
	b := newBundleFixture(t, c)
	policy := denial(c, "operators.coreos.com", "v1alpha1", "installplans/status")
	c.Make(policy...)
	trial := &operatorsv1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "trial"},
		Spec:       operatorsv1alpha1.InstallPlanSpec{Approval: operatorsv1alpha1.ApprovalManual, ClusterServiceVersionNames: []string{}},
	}
	c.Make(trial)
	c.Eventually(compattest.Patience, func() string {
		if left := c.Read(trial); left != "" {
			return left
		}
		trial.Status.Message = time.Now().String()
		trial.Status.Phase, trial.Status.CatalogSources = operatorsv1alpha1.InstallPlanPhaseRequiresApproval, []string{}
		if err := c.Status().Update(t.Context(), trial); err == nil || !strings.Contains(err.Error(), "not now") {
			return errors.Join(errors.New("the status of an InstallPlan can be written"), err).Error()
		}
		return ""
	})
	b.remove(trial)
	sub := b.subscribe(b.entry("mill.v1", "1.0.0", b.bundleCSV("mill.v1")))
	plans := &operatorsv1alpha1.InstallPlanList{}
	c.Eventually(compattest.Patience, func() string {
		if err := c.List(t.Context(), plans, client.InNamespace(c.Namespace)); err != nil || len(plans.Items) == 0 {
			return errors.Join(errors.New("the namespace has no plan"), err).Error()
		}
		return ""
	})
	if status := plans.Items[0].Status; len(status.Plan) > 0 {
		t.Fatalf("the plan has the status %s", b.Manifest(status))
	}
	reach(stopped)
	for _, o := range policy {
		b.remove(o)
	}
	reach(started)
	if p := b.installed(sub, "mill.v1"); p.UID != plans.Items[0].UID {
		t.Errorf("the Subscription refers to plan %s, not %s", p.Name, plans.Items[0].Name)
	}
	b.onlyPlan(&plans.Items[0])
}

// testWarningsAfterRestarts installs an object with an unknown field before a restart and a change of leader.
func testWarningsAfterRestarts(t *testing.T, c *compattest.Cluster, reach func(int)) {
	b := newBundleFixture(t, c)
	p := b.install(field(b.object("ConfigMap"), "1", "bogus"))
	b.warned(p, "ConfigMap", unknown("bogus"))
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: b.planFixture().nameOf(kindNamed("ConfigMap"))}}
	if left := c.Read(object); left != "" {
		t.Fatal(left)
	}
	before := object.ResourceVersion
	for _, stage := range []int{started, ledByOther} {
		reach(stage)
		c.AtRest(restTime, object)
		if object.ResourceVersion != before {
			t.Errorf("the object was written: %s", b.Manifest(object.ManagedFields))
		}
		if list := b.warnings(p); len(list) != 1 {
			t.Errorf("the plan has the warnings %q", list)
		}
	}
}

// testNewerField has a field that the definition of ClusterServiceVersions contains and the API server lacks. The
// definition changes while no manager runs: a watch that began before does not show the field.
func testNewerField(t *testing.T, c *compattest.Cluster, reach func(int)) {
	b := newBundleFixture(t, c)
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "clusterserviceversions.operators.coreos.com"}}
	patch := func(ctx context.Context, text string) {
		if err := c.Patch(ctx, definition, client.RawPatch(types.JSONPatchType, []byte(text))); err != nil {
			t.Error(err)
		}
	}
	reach(stopped)
	patch(t.Context(), `[{"op":"add","path":"`+modeOfDirectory+`","value":{"type":"integer","format":"int32"}}]`)
	t.Cleanup(func() {
		patch(context.WithoutCancel(t.Context()), `[{"op":"remove","path":"`+modeOfDirectory+`"}]`)
	})
	volumes := []any{map[string]any{"name": "a", "emptyDir": map[string]any{"mode": int64(0o755)}}}
	trial := &unstructured.Unstructured{Object: field(b.bundleCSV("trial.v1"), volumes, podSpec("volumes")...)}
	trial.SetNamespace(c.Namespace)
	c.Eventually(compattest.Patience, func() string {
		if err := c.Create(t.Context(), trial.DeepCopy(), client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
			return err.Error()
		}
		return ""
	})
	forgetModeOfDirectory(t, c)
	reach(started)
	csv := field(b.bundleCSV("mill.v1"), volumes, podSpec("volumes")...)
	b.installed(b.subscribe(b.entry("mill.v1", "1.0.0", csv)), "mill.v1")
	version := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "mill.v1"}}
	warned := func() string {
		c.Read(version)
		var messages []string
		for _, e := range c.Events(version) {
			if e.Reason == "AppliedWithWarnings" {
				messages = append(messages, e.Message)
			}
		}
		if len(messages) != 1 {
			return fmt.Sprintf("the warnings are %q", messages)
		}
		return lacks(messages[0], unknown("spec.template.spec.volumes[0].emptyDir.mode"))
	}
	d := &unstructured.Unstructured{}
	d.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	d.SetNamespace(c.Namespace)
	d.SetName("mill-v1")
	c.Eventually(compattest.Patience, warned)
	c.AtRest(restTime, d)
	if left := warned(); left != "" {
		t.Error(left)
	}
	stored, _, _ := unstructured.NestedSlice(d.Object, "spec", "template", "spec", "volumes")
	if text := c.Manifest(stored); strings.Contains(text, "mode") {
		t.Errorf("the volumes are %s", text)
	}
}
