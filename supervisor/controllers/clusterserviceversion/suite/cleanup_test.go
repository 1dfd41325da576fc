package suite_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/testenv"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// cleans requests the deletion of custom resources with the operator.
func cleans(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.Spec.Cleanup.Enabled = true }

func cup(group, namespace, name string, finalizers ...string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Cup"})
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetFinalizers(finalizers)
	return o
}

// tableware creates a definition of cups, with a record of an install plan of kettle.v1.
func (w *world) tableware(group string) *apiextensionsv1.CustomResourceDefinition {
	w.T.Helper()
	crd := fixtures.CRD(group, "Cup")
	w.recordPlanOf(crd)
	return w.serve(crd)
}

// recordPlanOf adds to a definition the record of an install plan of kettle.v1.
func (w *world) recordPlanOf(crd *apiextensionsv1.CustomResourceDefinition) {
	crd.Annotations = map[string]string{"operatorframework.io/installed-alongside-1": w.Namespace + "/kettle.v1"}
}

// serve creates a definition and waits until its objects can be listed.
func (w *world) serve(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	w.T.Helper()
	w.Create(crd)
	w.Eventually(func() error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: crd.Spec.Group, Version: "v1", Kind: "CupList"})
		return w.List(w.T.Context(), list)
	}).Should(gomega.Succeed())
	return crd
}

// finallyLetGo removes the finalizers of an object when the test is over.
func (w *world) finallyLetGo(o client.Object) {
	w.T.Cleanup(func() {
		free := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := client.IgnoreNotFound(w.Patch(context.WithoutCancel(w.T.Context()), o, free)); err != nil {
			w.T.Errorf("letting %s go: %v", o.GetName(), err)
		}
	})
}

// waits returns when the status of the version that is being deleted contains some texts.
func (w *world) waits(says ...string) {
	w.T.Helper()
	w.Eventually(func(g gomega.Gomega) {
		csv := w.csv("kettle.v1")
		g.Expect(csv.Status.Reason).To(gomega.Equal(operatorsv1alpha1.CSVReasonWaitingForCleanupToComplete), csv.Status.Message)
		for _, text := range says {
			g.Expect(csv.Status.Message).To(gomega.ContainSubstring(text))
		}
	}).WithTimeout(2 * testenv.Patience).WithPolling(100 * time.Millisecond).Should(gomega.Succeed())
}

func TestCustomResourcesGoFirstWhereTheVersionAsksForIt(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	const group = "cleans.example.com"
	crd := w.tableware(group)
	csv := w.kettle("kettle.v1", owns(crd.Name), cleans)
	elsewhere := cup(group, "default", w.Namespace)
	stuck := cup(group, w.Namespace, "stuck", "example.com/drain")
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "kettle-" + w.Namespace, Labels: w.owner("kettle.v1")}}
	w.Create(w.group("own", w.Namespace), csv, elsewhere, stuck, role)
	w.finallyLetGo(stuck)
	for i := range 60 {
		w.Create(cup(group, w.Namespace, fmt.Sprintf("cup-%02d", i)))
	}
	w.succeeds("kettle.v1")

	w.Expect(w.Delete(t.Context(), csv)).To(gomega.Succeed())

	w.waits("stage 1 of 9 (custom resources): 1 left, first Cup " + w.Namespace + "/stuck")
	waiting := w.csv("kettle.v1")
	w.Expect(waiting.Status.Phase).To(gomega.Equal(operatorsv1alpha1.CSVPhaseSucceeded))
	w.Expect(waiting.Status.Cleanup.PendingDeletion).To(gomega.Equal([]operatorsv1alpha1.ResourceList{{
		Group: group, Kind: "Cup", Instances: []operatorsv1alpha1.ResourceInstance{{Namespace: w.Namespace, Name: "stuck"}},
	}}))
	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(role), role)).To(gomega.Succeed(), "rights went before what needs them")
	w.Consistently(func() string { return w.csv("kettle.v1").ResourceVersion }).WithTimeout(7*time.Second).Should(gomega.Equal(waiting.ResourceVersion), "waiting writes")

	w.Eventually(func() error {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(stuck), stuck); err != nil {
			return err
		}
		stuck.SetFinalizers(nil)
		return w.Update(t.Context(), stuck)
	}).Should(gomega.Succeed())
	w.EventuallyGone(csv)
	w.EventuallyGone(role)
	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(elsewhere), elsewhere)).To(gomega.Succeed(), "another namespace's went too")
}

func TestStuckCustomResourcesHaveAWayOut(t *testing.T) {
	w := newWorld(t)
	now := &shifted{}
	w.superviseAt(now)
	const group = "stuck.example.com"
	crd := w.tableware(group)
	csv := w.kettle("kettle.v1", owns(crd.Name), cleans)
	stuck := cup(group, w.Namespace, "stuck", "example.com/drain")
	w.Create(w.group("own", w.Namespace), csv, stuck)
	w.finallyLetGo(stuck)
	w.succeeds("kettle.v1")
	w.Expect(w.Delete(t.Context(), csv)).To(gomega.Succeed())
	w.waits("1 left, first Cup " + w.Namespace + "/stuck")
	w.Expect(w.csv("kettle.v1").Status.Message).NotTo(gomega.ContainSubstring("has been blocked"))

	now.by.Store(int64(61 * time.Second))
	w.waits("has been blocked for more than a minute by the finalizers example.com/drain",
		"kubectl get cups."+group+" stuck -n "+w.Namespace, "chandlery.dev/skip-cleanup=true")
	w.caused(w.csv("kettle.v1"), "FinalizersRemaining", "")

	w.skip()
	w.EventuallyGone(csv)
	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(stuck), stuck)).To(gomega.Succeed())
}

// skip sets the annotation that makes custom resources stay.
func (w *world) skip() {
	w.T.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"chandlery.dev/skip-cleanup":"true"}}}`))
	w.Expect(w.Patch(w.T.Context(), w.csv("kettle.v1"), patch)).To(gomega.Succeed())
}

func TestUpgradeLeavesCustomResources(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	const group = "stays.example.com"
	crd := w.tableware(group)
	mine := cup(group, w.Namespace, "mine")
	w.Create(w.group("own", w.Namespace), w.kettle("kettle.v1", owns(crd.Name), cleans), mine)
	w.succeeds("kettle.v1")
	uid := mine.GetUID()
	w.Create(w.kettle("kettle.v2", owns(crd.Name), cleans, replaces("kettle.v1")))
	w.succeeds("kettle.v2")
	w.EventuallyGone(w.kettle("kettle.v1"))
	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(mine), mine)).To(gomega.Succeed())
	w.Expect(mine.GetUID()).To(gomega.Equal(uid))
	w.Expect(mine.GetDeletionTimestamp()).To(gomega.BeNil())
}

// leftovers returns one object of each kind of a version that has no owner reference.
func (w *world) leftovers(csv, home string) []client.Object {
	labels := map[string]string{
		"olm.managed": "true", "olm.owner": csv, "olm.owner.namespace": home, "olm.owner.kind": "ClusterServiceVersion",
	}
	name := csv + "-" + home
	meta := func(namespace string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}
	}
	service := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": home + ".example.com", "version": "v1", "groupPriorityMinimum": int64(2000), "versionPriority": int64(15),
		"service": map[string]any{"namespace": home, "name": "nobody"}, "insecureSkipTLSVerify": true,
	}}}
	service.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
	service.SetName("v1." + home + ".example.com")
	service.SetLabels(labels)
	copied := w.kettle(csv)
	copied.Namespace, copied.Labels = "default", map[string]string{"olm.copiedFrom": home}
	ref := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	}
	return []client.Object{
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta("")},
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta("")},
		service,
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta(""), RoleRef: ref("ClusterRole")},
		&rbacv1.RoleBinding{ObjectMeta: meta("kube-system"), RoleRef: ref("Role")},
		&rbacv1.ClusterRole{ObjectMeta: meta("")},
		&rbacv1.Role{ObjectMeta: meta("kube-system")},
		&schedulingv1.PriorityClass{ObjectMeta: meta(""), Value: 1},
		copied,
	}
}

func TestCleansUpEveryKindAndNothingElse(t *testing.T) {
	w := newWorld(t)
	stop := w.supervise()
	csv := w.kettle("kettle.v1")
	w.Create(w.group("own", w.Namespace), csv)
	w.succeeds("kettle.v1")
	stop()
	mine, theirs := w.leftovers("kettle.v1", w.Namespace), w.leftovers("kettle.v1", w.Namespace+"-other")
	w.Create(mine...)
	// The last object is a copy, which has the same name in both.
	w.Create(theirs[:len(theirs)-1]...)
	w.Expect(w.Delete(t.Context(), csv)).To(gomega.Succeed())
	w.supervise()
	w.EventuallyGone(csv)
	for _, o := range mine {
		w.EventuallyGone(o)
	}
	for _, o := range theirs[:len(theirs)-1] {
		w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(o), o)).To(gomega.Succeed(), "%T %s", o, o.GetName())
	}
}

// TestSharedObjectsGoOn removes an operator with cluster-scoped objects from one of two namespaces.
func TestSharedObjectsGoOn(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	const component = "operators.coreos.com/kettle."
	other := w.kettle("kettle.v1")
	other.Namespace = w.Namespace + "-other"
	ours := w.kettle("kettle.v1")
	ours.Labels = map[string]string{component + w.Namespace: ""}
	labels := w.owner("kettle.v1")
	labels[component+w.Namespace], labels[component+other.Namespace] = "", ""
	shared := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "kettle-" + w.Namespace, Labels: labels}, Value: 1}
	own := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "own-" + w.Namespace, Labels: w.owner("kettle.v1")}, Value: 1}
	installed := &operatorsv1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: other.Namespace, Name: "install-1"},
		Spec:       operatorsv1alpha1.InstallPlanSpec{ClusterServiceVersionNames: []string{"kettle.v1"}, Approval: operatorsv1alpha1.ApprovalAutomatic, Approved: true},
	}
	w.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other.Namespace}}, other, ours, w.group("own", w.Namespace), installed, shared, own)
	installed.Status.CatalogSources = []string{}
	installed.Status.Phase = operatorsv1alpha1.InstallPlanPhaseComplete
	installed.Status.Plan = []*operatorsv1alpha1.Step{{
		Resolving: "kettle.v1", Status: operatorsv1alpha1.StepStatusCreated,
		Resource: operatorsv1alpha1.StepResource{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass", Name: shared.Name},
	}}
	w.Expect(w.Status().Update(t.Context(), installed)).To(gomega.Succeed())
	w.succeeds("kettle.v1")

	w.Expect(w.Delete(t.Context(), ours)).To(gomega.Succeed())

	w.EventuallyGone(ours)
	w.EventuallyGone(own)
	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(shared), shared)).To(gomega.Succeed())
	w.Expect(shared.DeletionTimestamp).To(gomega.BeNil())
	w.Expect(shared.Labels).To(gomega.Equal(map[string]string{
		"olm.managed": "true", "olm.owner": "kettle.v1", "olm.owner.namespace": other.Namespace, "olm.owner.kind": "ClusterServiceVersion",
		component + other.Namespace: "",
	}))
}

// TestSharedObjectsGoOnWithoutPlans uninstalls an operator beside one whose Subscription was deleted,
// and with it its plans.
func TestSharedObjectsGoOnWithoutPlans(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	const component = "operators.coreos.com/kettle."
	home, away := w.Namespace, w.Namespace+"-other"
	other, ours := w.kettle("kettle.v1"), w.kettle("kettle.v1")
	other.Namespace = away
	ours.Labels, other.Labels = map[string]string{component + home: ""}, map[string]string{component + away: ""}
	for _, csv := range []*operatorsv1alpha1.ClusterServiceVersion{ours, other} {
		csv.Annotations = map[string]string{api.AnnotationProperties: `{"properties":[{"type":"olm.package","value":{"packageName":"kettle","version":"1.0.0"}}]}`}
	}
	labels := w.owner("kettle.v1")
	labels[component+home], labels[component+away] = "", ""
	shared := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "kettle-" + home, Labels: labels}, Value: 1}
	w.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: away}}, w.group("own", home), ours, shared)
	group := w.group("own", away)
	group.Namespace = away
	w.Create(group, other)
	w.succeeds("kettle.v1")
	w.Namespace = away
	w.succeeds("kettle.v1")

	w.Expect(w.Delete(t.Context(), ours)).To(gomega.Succeed())

	w.EventuallyGone(ours)
	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(shared), shared)).To(gomega.Succeed())
	w.Expect(shared.DeletionTimestamp).To(gomega.BeNil())
	w.Expect(shared.Labels).To(gomega.HaveKeyWithValue("olm.owner.namespace", away))
}

// TestRefusedPlanInheritsNothing uninstalls an operator beside a plan that names its binding and
// was refused.
func TestRefusedPlanInheritsNothing(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	other, ours := w.kettle("other.v1"), w.kettle("kettle.v1")
	other.Namespace = w.Namespace + "-a"
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "kettle-" + w.Namespace, Labels: w.owner("kettle.v1")},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: w.Namespace, Name: "kettle"}},
	}
	refused := &operatorsv1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: other.Namespace, Name: "install-1"},
		Spec:       operatorsv1alpha1.InstallPlanSpec{ClusterServiceVersionNames: []string{"other.v1"}, Approval: operatorsv1alpha1.ApprovalAutomatic, Approved: true},
	}
	w.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other.Namespace}}, other, ours, w.group("own", w.Namespace), refused, binding)
	refused.Status.CatalogSources = []string{}
	refused.Status.Phase = operatorsv1alpha1.InstallPlanPhaseFailed
	refused.Status.Plan = []*operatorsv1alpha1.Step{{
		Resolving: "other.v1", Status: operatorsv1alpha1.StepStatusUnknown,
		Resource: operatorsv1alpha1.StepResource{Group: rbacv1.GroupName, Version: "v1", Kind: "ClusterRoleBinding", Name: binding.Name},
	}}
	w.Expect(w.Status().Update(t.Context(), refused)).To(gomega.Succeed())
	w.succeeds("kettle.v1")

	w.Expect(w.Delete(t.Context(), ours)).To(gomega.Succeed())

	w.EventuallyGone(ours)
	w.EventuallyGone(binding)
}

func TestNamespaceGoesInTheMiddle(t *testing.T) {
	w := newWorld(t)
	w.Namespace += "-middle"
	w.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}})
	w.supervise()
	const group = "middle.example.com"
	crd := w.tableware(group)
	mine := cup(group, w.Namespace, "mine", "example.com/drain")
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "kettle-" + w.Namespace, Labels: w.owner("kettle.v1")}}
	w.Create(w.group("own", w.Namespace), w.kettle("kettle.v1", owns(crd.Name), cleans, homeless), mine, role)
	w.finallyLetGo(mine)
	others := []client.Object{
		cup(group, "default", w.Namespace),
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "other-" + w.Namespace, Labels: w.owner("other.v1")}},
	}
	w.Create(others...)
	before := w.asTheyAre(others...)
	w.reaches("kettle.v1", operatorsv1alpha1.CSVPhaseInstalling, operatorsv1alpha1.CSVReasonWaiting)

	w.Expect(w.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}})).To(gomega.Succeed())

	w.waits("stage 1 of 9 (custom resources): 1 left, first Cup " + w.Namespace + "/mine")
	w.change(mine, func() { mine.SetFinalizers(nil) })
	w.EventuallyGone(role)
	w.EventuallyGone(w.kettle("kettle.v1"))
	w.EventuallyGone(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}})
	w.Expect(w.asTheyAre(others...)).To(gomega.Equal(before), "something else was touched")
}
