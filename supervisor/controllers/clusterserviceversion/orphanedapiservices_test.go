package clusterserviceversion

import (
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// orphanClient returns a client of objects in memory, which include APIServices as metadata.
func orphanClient(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, operatorsv1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	s.AddKnownTypeWithName(webhook.APIServiceKind(), &metav1.PartialObjectMetadata{})
	s.AddKnownTypeWithName(webhook.APIServiceKind().GroupVersion().WithKind("APIServiceList"), &metav1.PartialObjectMetadataList{})
	return fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).Build()
}

// TestOrphanedAPIServices checks which APIServices are deleted, and when.
func TestOrphanedAPIServices(t *testing.T) {
	csv := kettle()
	labels := func(change ...string) map[string]string {
		out := map[string]string(ownership.Labels(csv))
		for i := 0; i < len(change); i += 2 {
			out[change[i]] = change[i+1]
			if change[i+1] == "" {
				delete(out, change[i])
			}
		}
		return out
	}
	copied := kettle()
	copied.Labels = map[string]string{"olm.copiedFrom": "elsewhere"}
	for name, tc := range map[string]struct {
		labels       map[string]string
		cached, live []client.Object
		deleted      bool
	}{
		"NoVersion":   {labels(), nil, nil, true},
		"Version":     {labels(), []client.Object{csv}, []client.Object{csv}, false},
		"StaleCache":  {labels(), nil, []client.Object{csv}, false},
		"Copy":        {labels(), []client.Object{copied}, []client.Object{copied}, true},
		"OtherKind":   {labels("olm.owner.kind", "OperatorGroup"), nil, nil, false},
		"LowerCase":   {labels("olm.owner.kind", "clusterserviceversion"), nil, nil, false},
		"NoName":      {labels("olm.owner", ""), nil, nil, false},
		"NoNamespace": {labels("olm.owner.namespace", ""), nil, nil, false},
		"NoLabels":    {nil, nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			service := apiServiceMetadata()
			service.Name, service.UID, service.Labels = "v1.hats.example", "uid-2", tc.labels
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: csv.Namespace}}
			var objects []client.Object
			for _, o := range append(tc.cached, service) {
				objects = append(objects, o.DeepCopyObject().(client.Object)) //nolint:forcetypeassert // each is one
			}
			c := orphanClient(t, objects...)
			clock, recorder := clocktesting.NewFakeClock(noon()), events.NewFakeRecorder(8)
			r := &orphanReconciler{client: c, live: orphanClient(t, append(tc.live, ns)...), clock: clock, events: recorder, absent: map[string]absence{}}
			req := reconcile.Request{NamespacedName: types.NamespacedName{Name: service.Name}}
			var exists [3]bool
			for i := range exists {
				result, err := r.Reconcile(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}
				err = c.Get(t.Context(), req.NamespacedName, apiServiceMetadata())
				if err != nil && !apierrors.IsNotFound(err) {
					t.Fatal(err)
				}
				exists[i] = err == nil
				if waits := tc.deleted && i < 2; waits != (result.RequeueAfter > 0) {
					t.Errorf("pass %d: the next pass is in %s", i, result.RequeueAfter)
				}
				clock.Step(6 * time.Second)
			}
			if want := [3]bool{true, true, !tc.deleted}; exists != want {
				t.Errorf("exists %v, want %v", exists, want)
			}
			if got := len(recorder.Events) > 0; got != tc.deleted {
				t.Errorf("an Event: %v, want %v", got, tc.deleted)
			}
		})
	}
}

// TestRecreatedOwner checks that the delay begins again with another absence.
func TestRecreatedOwner(t *testing.T) {
	csv := kettle()
	service := apiServiceMetadata()
	service.Name, service.UID, service.Labels = "v1.hats.example", "uid-2", ownership.Labels(csv)
	c := orphanClient(t, service)
	clock := clocktesting.NewFakeClock(noon())
	r := &orphanReconciler{client: c, live: c, clock: clock, events: events.NewFakeRecorder(8), absent: map[string]absence{}}
	pass := func() {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: service.Name}}); err != nil {
			t.Fatal(err)
		}
		clock.Step(6 * time.Second)
	}
	pass()
	if err := c.Create(t.Context(), csv); err != nil {
		t.Fatal(err)
	}
	pass()
	if err := c.Delete(t.Context(), csv); err != nil {
		t.Fatal(err)
	}
	pass()
	pass()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(service), apiServiceMetadata()); err != nil {
		t.Errorf("6 s after the second absence began: %v", err)
	}
	pass()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(service), apiServiceMetadata()); !apierrors.IsNotFound(err) {
		t.Errorf("the APIService still exists, error %v", err)
	}
}
