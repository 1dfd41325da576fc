package suite_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
)

// tea returns another operator than the kettle.
func (w *world) tea(change ...func(*operatorsv1alpha1.ClusterServiceVersion)) *operatorsv1alpha1.ClusterServiceVersion {
	csv := w.kettle("tea.v1", change...)
	labels := map[string]string{"app": "tea"}
	for i := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		d := &csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[i]
		d.Name, d.Spec.Selector.MatchLabels, d.Spec.Template.Labels = "tea", labels, labels
	}
	for i := range csv.Spec.WebhookDefinitions {
		csv.Spec.WebhookDefinitions[i].DeploymentName = "tea"
	}
	return csv
}

// asTheyAre returns the resource versions of objects.
func (w *world) asTheyAre(objects ...client.Object) []string {
	w.T.Helper()
	var versions []string
	for _, o := range objects {
		w.Expect(w.Get(w.T.Context(), client.ObjectKeyFromObject(o), o)).To(gomega.Succeed(), "%T %s", o, o.GetName())
		versions = append(versions, o.GetName()+" "+o.GetResourceVersion())
	}
	return versions
}

// absent checks that an object does not exist.
func (w *world) absent(o client.Object) {
	w.T.Helper()
	w.Expect(apierrors.IsNotFound(w.Get(w.T.Context(), client.ObjectKeyFromObject(o), o))).To(gomega.BeTrue(), "%T %s is there", o, o.GetName())
}

// says checks the message of a version with the detail of its cause and its requirements.
func (w *world) says(csv *operatorsv1alpha1.ClusterServiceVersion, texts ...string) {
	w.T.Helper()
	cause, _ := api.CauseOf(csv)
	parts := []string{csv.Status.Message, cause.Detail}
	for _, s := range csv.Status.RequirementStatus {
		parts = append(parts, fmt.Sprintf("%s %s: %s %v", s.Kind, s.Name, s.Message, s.Dependents))
	}
	said := strings.Join(parts, "; ")
	for _, text := range texts {
		w.Expect(said).To(gomega.ContainSubstring(text))
	}
}

func TestBadVersionsLeaveOthersAlone(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	const group = "bad.example.com"
	crd := w.tableware(group)
	pot := w.kettle("kettle.v1", owns(crd.Name), checks)
	w.Create(w.group("own", w.Namespace), pot)
	w.succeeds("kettle.v1")
	w.believed()
	here := metav1.ObjectMeta{Namespace: w.Namespace, Name: "tea"}
	w.Create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: account}})
	hook := w.hooks(w)[0]
	others := []client.Object{pot, crd, &hook, w.secret(w)}
	cases := map[string]struct {
		change func(*operatorsv1alpha1.ClusterServiceVersion)
		phase  operatorsv1alpha1.ClusterServiceVersionPhase
		reason operatorsv1alpha1.ConditionReason
		says   []string
		runs   bool
	}{
		"NoDeployments": {func(csv *operatorsv1alpha1.ClusterServiceVersion) {
			csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []operatorsv1alpha1.StrategyDeploymentSpec{}
		}, "Failed", "InvalidInstallStrategy", []string{"spec.install.spec.deployments is empty", "add at least one Deployment"}, false},
		"UnknownStrategy": {func(csv *operatorsv1alpha1.ClusterServiceVersion) {
			csv.Spec.InstallStrategy.StrategyName = "helm"
		}, "Failed", "InvalidInstallStrategy", []string{`spec.install.strategy is "helm"`, `set it to "deployment"`}, false},
		"NotGranted": {asks, "Pending", "RequirementsNotMet", []string{
			"ServiceAccount kettle: Policy rule not satisfied for service account", `"configmaps"`,
		}, false},
		"SameCRD": {owns(crd.Name), "Failed", "OwnerConflict", []string{
			"spec.customresourcedefinitions.owned names " + crd.Name, "csv kettle.v1", "remove one of the two operators",
		}, false},
		"SameWebhook": {checks, "Failed", "InstallComponentFailed", []string{
			`WebhookConfiguration "check.example.com-`, "belongs to csv " + w.Namespace + "/kettle.v1", "delete or rename one of the two",
		}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := w.asTheyAre(others...)
			bad := w.tea(tc.change)
			w.Create(bad)
			w.says(w.reaches("tea.v1", tc.phase, tc.reason), tc.says...)
			if !tc.runs {
				w.absent(&appsv1.Deployment{ObjectMeta: here})
			}
			w.Expect(w.Delete(t.Context(), bad)).To(gomega.Succeed())
			// The garbage collector follows later, and the next case must not find its objects.
			w.EventuallyGone(bad)
			w.EventuallyGone(&appsv1.Deployment{ObjectMeta: here})
			w.Expect(w.asTheyAre(others...)).To(gomega.Equal(before), "others were touched")
		})
	}
}

// TestForeignObjectsStay creates an object of another owner under each name that a version needs.
func TestForeignObjectsStay(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	w.Create(w.group("own", w.Namespace))
	for _, theirs := range w.served() {
		switch o := theirs.(type) {
		case *corev1.Service:
			o.Spec.Ports = []corev1.ServicePort{{Port: 80}}
		case *rbacv1.RoleBinding:
			o.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "nobody"}
		case *rbacv1.ClusterRoleBinding:
			o.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "nobody"}
		}
		w.Create(theirs)
		before := w.asTheyAre(theirs)
		csv := w.kettle("kettle.v1", checks)
		w.Create(csv)
		w.says(w.reaches("kettle.v1", operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVReasonComponentFailed),
			`"`+theirs.GetName()+`" exists and belongs to no ClusterServiceVersion; delete or rename one of the two`)
		w.absent(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "kettle"}})
		w.Expect(w.hooks(w)).To(gomega.BeEmpty())
		w.Expect(w.Delete(t.Context(), csv)).To(gomega.Succeed())
		w.EventuallyGone(csv)
		w.Expect(w.asTheyAre(theirs)).To(gomega.Equal(before), "what belongs to nobody was touched")
		w.Expect(w.Delete(t.Context(), theirs)).To(gomega.Succeed())
	}
}

func TestForeignClusterRoleStays(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	name := "kettle.v1-kettle-" + w.Namespace
	theirs := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	w.Create(theirs)
	before := w.asTheyAre(theirs)
	sa, role, binding := w.permissions(name)
	csv := w.kettle("kettle.v1", asks)
	w.Create(w.group("all"), csv, sa, role, binding)
	w.says(w.reaches("kettle.v1", operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVReasonComponentFailed),
		`ClusterRole "`+name+`" exists and belongs to no ClusterServiceVersion; delete or rename one of the two`)
	w.absent(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}})
	w.Expect(w.Delete(t.Context(), csv)).To(gomega.Succeed())
	w.EventuallyGone(csv)
	w.Expect(w.asTheyAre(theirs)).To(gomega.Equal(before), "what belongs to nobody was touched")
}

// TestSaysWhichRightItLacks runs with the permissions of the supervisor, without those to grant permissions
// that it lacks itself.
func TestSaysWhichRightItLacks(t *testing.T) {
	w := newWorld(t)
	w.UseDeployedRole("bind", "escalate")
	w.supervise()
	name := "kettle.v1-kettle-" + w.Namespace
	sa, role, binding := w.permissions(name)
	role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{"tea.example.com"}, Resources: []string{"cups"}, Verbs: []string{"get"}}}
	w.Create(w.group("all"), sa, role, binding, w.kettle("kettle.v1", asks, func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		csv.Spec.InstallStrategy.StrategySpec.Permissions[0].Rules = role.Rules
	}))
	failed := w.reaches("kettle.v1", operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVReasonComponentFailed)
	w.says(failed, "ClusterRole "+name, `APIGroups:["tea.example.com"]`)
	w.caused(failed, "EscalationDenied", "grant the supervisor this permission")
	w.absent(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}})
	w.absent(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "kettle"}})
}

func TestACircleComesToRest(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	one, two := w.kettle("kettle.v1", replaces("kettle.v2")), w.kettle("kettle.v2", replaces("kettle.v1"))
	bystander := w.tea()
	w.Create(w.group("own", w.Namespace), bystander)
	w.succeeds("tea.v1")
	before := w.asTheyAre(bystander)
	w.Create(one, two)
	csv := w.succeeds("kettle.v2")
	w.EventuallyGone(one)
	w.Expect(slices.ContainsFunc(csv.Status.Conditions, func(c operatorsv1alpha1.ClusterServiceVersionCondition) bool {
		return c.Message == "all requirements found, attempting install"
	})).To(gomega.BeTrue(), "%v", csv.Status.Conditions)
	w.Expect(w.asTheyAre(bystander)).To(gomega.Equal(before), "another operator was touched")
}

// TestWithdrawnVersionKeepsItsConversion removes the operator behind a conversion webhook. Without
// conversion, objects would be stored in the wrong form.
func TestWithdrawnVersionKeepsItsConversion(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	crd := w.tableware("withdrawn.example.com")
	w.change(crd, func() {
		second := *crd.Spec.Versions[0].DeepCopy()
		second.Name, second.Storage = "v2", false
		crd.Spec.Versions = append(crd.Spec.Versions[:1], second)
	})
	group := w.group("all")
	w.Create(group, w.kettle("kettle.v1", converts(crd.Name, "/convert")))
	w.succeeds("kettle.v1")

	w.change(group, func() {
		group.Spec.StaticProvidedAPIs = true
		group.Annotations["olm.providedAPIs"] = "Spoon.v1.withdrawn.example.com"
	})
	csv := w.reaches("kettle.v1", operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVReasonCannotModifyStaticOperatorGroupProvidedAPIs)
	w.says(csv, "objects of "+crd.Name+" can be used only in their stored version")
	w.EventuallyGone(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "kettle"}})
	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(crd), crd)).To(gomega.Succeed())
	w.Expect(crd.Spec.Conversion.Strategy).To(gomega.Equal(apiextensionsv1.WebhookConverter))
	w.Expect(w.csv("kettle.v1").ResourceVersion).To(gomega.Equal(csv.ResourceVersion), "it writes though nothing changes")

	w.change(group, func() { group.Spec.StaticProvidedAPIs = false })
	w.succeeds("kettle.v1")
	w.Expect(w.Delete(t.Context(), w.csv("kettle.v1"))).To(gomega.Succeed())
	w.EventuallyGone(w.kettle("kettle.v1"))
	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(crd), crd)).To(gomega.Succeed())
	w.Expect(crd.Spec.Conversion.Strategy).To(gomega.Equal(apiextensionsv1.NoneConverter))
}
