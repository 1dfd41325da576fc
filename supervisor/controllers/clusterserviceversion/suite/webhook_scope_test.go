package suite_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/webhook"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// asksForAll adds a validating webhook to the kettle, for everything in some groups that the API
// server accepts. It is limited to objects with a label of the test.
func (w *world) asksForAll(groups []string, resources ...string) func(*operatorsv1alpha1.ClusterServiceVersion) {
	return func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		csv.Spec.WebhookDefinitions = append(csv.Spec.WebhookDefinitions, operatorsv1alpha1.WebhookDescription{
			GenerateName: "check.example.com", Type: operatorsv1alpha1.ValidatingAdmissionWebhook, DeploymentName: "kettle", ContainerPort: 443,
			AdmissionReviewVersions: []string{"v1"}, SideEffects: noSideEffects(),
			ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"probe": w.Namespace}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
				Rule:       admissionregistrationv1.Rule{APIGroups: groups, APIVersions: []string{"*"}, Resources: resources},
			}},
		})
	}
}

// probe labels an object for the webhook of the test.
func (w *world) probe(o client.Object) client.Object {
	o.SetLabels(map[string]string{"probe": w.Namespace})
	return o
}

// called reports whether the API server calls the webhook, which does not answer, for the creation
// of an object.
func (w *world) called(o client.Object) bool {
	w.T.Helper()
	err := w.Client.Create(w.T.Context(), w.probe(o), client.DryRunAll)
	if err != nil && !apierrors.IsInternalError(err) {
		w.T.Errorf("creating %T %s: %v", o, o.GetName(), err)
	}
	return err != nil
}

// isCalled waits until the API server calls the webhook for an object.
func (w *world) isCalled(o client.Object) {
	w.T.Helper()
	//nolint:forcetypeassert // a copy is of the same type
	w.Eventually(func() bool { return w.called(o.DeepCopyObject().(client.Object)) }).Should(gomega.BeTrue(), "%T %s %s", o, o.GetNamespace(), o.GetName())
}

func configMap(namespace string) client.Object {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe"}}
}

// TestWebhooksReachNoFurtherThanTheGroup has a version in a group for one namespace with webhooks
// for everything.
func TestWebhooksReachNoFurtherThanTheGroup(t *testing.T) {
	w := newWorld(t)
	w.UseDeployedRole()
	w.home = w.Namespace + "-supervisor"
	w.supervise()
	own := clusterScoped(fixtures.CRD("reach.example.com", "Cup"))
	w.recordPlanOf(own)
	w.serve(own)
	foreign := w.serve(clusterScoped(fixtures.CRD("unreached.example.com", "Cup")))
	home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.home}}
	w.Create(home)
	groups := []string{"", "rbac.authorization.k8s.io", "apps", own.Spec.Group, foreign.Spec.Group}
	w.Create(w.group("some", w.Namespace, w.home), w.kettle("kettle.v1", owns(own.Name), owns(foreign.Name), w.asksForAll(groups, "*/*")))
	w.succeeds("kettle.v1")

	w.isCalled(configMap(w.Namespace))
	w.isCalled(cup(own.Spec.Group, "", "mine"))

	name := metav1.ObjectMeta{Name: "probe-" + w.Namespace}
	for reason, o := range map[string]client.Object{
		"another namespace":        configMap("default"),
		"the supervisor":           configMap(w.home),
		"a Namespace":              &corev1.Namespace{ObjectMeta: name},
		"a ClusterRole":            &rbacv1.ClusterRole{ObjectMeta: name},
		"a kind of another owner":  cup(foreign.Spec.Group, "", "probe"),
		"a webhook configuration":  &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: name},
		"an object of operators":   w.group("probe", w.Namespace),
		"a version of an operator": w.kettle("probe"),
		"a mutating configuration": &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: name},
	} {
		w.Expect(w.called(o)).To(gomega.BeFalse(), "the webhook is called for %s", reason)
	}
}

// TestWebhooksForAllNamespacesSpareTheSupervisor has a version in a group for all namespaces with
// webhooks for everything in them.
func TestWebhooksForAllNamespacesSpareTheSupervisor(t *testing.T) {
	w := newWorld(t)
	w.UseDeployedRole()
	w.home = "default"
	w.supervise()
	w.Create(w.group("all"), w.kettle("kettle.v1", w.asksForAll([]string{"", "rbac.authorization.k8s.io"}, "*/*")))
	w.succeeds("kettle.v1")

	w.isCalled(configMap(w.Namespace))
	w.isCalled(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "probe-" + w.Namespace}})

	w.Expect(w.called(configMap(w.home))).To(gomega.BeFalse(), "the webhook is called in the namespace of the supervisor")
}

// deployingGroup creates an OperatorGroup for all namespaces that names the account "weak". Its
// only right is to create Deployments in the namespace of the test.
func (w *world) deployingGroup() {
	w.T.Helper()
	r := &refusedInstall{world: w}
	group := w.group("own")
	group.Spec.ServiceAccountName = "weak"
	w.Create(r.serviceAccount("weak"), r.role(), r.binding("Role", "weak"), group)
}

// TestWebhooksNeedTheRightsOfTheGroupsAccount has a version in a group for all namespaces that
// names an account. The version has webhooks for everything.
func TestWebhooksNeedTheRightsOfTheGroupsAccount(t *testing.T) {
	w := newWorld(t)
	w.UseDeployedRole()
	w.supervise()
	own := clusterScoped(fixtures.CRD("account.example.com", "Cup"))
	w.recordPlanOf(own)
	w.serve(own)
	w.deployingGroup()
	w.Create(w.kettle("kettle.v1", owns(own.Name), checks, w.asksForAll([]string{"", "rbac.authorization.k8s.io", own.Spec.Group}, "*/*"), renamed))
	csv := w.reaches("kettle.v1", operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVReasonComponentFailed)
	w.says(csv, "install strategy failed: ServiceAccount "+w.Namespace+"/weak of OperatorGroup own lacks permission to create "+
		"validatingwebhookconfigurations and mutatingwebhookconfigurations of admissionregistration.k8s.io; "+
		"grant it with a ClusterRole, or name another ServiceAccount in the OperatorGroup")
	for _, list := range []client.ObjectList{
		&admissionregistrationv1.ValidatingWebhookConfigurationList{}, &admissionregistrationv1.MutatingWebhookConfigurationList{},
	} {
		w.Expect(w.List(t.Context(), list, client.MatchingLabels{"olm.owner.namespace": w.Namespace})).To(gomega.Succeed())
		w.Expect(list).To(gomega.HaveField("Items", gomega.BeEmpty()))
	}

	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "hooks-" + w.Namespace},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"admissionregistration.k8s.io"},
			Resources: []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"}, Verbs: []string{"create"},
		}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.Namespace, Name: "weak"}},
	}
	w.Create(role, binding)
	w.succeeds("kettle.v1")
	w.isCalled(configMap(w.Namespace))
	w.isCalled(cup(own.Spec.Group, "", "mine"))
	w.Expect(w.called(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "probe-" + w.Namespace}})).To(gomega.BeFalse())

	// Without the right the version keeps its webhooks, and gets no new ones.
	w.Expect(w.Delete(t.Context(), binding)).To(gomega.Succeed())
	old := w.deployment()
	w.Expect(w.Delete(t.Context(), old)).To(gomega.Succeed())
	w.Eventually(func() error {
		d := &appsv1.Deployment{}
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(old), d); err != nil {
			return err
		}
		if d.UID == old.UID {
			return errors.New("the Deployment is not recreated")
		}
		return nil
	}).Should(gomega.Succeed())
	w.succeeds("kettle.v1")
	w.Expect(w.DeleteAllOf(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{}, client.MatchingLabels{"olm.owner.namespace": w.Namespace})).To(gomega.Succeed())
	csv = w.reaches("kettle.v1", operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVReasonComponentFailed)
	w.says(csv, "lacks permission to create validatingwebhookconfigurations")
}

// renamed gives each webhook of a version its own name.
func renamed(csv *operatorsv1alpha1.ClusterServiceVersion) {
	for i := range csv.Spec.WebhookDefinitions {
		csv.Spec.WebhookDefinitions[i].GenerateName = fmt.Sprintf("check%d.example.com", i)
	}
}

// TestRefusesWebhooksBeyondTheGroup checks the message about resources that a webhook may not
// receive.
func TestRefusesWebhooksBeyondTheGroup(t *testing.T) {
	for name, tt := range map[string]struct {
		groups    []string
		resources []string
		targets   func(*world) []string
		account   string
		want      string
	}{
		"cluster-scoped": {
			[]string{"rbac.authorization.k8s.io"},
			[]string{"rolebindings", "clusterrolebindings"},
			func(w *world) []string { return []string{w.Namespace} },
			"",
			"spec.webhookdefinitions[0].rules[0].resources: webhook rules cannot include the cluster-scoped clusterrolebindings.rbac.authorization.k8s.io, " +
				"as OperatorGroup own does not target all namespaces",
		},
		"leases": {
			[]string{"coordination.k8s.io"},
			[]string{"*/*"},
			func(*world) []string { return nil },
			"",
			"spec.webhookdefinitions[0].rules[0].resources: webhook rules cannot include Leases",
		},
		"cluster-scoped with an account": {
			[]string{"rbac.authorization.k8s.io"},
			[]string{"clusterrolebindings"},
			func(*world) []string { return nil },
			"weak",
			"spec.webhookdefinitions[0].rules[0].resources: webhook rules cannot include the cluster-scoped clusterrolebindings.rbac.authorization.k8s.io, " +
				"as OperatorGroup own names ServiceAccount weak; leave it out, or install the operator for all namespaces without spec.serviceAccountName",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.supervise()
			group := w.group("own", tt.targets(w)...)
			group.Spec.ServiceAccountName = tt.account
			w.Create(group, w.kettle("kettle.v1", w.asksForAll(tt.groups, tt.resources...)))
			csv := w.reaches("kettle.v1", operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVReasonInvalidWebhookDescription)
			w.Expect(csv.Status.Message).To(gomega.ContainSubstring(tt.want))
			w.Expect(w.hooks(w.WithT)).To(gomega.BeEmpty())
		})
	}
}

// TestClusterScopedKindsOfKubernetesAreKnown compares the kinds for which no bounded group may have
// webhooks with those that the API server serves.
func TestClusterScopedKindsOfKubernetesAreKnown(t *testing.T) {
	w := newWorld(t)
	served, err := discovery.NewDiscoveryClientForConfigOrDie(w.Config).ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	known := 0
	for _, list := range served {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		// Other kinds belong to tests.
		if strings.Contains(gv.Group, ".") && !strings.HasSuffix(gv.Group, ".k8s.io") {
			continue
		}
		for i := range list.APIResources {
			resource := &list.APIResources[i]
			csv := w.kettle("kettle.v1")
			w.asksForAll([]string{gv.Group}, resource.Name)(csv)
			refused := webhook.Scope{Group: "own"}.Validate(csv) != nil
			if _, err := webhook.Servers(csv); err != nil {
				refused = true
			}
			if !resource.Namespaced {
				known++
			}
			if !refused && !resource.Namespaced {
				t.Errorf("a bounded group may have webhooks for the cluster-scoped %s of the group %q", resource.Name, gv.Group)
			}
		}
	}
	if known == 0 {
		t.Error("the API server serves no cluster-scoped kind")
	}
}
