package suite_test

import (
	"slices"
	"strings"

	"github.com/onsi/gomega"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

const (
	account = "kettle"
	name    = "kettle.v1"
	right   = "kettle.v1-kettle-abc"
)

// installs creates an OperatorGroup and a version in the state in which the other controllers leave
// them. The group's status lists its targets, and the version has succeeded.
func (w *world) installs(targets ...string) (*operatorsv1.OperatorGroup, *operatorsv1alpha1.ClusterServiceVersion) {
	w.T.Helper()
	group := fixtures.OperatorGroup(w.Namespace, "group")
	csv := w.kettle()
	sa, role, binding := w.permissions()
	w.Create(group, csv, sa, role, binding)
	w.targets(group, csv, targets...)
	w.phase(csv, operatorsv1alpha1.CSVPhaseSucceeded)
	return group, csv
}

// targets changes the target namespaces in the status of a group and in the annotations of a
// version.
func (w *world) targets(group *operatorsv1.OperatorGroup, csv *operatorsv1alpha1.ClusterServiceVersion, targets ...string) {
	w.T.Helper()
	slices.Sort(targets)
	changeStatus(w, group, func(g *operatorsv1.OperatorGroup) {
		g.Status.Namespaces, g.Status.LastUpdated = targets, new(metav1.Now())
	})
	change(w, csv, func(c *operatorsv1alpha1.ClusterServiceVersion) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, operatorsv1.OperatorGroupAnnotationKey, group.Name)
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, operatorsv1.OperatorGroupNamespaceAnnotationKey, group.Namespace)
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, operatorsv1.OperatorGroupTargetsAnnotationKey, strings.Join(targets, ","))
	})
}

func (w *world) phase(csv *operatorsv1alpha1.ClusterServiceVersion, phase operatorsv1alpha1.ClusterServiceVersionPhase) {
	w.T.Helper()
	changeStatus(w, csv, func(c *operatorsv1alpha1.ClusterServiceVersion) {
		c.SetPhase(phase, operatorsv1alpha1.CSVReasonInstallSuccessful, "as the test says", new(metav1.Now()))
	})
}

func (w *world) kettle() *operatorsv1alpha1.ClusterServiceVersion {
	csv := fixtures.Kettle(w.Namespace, name)
	csv.Labels = map[string]string{"olm.api.abc": "provided", "operators.coreos.com/kettle.kitchen": ""}
	csv.Annotations = map[string]string{"alm-examples": "[]"}
	csv.Spec.Description = "Boils water."
	csv.Spec.Icon = []operatorsv1alpha1.Icon{{Data: "aGVsbG8=", MediaType: "image/png"}}
	fixtures.PodSpec(csv).ServiceAccountName = account
	csv.Spec.InstallStrategy.StrategySpec.Permissions = []operatorsv1alpha1.StrategyDeploymentPermissions{
		{ServiceAccountName: account, Rules: rules("get", "list")},
	}
	return csv
}

func rules(verbs ...string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs}}
}

// permissions returns the objects that an InstallPlan creates for the version.
func (w *world) permissions() (*corev1.ServiceAccount, *rbacv1.Role, *rbacv1.RoleBinding) {
	meta := func() metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: w.Namespace, Name: right, Labels: map[string]string{
			"olm.managed": "true", "olm.owner": name, "olm.owner.namespace": w.Namespace, "olm.owner.kind": "ClusterServiceVersion",
		}}
	}
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: account}},
		&rbacv1.Role{ObjectMeta: meta(), Rules: rules("get", "list")},
		&rbacv1.RoleBinding{
			ObjectMeta: meta(),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: right},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: w.Namespace}},
		}
}

// copied waits until a namespace has a current copy of a version.
func (w *world) copied(csv *operatorsv1alpha1.ClusterServiceVersion, namespace string) *operatorsv1alpha1.ClusterServiceVersion {
	w.T.Helper()
	found := &operatorsv1alpha1.ClusterServiceVersion{}
	w.EventuallySucceeds(func(g gomega.Gomega) {
		*found = operatorsv1alpha1.ClusterServiceVersion{}
		g.Expect(w.Get(w.T.Context(), client.ObjectKeyFromObject(csv), csv)).To(gomega.Succeed())
		g.Expect(w.Get(w.T.Context(), client.ObjectKey{Namespace: namespace, Name: csv.Name}, found)).To(gomega.Succeed())
		g.Expect(found.Labels).To(gomega.Equal(map[string]string{"olm.api.abc": "provided", "olm.copiedFrom": w.Namespace}))
		g.Expect(found.Annotations).To(gomega.HaveKeyWithValue("olm.operatorNamespace", w.Namespace))
		g.Expect(found.Annotations).NotTo(gomega.HaveKey("olm.targetNamespaces"))
		g.Expect(found.Spec).To(gomega.BeComparableTo(csv.Spec))
		status := csv.Status.DeepCopy()
		status.Reason, status.Message = "Copied", "The operator is running in "+w.Namespace+" but is managing this namespace"
		g.Expect(&found.Status).To(gomega.BeComparableTo(status))
	})
	return found
}

// granted waits until a namespace has the version's role and binding, with the given rules.
func (w *world) granted(namespace string, copied *operatorsv1alpha1.ClusterServiceVersion, want []rbacv1.PolicyRule) {
	w.T.Helper()
	role, binding := &rbacv1.Role{}, &rbacv1.RoleBinding{}
	key := client.ObjectKey{Namespace: namespace, Name: right}
	w.EventuallySucceeds(func(g gomega.Gomega) {
		g.Expect(w.Get(w.T.Context(), key, role)).To(gomega.Succeed())
		g.Expect(w.Get(w.T.Context(), key, binding)).To(gomega.Succeed())
		g.Expect(role.Rules).To(gomega.Equal(want))
		g.Expect(binding.RoleRef.Name).To(gomega.Equal(right))
		g.Expect(binding.Subjects).To(gomega.Equal([]rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: w.Namespace}}))
		for _, obj := range []client.Object{role, binding} {
			g.Expect(obj.GetLabels()).To(gomega.And(
				gomega.HaveKeyWithValue("olm.copiedFrom", w.Namespace), gomega.HaveKeyWithValue("olm.owner", name),
				gomega.HaveKeyWithValue("olm.owner.namespace", namespace), gomega.HaveKeyWithValue("olm.managed", "true")))
			g.Expect(obj.GetOwnerReferences()).To(gomega.ContainElement(gomega.HaveField("UID", copied.UID)))
		}
	})
}

// bare returns a version with only a name and a namespace.
func bare(namespace string) *operatorsv1alpha1.ClusterServiceVersion {
	return &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func roleIn(namespace string) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: right}}
}

func bindingIn(namespace string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: right}}
}

func (w *world) absent(obj client.Object) bool {
	return apierrors.IsNotFound(w.Get(w.T.Context(), client.ObjectKeyFromObject(obj), obj))
}
