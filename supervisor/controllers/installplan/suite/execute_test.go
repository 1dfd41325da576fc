package suite_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api/olmtext"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/testenv"
)

const (
	asking   = operatorsv1alpha1.InstallPlanPhaseRequiresApproval
	working  = operatorsv1alpha1.InstallPlanPhaseInstalling
	complete = operatorsv1alpha1.InstallPlanPhaseComplete
	failed   = operatorsv1alpha1.InstallPlanPhaseFailed
)

// phases collects the phases of a plan until Complete.
func phases(t *testing.T, events <-chan watch.Event) []string {
	t.Helper()
	var list []string
	deadline := time.After(testenv.Patience)
	for {
		select {
		case e := <-events:
			p, ok := e.Object.(*operatorsv1alpha1.InstallPlan)
			if !ok {
				t.Fatalf("event %+v", e)
			}
			if n := len(list); n == 0 || list[n-1] != string(p.Status.Phase) {
				list = append(list, string(p.Status.Phase))
			}
			if p.Status.Phase == complete {
				return list
			}
		case <-deadline:
			t.Fatalf("the plan does not complete: %v", list)
		}
	}
}

func TestApprovedPlanIsExecuted(t *testing.T) {
	w := newWorld(t)
	watching, err := client.NewWithWatch(controlplane.Get(t).Config(), client.Options{Scheme: w.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	watcher, err := watching.Watch(t.Context(), &operatorsv1alpha1.InstallPlanList{}, client.InNamespace(w.Namespace))
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	w.Create(w.group("group"), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "settings"}, Data: map[string]string{"theirs": "kept"}})
	w.supervise(time.Minute)
	w.plan(w.bundle(settings, w.crd(), strings.Replace(settings, "settings", "more", 1)), false, plansteps.MaxInline)
	p := w.reaches(asking)
	if p.Status.Message != "" {
		t.Errorf("a plan that waits for its approval says %q", p.Status.Message)
	}
	if got := w.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "lamp.v1"}, &operatorsv1alpha1.ClusterServiceVersion{}); client.IgnoreNotFound(got) != nil || got == nil {
		t.Errorf("before the approval, reading the version gives %v", got)
	}
	p.Spec.Approved = true
	if err := w.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"", "Planning", string(asking), string(working), string(complete)}, phases(t, watcher.ResultChan())); diff != "" {
		t.Errorf("phases (-want +got):\n%s", diff)
	}
	p = w.read()
	want := []string{
		"ClusterServiceVersion=Created", "CustomResourceDefinition=Created", "ServiceAccount=Created", "Role=Created", "RoleBinding=Created",
		"ConfigMap=Created", "ConfigMap=Present",
	}
	if diff := cmp.Diff(want, statuses(p)); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if installed(p).Status != corev1.ConditionTrue || p.Status.Message != "" || p.Status.StartTime == nil {
		t.Errorf("status %+v", p.Status)
	}
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "lamp.v1"}, csv); err != nil {
		t.Fatal(err)
	}
	found := w.settings()
	if diff := cmp.Diff(map[string]string{"a": "b", "theirs": "kept"}, found.Data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	if refs := found.OwnerReferences; len(refs) != 1 || refs[0].UID != csv.UID || refs[0].Kind != "ClusterServiceVersion" {
		t.Errorf("owners %+v", refs)
	}
}

func TestPlanWaitsForOneOperatorGroup(t *testing.T) {
	w := newWorld(t)
	w.supervise(time.Minute)
	w.plan(w.bundle(settings), true, plansteps.MaxInline)
	w.becomes(func(p *operatorsv1alpha1.InstallPlan) bool {
		return p.Status.Phase == working && installed(p).Reason == operatorsv1alpha1.InstallPlanReasonInstallCheckFailed &&
			strings.Contains(installed(p).Message, "no operator group found that is managing this namespace")
	})
	w.Create(w.group("first"))
	p := w.reaches(complete)
	if installed(p).Status != corev1.ConditionTrue || len(p.Status.Conditions) != 1 {
		t.Errorf("conditions %+v", p.Status.Conditions)
	}
}

// TestPlanForApprovalWaitsForOneOperatorGroup has a plan that waits for approval while its namespace has no OperatorGroup, and
// then two.
func TestPlanForApprovalWaitsForOneOperatorGroup(t *testing.T) {
	w := newWorld(t)
	w.supervise(time.Minute)
	w.plan(w.bundle(settings), false, plansteps.MaxInline)
	blocked := func(p *operatorsv1alpha1.InstallPlan) bool {
		return p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseRequiresApproval && p.Status.StartTime == nil &&
			installed(p).Reason == operatorsv1alpha1.InstallPlanReasonInstallCheckFailed && installed(p).Message == olmtext.NoGroupForPlan
	}
	w.becomes(blocked)
	second := w.group("second")
	w.Create(w.group("first"), second)
	p := w.becomes(func(p *operatorsv1alpha1.InstallPlan) bool {
		return p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseRequiresApproval && installed(p).Message == olmtext.SeveralGroupsForPlan(2)
	})
	p.Spec.Approved = true
	if err := w.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if err := w.Delete(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	w.reaches(complete)
}

func TestPlanWaitsWhileThereAreTwoOperatorGroups(t *testing.T) {
	w := newWorld(t)
	first, second := w.group("first"), w.group("second")
	w.Create(first, second)
	w.supervise(time.Minute)
	w.plan(w.bundle(settings), true, plansteps.MaxInline)
	w.becomes(func(p *operatorsv1alpha1.InstallPlan) bool {
		return strings.Contains(installed(p).Message, "more than one operator group(s) are managing this namespace count=2")
	})
	if err := w.Delete(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	w.reaches(complete)
}

const (
	monitor    = `{"apiVersion":"monitoring.coreos.com/v1","kind":"ServiceMonitor","metadata":{"name":"lamp"}}`
	autoscaler = `{"apiVersion":"autoscaling.k8s.io/v1","kind":"VerticalPodAutoscaler","metadata":{"name":"lamp"}}`
)

func TestPlanWithUnknownAPIFailsInTheEnd(t *testing.T) {
	w := newWorld(t)
	w.Create(w.group("group"))
	w.supervise(time.Second)
	w.plan(w.bundle(settings, autoscaler), true, plansteps.MaxInline)
	const says = "api-server resource not found installing VerticalPodAutoscaler lamp: GroupVersionKind autoscaling.k8s.io/v1, Kind=VerticalPodAutoscaler not found on the cluster"
	w.becomes(func(p *operatorsv1alpha1.InstallPlan) bool {
		return p.Status.Phase == working && strings.Contains(p.Status.Message, "retrying execution due to error: "+says)
	})
	p := w.reaches(failed)
	if c := installed(p); c.Reason != operatorsv1alpha1.InstallPlanReasonComponentFailed || !strings.Contains(c.Message, says) || !strings.HasSuffix(c.Message, "; fix the cause; the plan then continues automatically within minutes; to retry at once, delete the InstallPlan") || !strings.HasPrefix(p.Status.Message, says) {
		t.Errorf("message %q, condition %+v", p.Status.Message, c)
	}
	if got := statuses(p); got[len(got)-1] != "VerticalPodAutoscaler=Unknown" || got[len(got)-2] != "ConfigMap=Created" {
		t.Errorf("steps %v", got)
	}
}

func TestPlanWithForbiddenKindFailsAtOnce(t *testing.T) {
	w := newWorld(t)
	w.Create(w.group("group"))
	w.supervise(time.Hour)
	w.plan(w.bundle(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"stray"}}`), true, plansteps.MaxInline)
	p := w.reaches(failed)
	if got := statuses(p); got[len(got)-1] != "Deployment=UnsupportedResource" || !strings.Contains(installed(p).Message, "ask the author of lamp.v1 to remove it") {
		t.Errorf("steps %v, condition %+v", got, installed(p))
	}
}

// TestPlanReportsTakenNames has another definition with the names of the kind in the bundle.
func TestPlanReportsTakenNames(t *testing.T) {
	w := newWorld(t)
	w.Create(w.group("group"))
	group := w.Namespace + ".example"
	other := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "others." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: "others", Kind: "lamp"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}}},
		},
	}
	w.Create(other)
	w.Eventually(func() bool {
		found := &apiextensionsv1.CustomResourceDefinition{}
		return w.Get(t.Context(), client.ObjectKeyFromObject(other), found) == nil && len(found.Status.Conditions) > 0
	}).Should(gomega.BeTrue())
	w.supervise(time.Hour)
	w.plan(w.bundle(w.crd()), true, plansteps.MaxInline)
	w.becomes(func(p *operatorsv1alpha1.InstallPlan) bool {
		return strings.Contains(p.Status.Message, "retrying execution due to error: error applying CustomResourceDefinition lamps."+group+" of lamp.v1: its names are not accepted: ") &&
			strings.Contains(p.Status.Message, `" is already in use`)
	})
	if err := w.Delete(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	w.reaches(complete)
}

// TestInterruptedPlanContinues stops the process between two steps; the next process finishes the
// plan.
func TestInterruptedPlanContinues(t *testing.T) {
	w := newWorld(t)
	w.Create(w.group("group"))
	stop := w.supervise(time.Hour)
	w.plan(w.bundle(settings, monitor), true, plansteps.MaxInline)
	w.becomes(func(p *operatorsv1alpha1.InstallPlan) bool {
		return strings.Contains(p.Status.Message, "ServiceMonitor")
	})
	stop()
	before := w.settings()
	definition := bare("monitoring.coreos.com", "servicemonitors", "ServiceMonitor", apiextensionsv1.NamespaceScoped)
	w.Create(definition)
	w.goneAtEnd(definition)
	w.supervise(time.Hour)
	p := w.reaches(complete)
	if got := statuses(p); got[0] != "ClusterServiceVersion=Created" || got[len(got)-1] != "ServiceMonitor=Created" {
		t.Errorf("steps %v", got)
	}
	if after := w.settings(); after.ResourceVersion != before.ResourceVersion {
		t.Error("a step that was done was done again")
	}
}

// TestPlanStartsOverWhenItsVersionIsDeleted deletes the version while its plan is in progress.
func TestPlanStartsOverWhenItsVersionIsDeleted(t *testing.T) {
	w := newWorld(t)
	w.Create(w.group("group"))
	w.supervise(time.Hour)
	w.plan(w.bundle(settings, autoscaler), true, plansteps.MaxInline)
	w.becomes(func(p *operatorsv1alpha1.InstallPlan) bool {
		return strings.Contains(p.Status.Message, "VerticalPodAutoscaler")
	})
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "lamp.v1"}, csv); err != nil {
		t.Fatal(err)
	}
	old := csv.UID
	if err := w.Delete(t.Context(), csv); err != nil {
		t.Fatal(err)
	}
	// The controller that removes the finalizer does not run here.
	if err := w.Patch(t.Context(), csv, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	w.Eventually(func(g gomega.Gomega) {
		csv := &operatorsv1alpha1.ClusterServiceVersion{}
		g.Expect(w.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "lamp.v1"}, csv)).To(gomega.Succeed())
		g.Expect(csv.UID).NotTo(gomega.Equal(old))
		found := &corev1.ConfigMap{}
		g.Expect(w.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "settings"}, found)).To(gomega.Succeed())
		g.Expect(found.OwnerReferences).To(gomega.ContainElement(gomega.HaveField("UID", csv.UID)))
	}).Should(gomega.Succeed())
}

func TestLargeManifestsAreReadFromTheCatalog(t *testing.T) {
	w := newWorld(t)
	w.Create(w.group("group"))
	b := w.bundle(settings)
	w.plan(b, true, 0)
	w.supervise(time.Hour)
	w.becomes(func(p *operatorsv1alpha1.InstallPlan) bool {
		return strings.Contains(p.Status.Message, "reading bundle lamp.v1")
	})
	w.shelf.put(b)
	w.reaches(complete)
	if diff := cmp.Diff(map[string]string{"a": "b"}, w.settings().Data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
}

func TestChangedContentIsRefused(t *testing.T) {
	w := newWorld(t)
	w.Create(w.group("group"))
	w.shelf.put(w.bundle(strings.Replace(settings, `"b"`, `"c"`, 1)))
	w.plan(w.bundle(settings), true, 0)
	w.supervise(time.Hour)
	p := w.reaches(failed)
	if c := installed(p); !strings.Contains(c.Message, plansteps.ErrContentChanged.Error()) {
		t.Errorf("condition %+v", c)
	}
}

// TestLargeManifestsAreReadFromTheImage has a plan that refers to a bundle image.
func TestLargeManifestsAreReadFromTheImage(t *testing.T) {
	w := newWorld(t)
	b := w.bundle(settings)
	b.Catalog.Namespace, b.Image = w.Namespace, "registry.example/lamp@sha256:1"
	b.Properties = []plansteps.Property{{Type: "olm.package", Value: `{"packageName":"lamp","version":"1.0.0"}`}}
	w.Create(w.group("group"), &operatorsv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "shop"},
		Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Address: "shop.example:1", Secrets: []string{"key"}},
	})
	w.plan(b, true, 0)
	w.supervise(time.Hour)
	// Only the catalog has the properties.
	served := b
	served.Objects = nil
	w.shelf.put(served)
	w.becomes(func(p *operatorsv1alpha1.InstallPlan) bool {
		return strings.Contains(p.Status.Message, "reading bundle image registry.example/lamp@sha256:1 of lamp.v1: pulling ")
	})
	w.images.content.Store(b.Image+" with key", b.Objects)
	w.reaches(complete)
	if diff := cmp.Diff(map[string]string{"a": "b"}, w.settings().Data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
}
