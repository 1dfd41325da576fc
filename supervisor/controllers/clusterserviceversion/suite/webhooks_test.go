package suite_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
)

const (
	hookLabel = "olm.webhook-description-generate-name"
	certName  = "kettle-service-cert"
)

// checks adds a validating and a mutating webhook to the kettle.
func checks(csv *operatorsv1alpha1.ClusterServiceVersion) {
	for i, kind := range []operatorsv1alpha1.WebhookAdmissionType{operatorsv1alpha1.ValidatingAdmissionWebhook, operatorsv1alpha1.MutatingAdmissionWebhook} {
		csv.Spec.WebhookDefinitions = append(csv.Spec.WebhookDefinitions, operatorsv1alpha1.WebhookDescription{
			GenerateName: []string{"check.example.com", "change.example.com"}[i], Type: kind, DeploymentName: "kettle", ContainerPort: 443,
			AdmissionReviewVersions: []string{"v1"}, SideEffects: noSideEffects(),
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"check.example.com"}, APIVersions: []string{"v1"}, Resources: []string{"cups"}},
			}},
		})
	}
}

// converts returns a change that makes the kettle work for all namespaces and convert the cups of a
// definition, at a path.
func converts(crd, path string) func(*operatorsv1alpha1.ClusterServiceVersion) {
	return func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		owns(crd)(csv)
		csv.Spec.InstallModes = []operatorsv1alpha1.InstallMode{{Type: operatorsv1alpha1.InstallModeTypeAllNamespaces, Supported: true}}
		csv.Spec.WebhookDefinitions = append(csv.Spec.WebhookDefinitions, operatorsv1alpha1.WebhookDescription{
			GenerateName: "convert.example.com", Type: operatorsv1alpha1.ConversionWebhook, DeploymentName: "kettle", ContainerPort: 443,
			AdmissionReviewVersions: []string{"v1"}, SideEffects: noSideEffects(), WebhookPath: &path, ConversionCRDs: []string{crd},
		})
	}
}

// shifted is the time of day, shifted by a test.
type shifted struct {
	clock.RealClock

	by atomic.Int64
}

func (s *shifted) Now() time.Time                  { return s.RealClock.Now().Add(time.Duration(s.by.Load())) }
func (s *shifted) Since(t time.Time) time.Duration { return s.Now().Sub(t) }

// nudge causes a reconcile of kettle.v1.
func (w *world) nudge() {
	w.T.Helper()
	csv := w.csv("kettle.v1")
	patch := client.MergeFrom(csv.DeepCopy())
	if csv.Annotations == nil {
		csv.Annotations = map[string]string{}
	}
	csv.Annotations["example.com/nudge"] += "x"
	w.Expect(w.Patch(w.T.Context(), csv, patch)).To(gomega.Succeed())
}

// hooks returns the validating configurations of the namespace.
func (w *world) hooks(g gomega.Gomega) []admissionregistrationv1.ValidatingWebhookConfiguration {
	var list admissionregistrationv1.ValidatingWebhookConfigurationList
	g.Expect(w.List(w.T.Context(), &list, client.MatchingLabels{hookLabel: "check.example.com", "olm.owner.namespace": w.Namespace})).To(gomega.Succeed())
	return list.Items
}

func (w *world) secret(g gomega.Gomega) *corev1.Secret {
	secret := &corev1.Secret{}
	g.Expect(w.Get(w.T.Context(), client.ObjectKey{Namespace: w.Namespace, Name: certName}, secret)).To(gomega.Succeed())
	return secret
}

// believed waits until callers trust the authority in the Secret and no other.
func (w *world) believed() *corev1.Secret {
	w.T.Helper()
	var secret *corev1.Secret
	w.Eventually(func(g gomega.Gomega) {
		secret = w.secret(g)
		hooks := w.hooks(g)
		g.Expect(hooks).To(gomega.HaveLen(1))
		g.Expect(string(hooks[0].Webhooks[0].ClientConfig.CABundle)).To(gomega.Equal(string(secret.Data["olmCAKey"])))
		var d appsv1.Deployment
		g.Expect(w.Get(w.T.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "kettle"}, &d)).To(gomega.Succeed())
		g.Expect(d.Spec.Template.Annotations).To(gomega.HaveKeyWithValue("olmcahash", secret.Annotations["olmcahash"]))
	}).Should(gomega.Succeed())
	return secret
}

// served returns all objects that lead to the kettle, without webhook configurations.
func (w *world) served() []client.Object {
	here := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: w.Namespace, Name: name} }
	return []client.Object{
		&corev1.Service{ObjectMeta: here("kettle-service")},
		&corev1.Secret{ObjectMeta: here(certName)},
		&rbacv1.Role{ObjectMeta: here(certName)},
		&rbacv1.RoleBinding{ObjectMeta: here(certName)},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kettle-service." + w.Namespace + "-auth-reader"}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "kettle-service." + w.Namespace + "-system:auth-delegator"}},
	}
}

func TestServesWebhooksAndTakesThemAway(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	csv := w.kettle("kettle.v1", checks)
	w.Create(w.group("own", w.Namespace), csv)
	made := w.succeeds("kettle.v1")
	w.Expect(made.Status.CertsRotateAt).NotTo(gomega.BeNil())
	w.believed()
	versions := map[string]string{}
	for _, o := range w.served() {
		w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(o), o)).To(gomega.Succeed(), "%T %s", o, o.GetName())
		versions[o.GetNamespace()+"/"+o.GetName()+string(o.GetUID())] = o.GetResourceVersion()
	}
	hook := w.hooks(w)[0]

	// Without a change there are no writes.
	w.nudge()
	w.Consistently(func(g gomega.Gomega) {
		for _, o := range w.served() {
			g.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(o), o)).To(gomega.Succeed())
			g.Expect(o.GetResourceVersion()).To(gomega.Equal(versions[o.GetNamespace()+"/"+o.GetName()+string(o.GetUID())]), "%T %s", o, o.GetName())
		}
		g.Expect(w.hooks(g)[0].ResourceVersion).To(gomega.Equal(hook.ResourceVersion))
	}).WithTimeout(2 * time.Second).Should(gomega.Succeed())

	w.Expect(w.Delete(t.Context(), csv)).To(gomega.Succeed())
	w.EventuallyGone(csv)
	w.EventuallyGone(&hook)
	for _, o := range w.served() {
		w.EventuallyGone(o)
	}
}

func TestTakesOverWebhooksOfAnotherManager(t *testing.T) {
	w := newWorld(t)
	labels := w.owner("kettle.v1")
	labels[hookLabel] = "check.example.com"
	theirs := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{GenerateName: "check.example.com-", Labels: labels}}
	delegator := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "kettle-service-system:auth-delegator", Labels: w.owner("kettle.v1")},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "default", Namespace: w.Namespace}},
	}
	w.Create(theirs, delegator)
	w.supervise()
	w.Create(w.group("own", w.Namespace), w.kettle("kettle.v1", checks))
	w.succeeds("kettle.v1")
	w.believed()
	w.Expect(w.hooks(w)[0].Name).To(gomega.Equal(theirs.Name), "the configuration was made a second time")
	w.EventuallyGone(delegator)
}

func TestHealsWhatMakesOperatorsReachable(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	w.Create(w.group("own", w.Namespace), w.kettle("kettle.v1", checks))
	w.succeeds("kettle.v1")
	w.believed()

	hook := w.hooks(w)[0]
	w.Expect(w.Delete(t.Context(), &hook)).To(gomega.Succeed())
	w.believed()
	w.succeeds("kettle.v1")

	hook = w.hooks(w)[0]
	hook.Webhooks[0].ClientConfig.CABundle = nil
	w.Expect(w.Update(t.Context(), &hook)).To(gomega.Succeed())
	w.believed()

	secret := w.secret(w)
	before := string(secret.Data["olmCAKey"])
	w.Expect(w.Delete(t.Context(), secret)).To(gomega.Succeed())
	w.nudge()
	w.Eventually(func(g gomega.Gomega) {
		g.Expect(string(w.secret(g).Data["olmCAKey"])).NotTo(gomega.Equal(before))
	}).Should(gomega.Succeed())
	w.believed()
	w.succeeds("kettle.v1")
}

func TestReplacesCertificatesBeforeTheirEnd(t *testing.T) {
	w := newWorld(t)
	now := &shifted{}
	w.superviseAt(now)
	w.Create(w.group("own", w.Namespace), w.kettle("kettle.v1", checks))
	first := w.succeeds("kettle.v1").Status.CertsRotateAt
	before := w.believed()

	now.by.Store(int64(715 * 24 * time.Hour))
	w.nudge()

	w.Eventually(func(g gomega.Gomega) {
		secret := w.secret(g)
		g.Expect(string(secret.Data["tls.crt"])).NotTo(gomega.Equal(string(before.Data["tls.crt"])))
		g.Expect(secret.Data).To(gomega.HaveLen(3), "an authority or a certificate is left over")
	}).Should(gomega.Succeed())
	w.believed()
	csv := w.succeeds("kettle.v1")
	w.Expect(csv.Status.CertsRotateAt.After(first.Time)).To(gomega.BeTrue())
	reasons := map[operatorsv1alpha1.ConditionReason]bool{}
	for _, c := range csv.Status.Conditions {
		reasons[c.Reason] = true
	}
	w.Expect(reasons).To(gomega.HaveKey(operatorsv1alpha1.CSVReasonNeedsCertRotation))
}

func TestSwitchesConversionWhenTheWebhookAnswers(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	const group = "switch.example.com"
	crd := w.tableware(group)
	w.Eventually(func() error {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
			return err
		}
		second := *crd.Spec.Versions[0].DeepCopy()
		second.Name, second.Storage = "v2", false
		crd.Spec.Versions = append(crd.Spec.Versions[:1], second)
		return w.Update(t.Context(), crd)
	}).Should(gomega.Succeed())
	conversion := func(g gomega.Gomega) *apiextensionsv1.CustomResourceConversion {
		g.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(crd), crd)).To(gomega.Succeed())
		return crd.Spec.Conversion
	}

	// A first conversion may be set before its webhook answers: nothing is lost.
	w.Create(w.group("all"), w.kettle("kettle.v1", idle, converts(crd.Name, "/old")))
	w.succeeds("kettle.v1")
	have := conversion(w)
	w.Expect(have.Strategy).To(gomega.Equal(apiextensionsv1.WebhookConverter))
	w.Expect(*have.Webhook.ClientConfig.Service.Path).To(gomega.Equal("/old"))

	// No pods answer; the existing conversion stays, and so does the storage version.
	w.Create(w.kettle("kettle.v2", replaces("kettle.v1"), image("example.com/kettle:2"), idle, converts(crd.Name, "/new")))
	w.Eventually(func(g gomega.Gomega) {
		csv := w.csv("kettle.v2")
		g.Expect(csv.Status.Phase).To(gomega.Equal(operatorsv1alpha1.CSVPhaseInstalling))
		g.Expect(csv.Annotations[api.AnnotationCause]).To(gomega.ContainSubstring("conversion webhook"))
	}).Should(gomega.Succeed())
	w.change(crd, func() {
		crd.Annotations = map[string]string{"chandlery.dev/storage-version": w.Namespace + "/kettle.v2:v2"}
	})
	w.Consistently(func(g gomega.Gomega) {
		g.Expect(*conversion(g).Webhook.ClientConfig.Service.Path).To(gomega.Equal("/old"))
		g.Expect(crd.Spec.Versions[0].Storage).To(gomega.BeTrue())
	}).WithTimeout(3 * time.Second).Should(gomega.Succeed())

	w.pod(convertsAt("/new"))
	w.succeeds("kettle.v2")
	w.Expect(*conversion(w).Webhook.ClientConfig.Service.Path).To(gomega.Equal("/new"))
	w.Expect(crd.Spec.Versions[1].Storage).To(gomega.BeTrue())
	w.EventuallyGone(w.kettle("kettle.v1"))
	w.Expect(conversion(w).Strategy).To(gomega.Equal(apiextensionsv1.WebhookConverter), "an old version took the conversion of the new one away")

	w.Expect(w.Delete(t.Context(), w.csv("kettle.v2"))).To(gomega.Succeed())
	w.EventuallyGone(w.kettle("kettle.v2"))
	w.Expect(conversion(w).Strategy).To(gomega.Equal(apiextensionsv1.NoneConverter))
}

func TestRefusesWebhooksThatSeeOperators(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	w.Create(w.group("own", w.Namespace), w.kettle("kettle.v1", checks, func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		csv.Spec.WebhookDefinitions[0].Rules[0].APIGroups = []string{"operators.coreos.com"}
	}))
	csv := w.reaches("kettle.v1", operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVReasonInvalidWebhookDescription)
	w.Expect(csv.Status.Message).To(gomega.Equal("webhook rules cannot include the OLM group"))
	w.says(csv, "spec.webhookdefinitions[0].rules[0].apiGroups")
	for _, o := range w.served() {
		w.EventuallyGone(o)
	}
}

func TestLeavesTheAPIServiceOfAnotherAlone(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	group := w.Namespace + ".taken.example.com"
	theirs := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": group, "version": "v1", "groupPriorityMinimum": int64(1000), "versionPriority": int64(10),
		"service": map[string]any{"namespace": "default", "name": "theirs"}, "insecureSkipTLSVerify": true,
	}}}
	theirs.SetAPIVersion("apiregistration.k8s.io/v1")
	theirs.SetKind("APIService")
	theirs.SetName("v1." + group)
	w.Create(theirs)
	version := theirs.GetResourceVersion()

	w.Create(w.group("own", w.Namespace), w.kettle("kettle.v1", func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		csv.Spec.APIServiceDefinitions.Owned = []operatorsv1alpha1.APIServiceDescription{
			{Name: "cups", Group: group, Version: "v1", Kind: "Cup", DeploymentName: "kettle", ContainerPort: 443},
		}
	}))
	csv := w.reaches("kettle.v1", operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVReasonOwnerConflict)
	w.Expect(csv.Status.Message).To(gomega.Equal("unable to adopt APIService"))
	w.says(csv, theirs.GetName())
	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs)).To(gomega.Succeed())
	spec, _, err := unstructured.NestedInt64(theirs.Object, "spec", "versionPriority")
	w.Expect(err).NotTo(gomega.HaveOccurred())
	w.Expect(spec).To(gomega.Equal(int64(10)), "changed since version %s", version)
}
