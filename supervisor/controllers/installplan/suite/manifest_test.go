package suite_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// planOf creates an approved plan from given steps.
func (w *world) planOf(steps ...*operatorsv1alpha1.Step) {
	w.T.Helper()
	p := &operatorsv1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "install-lamp"},
		Spec:       operatorsv1alpha1.InstallPlanSpec{ClusterServiceVersionNames: []string{"lamp.v1"}, Approval: operatorsv1alpha1.ApprovalManual, Approved: true},
	}
	w.Create(p)
	p.Status = operatorsv1alpha1.InstallPlanStatus{Phase: operatorsv1alpha1.InstallPlanPhasePlanning, CatalogSources: []string{}, Plan: steps}
	if err := w.Status().Update(w.T.Context(), p); err != nil {
		w.T.Fatal(err)
	}
}

// TestStepHoldsWhatItNames has a step that names a CustomResourceDefinition, which the supervisor
// writes with its own permissions. Its manifest is a ClusterRoleBinding.
func TestStepHoldsWhatItNames(t *testing.T) {
	w := newWorld(t)
	group := w.group("group")
	group.Spec.ServiceAccountName = "installer"
	w.Create(group, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "installer"}})
	w.UseDeployedRole()
	w.supervise(time.Hour)
	name := "everything-" + w.Namespace
	binding, err := json.Marshal(rbacv1.ClusterRoleBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.Namespace, Name: "installer"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.planOf(&operatorsv1alpha1.Step{
		Resolving: "lamp.v1", Status: operatorsv1alpha1.StepStatusUnknown,
		Resource: operatorsv1alpha1.StepResource{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Name: name, Manifest: string(binding)},
	})
	p := w.reaches(failed)
	if want := "CustomResourceDefinition " + name + ` says kind "CustomResourceDefinition", its manifest "ClusterRoleBinding"`; !strings.Contains(installed(p).Message, want) {
		t.Errorf("condition %+v", installed(p))
	}
	if err := w.Get(t.Context(), client.ObjectKey{Name: name}, &rbacv1.ClusterRoleBinding{}); !apierrors.IsNotFound(err) {
		t.Errorf("the account may do everything: %v", err)
	}
}

// TestUnreadableStepEndsThePlan has a last step whose manifest is neither JSON nor YAML.
func TestUnreadableStepEndsThePlan(t *testing.T) {
	w := newWorld(t)
	w.Create(w.group("group"))
	w.supervise(time.Hour)
	steps, err := plansteps.Steps(w.Namespace, w.bundle(settings), nil)
	if err != nil {
		t.Fatal(err)
	}
	steps[len(steps)-1].Resource.Manifest = "kind: [ConfigMap"
	w.planOf(steps...)
	if c := installed(w.reaches(failed)); !strings.Contains(c.Message, "error parsing step manifest: settings: ") {
		t.Errorf("condition %+v", c)
	}
	w.expectNothingCreated()
}

// TestLargeVersionAndDefinitionOfAnImage has a version and a definition that are too large for the
// plan. The catalog, which has the properties of the version, appears late. Until then the plan
// cannot read whether the version declares a conversion webhook.
func TestLargeVersionAndDefinitionOfAnImage(t *testing.T) {
	w := newWorld(t)
	b := w.bundle(w.crd(), settings)
	b.Properties = []plansteps.Property{{Type: "olm.package", Value: `{"packageName":"lamp","version":"1.0.0"}`}}
	b.Catalog.Namespace, b.Image = w.Namespace, "registry.example/lamp@sha256:1"
	w.Create(w.group("group"))
	w.images.content.Store(b.Image+" with ", b.Objects)
	w.supervise(time.Second)
	w.plan(b, true, 0)
	w.becomes(func(p *operatorsv1alpha1.InstallPlan) bool {
		return strings.Contains(p.Status.Message, "error applying CustomResourceDefinition") &&
			strings.Contains(p.Status.Message, "reading ClusterServiceVersion lamp.v1 for the webhook that converts")
	})
	w.expectNothingCreated()
	served := b
	served.Objects = nil
	w.shelf.put(served)
	w.reaches(complete)
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "lamp.v1"}, csv); err != nil || !strings.Contains(csv.Annotations[api.AnnotationProperties], "olm.package") {
		t.Errorf("annotations %v, error %v", csv.Annotations, err)
	}
}
