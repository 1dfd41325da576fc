package suite_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// TestUpgradeOfWhatAnotherManagerInstalled upgrades an operator whose objects were created with
// plain writes. Fields that the new bundle lacks are removed; fields that users added stay.
func TestUpgradeOfWhatAnotherManagerInstalled(t *testing.T) {
	for _, manager := range []string{"olm", "catalog", "backup-tool"} {
		t.Run(manager, func(t *testing.T) { adoptsFrom(t, manager) })
	}
}

func adoptsFrom(t *testing.T, manager string) {
	t.Helper()
	w := newWorld(t)
	before := w.version("lamp.v0", "lamp")
	w.Create(w.group("group"))
	meta := metav1.ObjectMeta{
		Namespace: w.Namespace, Name: "lamp-objects", OwnerReferences: ownedBy(before),
		Labels: map[string]string{"olm.managed": "true"}, Annotations: map[string]string{"old": "1"},
	}
	service := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"old": "1"}, Ports: []corev1.ServicePort{{Name: "https", Port: 443}},
	}}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: meta, Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1))}}
	account := &corev1.ServiceAccount{ObjectMeta: meta, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}}}
	settings := &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"old": "1", "kept": "1"}}
	objects := []client.Object{service, budget, account, settings}
	for _, o := range objects {
		if err := w.Client.Create(t.Context(), o, client.FieldOwner(manager)); err != nil {
			t.Fatal(err)
		}
		theirs := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"theirs":"1"}}}`))
		if err := w.Patch(t.Context(), o, theirs, client.FieldOwner("kubectl-edit")); err != nil {
			t.Fatal(err)
		}
	}
	w.supervise(time.Second)
	b := w.bundle(
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"lamp-objects"},"spec":{"clusterIP":"None","selector":{"new":"1"},"ports":[{"name":"https","port":8443}]}}`,
		`{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"lamp-objects"},"spec":{"maxUnavailable":1}}`,
		`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"lamp-objects"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"lamp-objects"},"data":{"kept":"2"}}`)
	b.Replaces = "lamp.v0"
	w.plan(b, true, plansteps.MaxInline)
	p := w.becomes(func(p *operatorsv1alpha1.InstallPlan) bool {
		return p.Status.Phase == complete || p.Status.Phase == failed
	})
	if p.Status.Phase != complete {
		t.Fatalf("the upgrade ends: %s\n%v", installed(p).Message, statuses(p))
	}
	for _, o := range objects {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"theirs": "1"}
		if o == account {
			want["old"] = "1" // A ServiceAccount keeps its annotations, as with OLM.
		}
		if diff := cmp.Diff(want, o.GetAnnotations()); diff != "" {
			t.Errorf("%T: annotations (-want +got):\n%s", o, diff)
		}
		if refs := o.GetOwnerReferences(); len(refs) != 2 {
			t.Errorf("%T: owners %v, want both versions", o, refs)
		}
	}
	if ports := service.Spec.Ports; len(ports) != 1 || ports[0].Port != 8443 || service.Spec.ClusterIP != corev1.ClusterIPNone {
		t.Errorf("Service %+v", service.Spec)
	}
	if diff := cmp.Diff(map[string]string{"new": "1"}, service.Spec.Selector); diff != "" {
		t.Errorf("selector (-want +got):\n%s", diff)
	}
	if budget.Spec.MinAvailable != nil || budget.Spec.MaxUnavailable == nil {
		t.Errorf("PodDisruptionBudget %+v", budget.Spec)
	}
	if len(account.ImagePullSecrets) != 1 {
		t.Errorf("the ServiceAccount lost its pull secrets: %v", account.ImagePullSecrets)
	}
	if diff := cmp.Diff(map[string]string{"kept": "2"}, settings.Data); diff != "" {
		t.Errorf("ConfigMap (-want +got):\n%s", diff)
	}
}

// TestTakeOverIsReported installs an operator over the ConfigMap of a user, and over one of a removed
// operator, which needs no Event.
func TestTakeOverIsReported(t *testing.T) {
	w := newWorld(t)
	w.Create(w.group("group"),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "settings"}, Data: map[string]string{"mine": "1"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "left", Labels: map[string]string{"olm.managed": "true"}}})
	w.supervise(time.Second)
	w.plan(w.bundle(settings, strings.Replace(settings, `"settings"`, `"left"`, 1)), true, plansteps.MaxInline)
	w.reaches(complete)
	w.Eventually(func(g gomega.Gomega) {
		list := &eventsv1.EventList{}
		g.Expect(w.List(t.Context(), list, client.InNamespace(w.Namespace))).To(gomega.Succeed())
		var notes []string
		for i := range list.Items {
			if e := &list.Items[i]; e.Reason == "ObjectTakenOver" && e.Regarding.Name == "install-lamp" {
				notes = append(notes, e.Note)
			}
		}
		g.Expect(notes).To(gomega.HaveExactElements(gomega.And(
			gomega.ContainSubstring("/settings existed without an owner; it now has the content of lamp.v1"))))
	}).Should(gomega.Succeed())
}
