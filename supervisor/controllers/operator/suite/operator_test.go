package suite_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// install creates the objects of an operator. Only its Subscription names the package.
func (w *world) install(name string) *operatorsv1alpha1.ClusterServiceVersion {
	w.T.Helper()
	csv := w.version(name)
	w.Create(csv, fixtures.CRD(w.group(), "Cup"))
	csv.Status.Phase, csv.Status.Reason, csv.Status.LastTransitionTime = operatorsv1alpha1.CSVPhaseSucceeded, "InstallSucceeded", new(metav1.Now())
	w.status(csv)
	named := metav1.ObjectMeta{Name: "kettle"}
	cluster := metav1.ObjectMeta{Name: "kettle-" + w.Namespace}
	mounting := fixtures.Deployment(w.Namespace, "kettle", "manager")
	mounting.Spec.Template.Spec.Volumes = []corev1.Volume{
		{Name: "key", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "kettle"}}},
	}
	for _, obj := range []client.Object{
		mounting, &corev1.ConfigMap{ObjectMeta: named}, &corev1.Secret{ObjectMeta: named}, &corev1.ServiceAccount{ObjectMeta: named},
		&corev1.Service{ObjectMeta: named, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}}},
		&rbacv1.Role{ObjectMeta: named}, &rbacv1.RoleBinding{ObjectMeta: named, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "kettle"}},
		&rbacv1.ClusterRole{ObjectMeta: cluster},
		&rbacv1.ClusterRoleBinding{ObjectMeta: cluster, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: cluster.Name}},
		&operatorsv2.OperatorCondition{ObjectMeta: metav1.ObjectMeta{Name: name}},
	} {
		w.Create(w.owned(csv, obj))
	}
	w.subscription(name)
	return csv
}

// components returns the objects of install in the order of an Operator's status.
func (w *world) components(name string) []string {
	n := w.Namespace
	return []string{
		"rbac.authorization.k8s.io/v1 ClusterRole /kettle-" + n,
		"rbac.authorization.k8s.io/v1 ClusterRoleBinding /kettle-" + n,
		"operators.coreos.com/v1alpha1 ClusterServiceVersion " + n + "/" + name,
		"v1 ConfigMap " + n + "/kettle",
		"apiextensions.k8s.io/v1 CustomResourceDefinition /cups." + w.group(),
		"apps/v1 Deployment " + n + "/kettle",
		"operators.coreos.com/v2 OperatorCondition " + n + "/" + name,
		"rbac.authorization.k8s.io/v1 Role " + n + "/kettle",
		"rbac.authorization.k8s.io/v1 RoleBinding " + n + "/kettle",
		"v1 Secret " + n + "/kettle",
		"v1 Service " + n + "/kettle",
		"v1 ServiceAccount " + n + "/kettle",
	}
}

// lists waits until the Operator lists all components.
func (w *world) lists(name string) *operatorsv1.Operator {
	w.T.Helper()
	return w.shows(func(g gomega.Gomega, o *operatorsv1.Operator) {
		g.Expect(cmp.Diff(w.components(name), listed(o))).To(gomega.BeEmpty())
	})
}

// TestAdoptsAndGathers installs an operator without any component label. All its objects must get
// the label and appear in the status. An unrelated object must not.
func TestAdoptsAndGathers(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	bystander := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "bystander", Labels: map[string]string{"olm.managed": "true"}}}
	w.Create(bystander)
	csv := w.install("kettle.v1")
	o := w.lists("kettle.v1")
	w.Expect(o.Status.Components.LabelSelector.MatchExpressions).To(gomega.Equal([]metav1.LabelSelectorRequirement{
		{Key: w.label(), Operator: metav1.LabelSelectorOpExists},
	}))
	w.shows(func(g gomega.Gomega, o *operatorsv1.Operator) {
		g.Expect(conditionsOf(o, "ClusterServiceVersion")).To(gomega.Equal(map[string]string{"Succeeded": "True"}))
		g.Expect(conditionsOf(o, "CustomResourceDefinition")).To(gomega.HaveKeyWithValue("Established", "True"))
		g.Expect(conditionsOf(o, "Deployment")).To(gomega.HaveKey("Available"))
	})

	w.bears(csv, w.label(), true)
	csv.Status.Phase, csv.Status.Reason = operatorsv1alpha1.CSVPhaseFailed, "ComponentUnhealthy"
	w.status(csv)
	w.shows(func(g gomega.Gomega, o *operatorsv1.Operator) {
		g.Expect(conditionsOf(o, "ClusterServiceVersion")).To(gomega.Equal(map[string]string{"Failed": "True"}))
	})
	w.bears(bystander, w.label(), false)
}

// TestNamespaceAndLabelByHand has objects that a user has labelled.
func TestNamespaceAndLabelByHand(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "helper", Labels: map[string]string{w.label(): ""}}}
	w.Create(account)
	namespace := &corev1.Namespace{}
	w.Expect(w.Get(t.Context(), client.ObjectKey{Name: w.Namespace}, namespace)).To(gomega.Succeed())
	before := namespace.DeepCopy()
	namespace.Labels[w.label()] = ""
	w.Expect(w.Patch(t.Context(), namespace, client.MergeFrom(before))).To(gomega.Succeed())
	w.shows(func(g gomega.Gomega, o *operatorsv1.Operator) {
		g.Expect(listed(o)).To(gomega.Equal([]string{"v1 Namespace /" + w.Namespace, "v1 ServiceAccount " + w.Namespace + "/helper"}))
	})
}

// TestOperatorComesBackWhileComponentsRemain deletes an Operator, then its components.
func TestOperatorComesBackWhileComponentsRemain(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	settings := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "helper", Labels: map[string]string{w.label(): ""}}}
	w.Create(settings)
	first := w.shows(func(g gomega.Gomega, o *operatorsv1.Operator) { g.Expect(listed(o)).To(gomega.HaveLen(1)) })
	w.Expect(w.Delete(t.Context(), first)).To(gomega.Succeed())
	w.shows(func(g gomega.Gomega, o *operatorsv1.Operator) {
		g.Expect(o.UID).NotTo(gomega.Equal(first.UID))
		g.Expect(listed(o)).To(gomega.HaveLen(1))
	})

	w.Expect(w.Delete(t.Context(), settings)).To(gomega.Succeed())
	gone := func() bool {
		return apierrors.IsNotFound(w.Get(t.Context(), client.ObjectKey{Name: w.operator()}, &operatorsv1.Operator{}))
	}
	w.Eventually(gone).Should(gomega.BeTrue())
	w.Consistently(gone).Should(gomega.BeTrue())

	// An Operator that a user creates stays.
	own := &operatorsv1.Operator{ObjectMeta: metav1.ObjectMeta{Name: w.operator()}}
	w.Create(own)
	w.shows(func(g gomega.Gomega, o *operatorsv1.Operator) { g.Expect(listed(o)).To(gomega.BeEmpty()) })
	w.Consistently(gone).Should(gomega.BeFalse())
}

// TestReleasesOlderPlans changes the InstallPlan of a Subscription.
func TestReleasesOlderPlans(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	install := func(name string, generation int) *operatorsv1alpha1.InstallPlan {
		p := &operatorsv1alpha1.InstallPlan{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{w.label(): "", "colour": "red"}},
			Spec: operatorsv1alpha1.InstallPlanSpec{
				Approval: operatorsv1alpha1.ApprovalAutomatic, Approved: true, Generation: generation, ClusterServiceVersionNames: []string{name},
			},
		}
		w.Create(p)
		p.Status = operatorsv1alpha1.InstallPlanStatus{Phase: operatorsv1alpha1.InstallPlanPhaseComplete, CatalogSources: []string{}}
		w.status(p)
		return p
	}
	older, latest := install("kettle.v1", 1), install("kettle.v2", 2)
	sub := w.subscription("kettle.v1")
	refer := func(p *operatorsv1alpha1.InstallPlan) {
		w.ModifyStatus(sub, func() {
			sub.Status.InstallPlanRef = &corev1.ObjectReference{Namespace: p.Namespace, Name: p.Name, UID: p.UID}
		})
	}
	refer(older)
	w.Consistently(func() map[string]string {
		_ = w.Get(t.Context(), client.ObjectKeyFromObject(older), older)
		return older.Labels
	}).Should(gomega.HaveKey(w.label()))
	refer(latest)
	w.bears(older, w.label(), false)
	w.Expect(older.Labels).To(gomega.HaveKeyWithValue("colour", "red"))
	w.bears(latest, w.label(), true)

	// A label that another client restores is not removed again.
	before := older.DeepCopy()
	older.Labels[w.label()] = ""
	w.Expect(w.Patch(t.Context(), older, client.MergeFrom(before))).To(gomega.Succeed())
	w.Consistently(func() map[string]string {
		_ = w.Get(t.Context(), client.ObjectKeyFromObject(older), older)
		return older.Labels
	}).Should(gomega.HaveKey(w.label()))
}

// TestCopiesAreNoComponents has a copy of a version with the label of the original.
func TestCopiesAreNoComponents(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	copied := w.version("kettle.v1")
	copied.Labels = map[string]string{"olm.copiedFrom": "elsewhere", w.label(): "", "colour": "red"}
	w.Create(copied)
	w.bears(copied, w.label(), false)
	w.Expect(copied.Labels).To(gomega.HaveKey("colour"))
	w.Consistently(func() error {
		return w.Get(t.Context(), client.ObjectKey{Name: w.operator()}, &operatorsv1.Operator{})
	}).Should(gomega.MatchError(apierrors.IsNotFound, "is not found"))
}

// TestRest checks that an idle cluster causes no writes, and that a second supervisor finds nothing
// to change.
func TestRest(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	w.install("kettle.v1")
	w.lists("kettle.v1")
	before := w.EventuallyIdle(w.written)
	w.Consistently(func() []string { return w.written()[before:] }).Should(gomega.BeEmpty())
	w.supervise()
	w.Consistently(func() []string { return w.written()[before:] }).Should(gomega.BeEmpty())
}
