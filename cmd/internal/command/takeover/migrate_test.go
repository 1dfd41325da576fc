package takeover

import (
	"context"
	"io"
	"net/url"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/migration"
	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

// possible is an action that nothing blocks.
type possible struct{}

func (possible) Plan(context.Context) (migration.Plan, error) {
	return migration.Plan{Verdict: migration.Possible}, nil
}
func (possible) Run(context.Context) error { return nil }

// TestPlanNeedsSupervisors checks that OLM is not stopped and not removed without supervisors that replace it.
func TestPlanNeedsSupervisors(t *testing.T) {
	const home = "chandlery-system"
	labels := map[string]string{"app.kubernetes.io/name": api.LeaseName}
	deployment := func(replicas int32) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: api.LeaseName, Labels: labels}, Spec: appsv1.DeploymentSpec{Replicas: new(replicas)},
		}
	}
	rollout := deployment(2)
	rollout.Status = appsv1.DeploymentStatus{Replicas: 3, UpdatedReplicas: 1}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "supervisor-x", Labels: labels},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, Started: new(true),
		}}},
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name    string
		options migrateOptions
		objects []client.Object
		want    migration.Verdict
		says    string
	}{
		{"no supervisors", migrateOptions{}, nil, migration.Blocked, "no supervisors are installed"},
		{"stopped supervisors", migrateOptions{}, []client.Object{deployment(0)}, migration.Blocked, "0 replicas"},
		{"stopped supervisors, and OLM is to be removed", migrateOptions{finish: true}, []client.Object{deployment(0)}, migration.Blocked, "0 replicas"},
		{"stopped supervisors at a handback", migrateOptions{back: true}, []client.Object{deployment(0)}, migration.Possible, ""},
		{"pods have earlier settings", migrateOptions{}, []client.Object{rollout, pod}, migration.Blocked, "kubectl -n chandlery-system delete replicasets"},
		{"pods have earlier settings, and OLM is to be removed", migrateOptions{finish: true}, []client.Object{rollout, pod}, migration.Possible, ""},
		{"no pod has started", migrateOptions{}, []client.Object{deployment(2)}, migration.Possible, "no supervisor has started"},
		{"a supervisor waits", migrateOptions{}, []client.Object{deployment(2), pod}, migration.Possible, ""},
	} {
		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tt.objects...).Build()
		v := &migration.Verification{Options: migration.Options{Config: competing.Config{Client: c, Namespace: home, Clock: clock.RealClock{}}}}
		p, err := tt.options.plan(t.Context(), possible{}, v)
		if err != nil {
			t.Fatal(err)
		}
		if said := strings.Join(append(p.Blockers, p.Risks...), "; "); p.Verdict != tt.want || !strings.Contains(said, tt.says) || (said == "") != (tt.says == "") {
			t.Errorf("%s: %s with %q, want %s with %q", tt.name, p.Verdict, said, tt.want, tt.says)
		}
	}
}

// TestNames checks that a plan that deletes objects names them, and that a plan of a handback names the objects of each step
// with -o wide.
func TestNames(t *testing.T) {
	op := func(verb migration.Verb, kind, namespace, name string) migration.Operation {
		return migration.Operation{Verb: verb, Kind: kind, Namespace: namespace, Name: name}
	}
	deletions := []migration.Operation{
		op(migration.Delete, "Deployment", "olm", "olm-operator"), op(migration.Delete, "ConfigMap", "olm", "b"), op(migration.Delete, "Deployment", "olm", "catalog-operator"),
	}
	restoration := []migration.Operation{op(migration.Create, "Pod", "olm", "shop-x"), op(migration.RemoveConditions, "CatalogSource", "olm", "shop")}
	for _, tt := range []struct {
		name    string
		options migrateOptions
		form    string
		all     []migration.Operation
		want    string
	}{
		{"finish", migrateOptions{finish: true}, "", deletions, "Objects that are deleted, by kind:\n  - ConfigMap (1): olm/b\n  - Deployment (2): olm/catalog-operator, olm/olm-operator\n"},
		{"handback", migrateOptions{back: true}, "", restoration, ""},
		{
			"handback in full",
			migrateOptions{back: true},
			console.Wide, restoration,
			"Changes to objects before OLM starts:\n  recreate           Pod            olm/shop-x\n  remove conditions  CatalogSource  olm/shop\n",
		},
	} {
		tt.options.output.Form = tt.form
		var out strings.Builder
		if err := tt.options.show(&out, &migration.Plan{Verdict: migration.Possible, Operations: tt.all}, tt.options.direction()); err != nil || out.String() != tt.want {
			t.Errorf("%s: error %v, and\n%s\nwant\n%s", tt.name, err, out.String(), tt.want)
		}
	}
}

// TestConfirmation checks that a migration without a terminal needs --yes, and that a dry run and a plan without steps do not.
func TestConfirmation(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options options
		verdict migration.Verdict
		refused bool
	}{
		{"without a terminal", options{}, migration.Possible, true},
		{"--yes", options{yes: true}, migration.Possible, false},
		{"--dry-run", options{dryRun: true}, migration.Possible, false},
		{"nothing is left to do", options{}, migration.Done, false},
	} {
		cmd := NewMigrate("kubectl chandlery", "agent")
		cmd.SetIn(strings.NewReader("y\n"))
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		err := (&migrateOptions{options: tt.options}).confirmPlan(cmd, &migration.Plan{Verdict: tt.verdict}, takeOver())
		if (err != nil) != tt.refused || tt.refused && !strings.Contains(err.Error(), "--yes") {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestStepError checks that an interruption is not reported as an unreachable API server, and names the step.
func TestStepError(t *testing.T) {
	const address, continues = "https://cluster/deployments", "progress is recorded; run the command again to continue"
	request := func(cause error) error { return &url.Error{Op: "Get", URL: address, Err: cause} }
	for name, tt := range map[string]struct {
		err    error
		remedy string
		code   console.Code
		says   string
	}{
		"Interrupted": {err: request(context.Canceled), code: console.Interrupted, says: "interrupted at the step 'wait until the pods are deleted'; " + continues},
		"Unreachable": {err: request(io.EOF), code: console.Unreachable, says: request(io.EOF).Error() + "; " + continues},
		"Complete":    {err: request(io.EOF), remedy: "check the pods", code: console.Unreachable, says: request(io.EOF).Error() + "; check the pods"},
	} {
		o := &options{remedy: tt.remedy}
		o.onStep(io.Discard)("wait until the pods are deleted")
		if err := o.stepError(tt.err); console.CodeOf(err) != tt.code || err.Error() != tt.says {
			t.Errorf("%s: code %d and %q, want %d and %q", name, console.CodeOf(err), err, tt.code, tt.says)
		}
	}
}

// TestReport checks the text of a report, and whether the command succeeds.
func TestReport(t *testing.T) {
	expected := migration.Difference{Object: "Deployment gongs/gong", Before: "generation 1", After: "generation 2", Expected: true}
	lost := migration.Difference{Object: "Pod lamps/lamp-x", Before: "0 restarts"}
	for _, tt := range []struct {
		reason     string
		report     Report
		unexpected bool
		want       string
	}{
		{"nothing changed", Report{Leader: "pod-1_a", Compared: 7}, false, "Supervisor pod-1_a leads.\nCompared 7 objects of operators; nothing unexpected changed.\n"},
		{
			"an update was in progress",
			Report{Compared: 7, Differences: []migration.Difference{expected}},
			false,
			"Compared 7 objects of operators; nothing unexpected changed.\n" +
				"Changes by InstallPlans that were in progress:\n  - Deployment gongs/gong: generation 2, was generation 1\n",
		},
		{
			"a version works again",
			Report{Compared: 7, Differences: []migration.Difference{{Object: "ClusterServiceVersion lamps/lamp.v1", Before: "Failed", After: "Succeeded", Recovered: true}}},
			false,
			"Compared 7 objects of operators; nothing unexpected changed.\nRecovered:\n  - ClusterServiceVersion lamps/lamp.v1: Succeeded, was Failed\n",
		},
		{
			"a pod is gone",
			Report{Compared: 7, Differences: []migration.Difference{lost}},
			true,
			"Unexpected changes:\n  - Pod lamps/lamp-x: absent, was 0 restarts\n",
		},
	} {
		var out strings.Builder
		err := (&migrateOptions{}).report(&out, &tt.report)
		if out.String() != tt.want || (err != nil) != tt.unexpected {
			t.Errorf("%s: error %v, and\n%s\nwant\n%s", tt.reason, err, out.String(), tt.want)
		}
	}
}
