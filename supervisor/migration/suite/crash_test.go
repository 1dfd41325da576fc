package suite_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/migration"
	"github.com/chandlery/chandlery/supervisor/migration/competing"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/olmobjects"
	"github.com/chandlery/chandlery/test/testenv"
)

// manyWrites exceeds the number of writes of a takeover or a handback.
const manyWrites = 40

func TestMain(m *testing.M) {
	os.Exit(testenv.Main(m, controlplane.Options{}, testenv.InstallCRDs))
}

// errDead is the error of a dead process.
var errDead = errors.New("the process is dead")

// mortal is a client of a process that dies at its nth write, either before the write or after it without a
// result.
type mortal struct {
	client.Client

	at     int64
	sent   bool
	writes atomic.Int64
}

func (m *mortal) wrap(c client.WithWatch) client.Client {
	write := func(do func() error) error {
		n := m.writes.Add(1)
		switch {
		case n > m.at, n == m.at && !m.sent:
			return errDead
		case n == m.at:
			return errors.Join(do(), errDead)
		default:
			return do()
		}
	}
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if _, question := o.(*authorizationv1.SubjectAccessReview); question {
				return c.Create(ctx, o, opts...)
			}
			return write(func() error { return c.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return write(func() error { return c.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return write(func() error { return c.Patch(ctx, o, p, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return write(func() error { return c.Delete(ctx, o, opts...) })
		},
	})
}

// TestDiesAtEveryWrite takes over with processes that die, one write later each time, and with one that does
// not. Then it hands back in the same way.
func TestDiesAtEveryWrite(t *testing.T) {
	c := controlplane.Client(t)
	home := controlplane.Namespace(t)
	w := olmobjects.New(c)
	if err := errors.Join(w.InstallOLM(t.Context()), w.Catalog(t.Context(), "hosted", "registry.example.com/catalog@sha256:"+strings.Repeat("a", 64), "")); err != nil {
		t.Fatal(err)
	}
	supervisors(t, c, home)
	options := func(c client.Client) migration.Options {
		return migration.Options{Config: competing.Config{Client: c, Namespace: home, Clock: clock.RealClock{}}, OnStep: func(string) {}}
	}
	takeOver := func(c client.Client) error {
		return (&migration.Takeover{Options: options(c), Again: true}).Run(t.Context())
	}
	handBack := func(c client.Client) error { return (&migration.Handback{Options: options(c)}).Run(t.Context()) }
	for _, sent := range []bool{false, true} {
		for n := int64(1); ; n++ {
			if n > manyWrites {
				t.Fatal("it never comes to an end")
			}
			name := fmt.Sprintf("write %d, sent %v", n, sent)
			there, back := &mortal{at: n, sent: sent}, &mortal{at: n, sent: sent}
			first := takeOver(there.wrap(c))
			if err := takeOver(c); err != nil {
				t.Fatalf("%s: going on: %v", name, err)
			}
			isTakenOver(t, c, home, name)
			work(t, c)
			scaleSupervisors(t, c, home)
			second := handBack(back.wrap(c))
			if err := handBack(c); err != nil {
				t.Fatalf("%s: going on to hand back: %v", name, err)
			}
			isHandedBack(t, c, home, name)
			areStopped(t, c, home, name)
			if first == nil && second == nil {
				const least = 6
				if n < least {
					t.Errorf("only %d writes", n)
				}
				break
			}
			for _, err := range []error{first, second} {
				if err != nil && !errors.Is(err, errDead) {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
	handsBackLosses(t, c, options(c))
	startsOLMFirst(t, c, options(c))
}

// startsOLMFirst hands back a cluster whose supervisors serve a catalog. OLM must have its replicas before the handback
// waits for the pod of the catalog. The replicas of the catalog must serve until then.
func startsOLMFirst(t *testing.T, c client.WithWatch, o migration.Options) {
	t.Helper()
	if err := (&migration.Takeover{Options: o}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	work(t, c)
	pods := client.MatchingLabels{"olm.catalogSource": "hosted"}
	if err := c.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace("olm"), pods, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	reads := 0
	read := func() {
		reads++
		olm, replicas := &appsv1.Deployment{}, &appsv1.Deployment{}
		err := errors.Join(c.Get(t.Context(), client.ObjectKey{Namespace: "olm", Name: "catalog-operator"}, olm),
			c.Get(t.Context(), client.ObjectKey{Namespace: "olm", Name: "hosted"}, replicas))
		if err != nil || *olm.Spec.Replicas != 1 || replicas.DeletionTimestamp != nil {
			t.Errorf("while the handback waits for a pod: %v, OLM has %d replicas, the replicas of the catalog end at %v",
				err, *olm.Spec.Replicas, replicas.DeletionTimestamp)
		}
	}
	o.Client = interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, pod := o.(*corev1.Pod); pod {
				read()
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, pods := list.(*corev1.PodList); pods {
				read()
			}
			return c.List(ctx, list, opts...)
		},
	})
	if err := (&migration.Handback{Options: o}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	isHandedBack(t, c, o.Namespace, "with a catalog")
	if reads == 0 {
		t.Error("the handback did not wait for the pod of the catalog")
	}
}

// lose deletes ConfigMaps of the record.
func lose(t *testing.T, c client.Client, home string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := c.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
}

// handsBackLosses takes over, deletes the record or a part of it, and hands back the rest. OLM must still be
// started.
func handsBackLosses(t *testing.T, c client.Client, o migration.Options) {
	t.Helper()
	m, back := &migration.Takeover{Options: o, Again: true}, &migration.Handback{Options: o}
	const record, images = migration.RecordName, migration.RecordName + "-0"
	for _, tt := range []struct {
		reason string
		lost   []string
		says   string
	}{
		{"what OLM had made", []string{images}, images},
		{"the record", []string{record}, "1 ConfigMaps with recorded objects"},
		{"both", []string{record, images}, "0 ConfigMaps with recorded objects"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			if err := m.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			isTakenOver(t, c, m.Namespace, tt.reason)
			lose(t, c, m.Namespace, tt.lost...)
			if tt.lost[0] == images {
				if p, err := m.Plan(t.Context()); err != nil || p.Verdict != migration.Done || !strings.Contains(strings.Join(p.Risks, ""), tt.says) {
					t.Errorf("a plan to take over: %v, %v, %v", p.Verdict, p.Risks, err)
				}
			}
			if tt.lost[0] == record {
				needsNamespace(t, o)
			}
			p, err := back.Plan(t.Context())
			if err != nil || p.Verdict != migration.Possible || !strings.Contains(strings.Join(p.Risks, ""), tt.says) {
				t.Fatalf("a plan to hand back: %v, %v, %v", p.Verdict, p.Risks, err)
			}
			if err := back.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			isHandedBack(t, c, m.Namespace, tt.reason)
		})
	}
	if err := m.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	elsewhere := *back
	elsewhere.Namespace = "default"
	if p, err := elsewhere.Plan(t.Context()); err != nil || p.Verdict != migration.Blocked || !strings.Contains(strings.Join(p.Blockers, ""), "--supervisor-namespace "+m.Namespace) {
		t.Errorf("from another namespace: %v, %v, %v", p.Verdict, p.Blockers, err)
	}
	if err := back.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// needsNamespace checks that a handback without a record refuses to begin in a namespace that does not exist.
func needsNamespace(t *testing.T, o migration.Options) {
	t.Helper()
	o.Namespace = "absent"
	back := &migration.Handback{Options: o}
	want := []string{"namespace absent is gone, and the record of the takeover with it; create it, because a handback writes its progress there: kubectl create namespace absent"}
	if p, err := back.Plan(t.Context()); err != nil || p.Verdict != migration.Blocked || !slices.Equal(p.Blockers, want) {
		t.Errorf("without a namespace: %v, %v, %v", p.Verdict, p.Blockers, err)
	}
	if err := back.Run(t.Context()); !errors.Is(err, migration.ErrRefused) {
		t.Errorf("without a namespace: %v", err)
	}
}

// isTakenOver checks that OLM is stopped, and that its previous state is recorded.
func isTakenOver(t *testing.T, c client.Client, home, when string) {
	t.Helper()
	for _, name := range []string{"olm-operator", "catalog-operator"} {
		d := &appsv1.Deployment{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "olm", Name: name}, d); err != nil {
			t.Fatal(err)
		}
		if *d.Spec.Replicas != 0 || d.Labels[api.LabelTakenOver] != "1" {
			t.Errorf("%s: Deployment %s has %d replicas and the labels %v", when, name, *d.Spec.Replicas, d.Labels)
		}
	}
	cm := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: home, Name: migration.RecordName}, cm); err != nil {
		t.Fatal(err)
	}
	record := strings.Join(strings.Fields(cm.Data["record.json"]), "")
	for _, part := range []string{`"phase":"TakenOver"`, `"name":"olm-operator","replicas":1`, `"name":"catalog-operator","replicas":1`, `"images":1`} {
		if !strings.Contains(record, part) {
			t.Errorf("%s: the record lacks %s: %s", when, part, record)
		}
	}
	if err := migration.NewRecords(c, home).Check(t.Context()); err != nil {
		t.Errorf("%s: %v", when, err)
	}
}

// supervisors creates the Deployment of the supervisors, with 0 replicas.
func supervisors(t *testing.T, c client.Client, home string) {
	t.Helper()
	labels := map[string]string{"app.kubernetes.io/name": api.LeaseName, "shop.example/team": "blue"}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: api.LeaseName, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "supervisor", Image: "registry.example.com/supervisor"}}},
			},
		},
	}
	if err := c.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

// scaleSupervisors scales the Deployment of the supervisors up, as a user does before each takeover.
func scaleSupervisors(t *testing.T, c client.Client, home string) {
	t.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: api.LeaseName}}
	if err := c.Patch(t.Context(), d, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":2}}`))); err != nil {
		t.Fatal(err)
	}
}

// areStopped checks that the supervisors have 0 replicas and their labels. A later handback finds their Deployment
// by its labels.
func areStopped(t *testing.T, c client.Client, home, when string) {
	t.Helper()
	d := &appsv1.Deployment{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: home, Name: api.LeaseName}, d); err != nil {
		t.Fatal(err)
	}
	if *d.Spec.Replicas != 0 || !maps.Equal(d.Labels, d.Spec.Template.Labels) {
		t.Errorf("%s: the supervisors have %d replicas and the labels %v", when, *d.Spec.Replicas, d.Labels)
	}
}

// work makes the changes of a supervisor to OLM's objects.
func work(t *testing.T, c client.Client) {
	t.Helper()
	source := &operatorsv1alpha1.CatalogSource{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "olm", Name: "hosted"}, source); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app.kubernetes.io/managed-by": "chandlery-supervisor", "olm.catalogSource": "hosted"}
	replicas := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "hosted", Labels: labels, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "operators.coreos.com/v1alpha1", Kind: "CatalogSource", Name: source.Name, UID: source.UID},
		}},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "registry", Image: "registry.example.com/registry"}}},
			},
		},
	}
	if err := c.Create(t.Context(), replicas, client.FieldOwner("chandlery-supervisor")); err != nil {
		t.Fatal(err)
	}
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "hosted-unpack-bundles"}}
	if err := c.Delete(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "hosted"}}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"chandlery.dev/applied-hash":"x"},"labels":{"olm.service-spec-hash":"y"}}}`))
	if err := c.Patch(t.Context(), service, patch, client.FieldOwner("chandlery-supervisor")); err != nil {
		t.Fatal(err)
	}
	plan := &operatorsv1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: "olm", GenerateName: "install-"},
		Spec:       operatorsv1alpha1.InstallPlanSpec{ClusterServiceVersionNames: []string{"lamp.v1"}, Approval: operatorsv1alpha1.ApprovalAutomatic, Approved: true},
	}
	if err := c.Create(t.Context(), plan, client.FieldOwner("chandlery-supervisor")); err != nil {
		t.Fatal(err)
	}
	plan.Status = operatorsv1alpha1.InstallPlanStatus{Phase: operatorsv1alpha1.InstallPlanPhasePlanning, CatalogSources: []string{}}
	if err := c.Status().Update(t.Context(), plan, client.FieldOwner("chandlery-supervisor")); err != nil {
		t.Fatal(err)
	}
}

// isHandedBack checks that everything is restored.
func isHandedBack(t *testing.T, c client.Client, home, when string) {
	t.Helper()
	for _, name := range []string{"olm-operator", "catalog-operator"} {
		d := &appsv1.Deployment{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "olm", Name: name}, d); err != nil {
			t.Fatal(err)
		}
		if _, marked := d.Labels[api.LabelTakenOver]; *d.Spec.Replicas != 1 || marked {
			t.Errorf("%s: Deployment %s has %d replicas and the labels %v", when, name, *d.Spec.Replicas, d.Labels)
		}
	}
	service := &corev1.Service{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "olm", Name: "hosted"}, service); err != nil {
		t.Fatal(err)
	}
	if len(service.Annotations) != 0 || service.Labels["olm.service-spec-hash"] == "y" {
		t.Errorf("%s: Service hosted: annotations %v, labels %v", when, service.Annotations, service.Labels)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "olm", Name: "hosted-unpack-bundles"}, &networkingv1.NetworkPolicy{}); err != nil {
		t.Errorf("%s: %v", when, err)
	}
	testenv.Until(t, testenv.Patience, "the replicas of the catalog to be deleted", func(ctx context.Context) string {
		if err := c.Get(ctx, client.ObjectKey{Namespace: "olm", Name: "hosted"}, &appsv1.Deployment{}); !apierrors.IsNotFound(err) {
			return fmt.Sprint(err)
		}
		return ""
	})
	var plans operatorsv1alpha1.InstallPlanList
	if err := c.List(t.Context(), &plans, client.InNamespace("olm")); err != nil {
		t.Fatal(err)
	}
	if len(plans.Items) != 0 {
		t.Errorf("%s: %d InstallPlans without steps are left", when, len(plans.Items))
	}
	var records corev1.ConfigMapList
	if err := c.List(t.Context(), &records, client.InNamespace(home), client.HasLabels{"chandlery.dev/takeover"}); err != nil {
		t.Fatal(err)
	}
	if len(records.Items) != 0 {
		t.Errorf("%s: %d ConfigMaps are left", when, len(records.Items))
	}
}

// TestOpenShift checks that objects which OpenShift manages are not changed.
func TestOpenShift(t *testing.T) {
	c := controlplane.Client(t)
	home := controlplane.Namespace(t)
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: home, Name: "olm-operator", Labels: map[string]string{"app": "olm-operator"},
			Annotations: map[string]string{"include.release.openshift.io/self-managed-high-availability": "true"},
		},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "kept"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "kept"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "olm-operator", Image: "registry.example.com/operator-lifecycle-manager:v4", Command: []string{"/bin/olm"}}}},
			},
		},
	}
	if err := c.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := c.Delete(ctx, d); err != nil {
			t.Error(err)
		}
	})
	m := &migration.Takeover{Options: migration.Options{
		Config: competing.Config{Client: c, Namespace: home, ManagerNamespaces: []string{home}, Clock: clock.RealClock{}},
		OnStep: func(step string) { t.Error(step) },
	}}
	err := m.Run(t.Context())
	if !errors.Is(err, migration.ErrRefused) || !strings.Contains(err.Error(), "leave this cluster to its OLM") {
		t.Errorf("error %v", err)
	}
}
