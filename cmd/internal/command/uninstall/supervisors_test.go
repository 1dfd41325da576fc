package uninstall

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// supervisor returns a Deployment of supervisors.
func supervisor(namespace string, ready int32) client.Object {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: supervisorName, Labels: map[string]string{labelName: supervisorName}},
		Status:     appsv1.DeploymentStatus{ReadyReplicas: ready},
	}
}

// pod returns a pod of supervisors.
func pod(namespace, name string) client.Object {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{labelName: supervisorName}}}
}

// lease returns a Lease that was renewed some time ago.
func lease(namespace, holder string, age time.Duration) client.Object {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: api.LeaseName},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new(holder), LeaseDurationSeconds: new(int32(15)), RenewTime: new(metav1.NewMicroTime(time.Now().Add(-age))),
		},
	}
}

// cluster returns a client for objects.
func cluster(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(fixtures.Scheme(t)).WithObjects(objects...).
		WithIndex(&coordinationv1.Lease{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).Build()
}

// TestObstacles covers the supervisors that must not be removed, or left without the kinds.
func TestObstacles(t *testing.T) {
	t.Parallel()
	const (
		elsewhere = "Deployment dock/chandlery-supervisor is a supervisor in another namespace than home. To uninstall it, set --supervisor-namespace=dock"
		another   = "Deployment dock/chandlery-supervisor is another supervisor. Uninstall it first, without --everything and with --supervisor-namespace=dock"
		remedy    = "Set --supervisor-namespace to the namespace of its Deployment. To skip the clean-up of operators, stop the supervisor and wait until its Lease expires"
		outside   = "supervisor a_1 leads (Lease dock/chandlery-supervisor), and is not in namespace home. " + remedy
		unready   = "supervisor a_1 leads (Lease home/chandlery-supervisor), but no supervisor in namespace home is ready. " + remedy
	)
	fresh, expired := time.Second, time.Minute
	for name, tt := range map[string]struct {
		objects []client.Object
		// product and everything are the obstacles to each of the plans.
		product, everything []string
	}{
		"None":           {},
		"Here":           {objects: []client.Object{supervisor("home", 1), lease("home", "a_1", fresh)}},
		"Waiting":        {objects: []client.Object{supervisor("home", 1)}},
		"Stopped":        {objects: []client.Object{supervisor("home", 0), lease("home", "a_1", expired)}},
		"Released":       {objects: []client.Object{lease("dock", "", fresh)}},
		"Unready":        {objects: []client.Object{supervisor("home", 0), lease("home", "a_1", fresh)}, everything: []string{unready}},
		"LeaseElsewhere": {objects: []client.Object{supervisor("home", 1), pod("home", "a"), lease("dock", "a_1", fresh)}},
		"Process":        {objects: []client.Object{lease("dock", "a_1", fresh)}, everything: []string{outside}},
		"OtherLeader":    {objects: []client.Object{supervisor("home", 1), pod("home", "b"), lease("dock", "a_1", fresh)}, everything: []string{outside}},
		"Elsewhere":      {objects: []client.Object{supervisor("dock", 1), lease("dock", "a_1", fresh)}, product: []string{elsewhere}, everything: []string{elsewhere}},
		"StoppedThere":   {objects: []client.Object{supervisor("dock", 0)}, product: []string{elsewhere}, everything: []string{elsewhere}},
		"Two":            {objects: []client.Object{supervisor("home", 1), supervisor("dock", 0), lease("home", "a_1", fresh)}, everything: []string{another}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := readSupervisors(t.Context(), cluster(t, tt.objects...), "home", time.Now())
			if err != nil {
				t.Fatal(err)
			}
			for everything, want := range map[bool][]string{false: tt.product, true: tt.everything} {
				if diff := cmp.Diff(want, s.obstacles("home", everything)); diff != "" {
					t.Errorf("everything: %v (-want +got):\n%s", everything, diff)
				}
				if diff := cmp.Diff(want, NewPlan(&Inventory{Namespace: "home", Supervisors: s}, everything).Blockers); diff != "" {
					t.Errorf("plan, everything: %v (-want +got):\n%s", everything, diff)
				}
			}
		})
	}
}

// TestRemoveBesideLeader checks that a leader that was found after the plan keeps its operators.
func TestRemoveBesideLeader(t *testing.T) {
	t.Parallel()
	version := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "lamp.v1", Finalizers: finalizers()}}
	c := cluster(t, version, lease("dock", "a_1", time.Second))
	r := remover{client: c, namespace: "home", timeout: time.Second, report: func(step string) { t.Error(step) }}
	err := r.remove(t.Context(), &Plan{Everything: true})
	if coded, is := errors.AsType[*console.Coded](err); !is || coded.Code != console.Negative {
		t.Errorf("error %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(version), version); err != nil || len(version.Finalizers) != 2 || !version.DeletionTimestamp.IsZero() {
		t.Errorf("the version changed: %+v, %v", version.ObjectMeta, err)
	}
}
