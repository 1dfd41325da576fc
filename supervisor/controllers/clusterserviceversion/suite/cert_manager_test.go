package suite_test

import (
	"os"
	"testing"
	"time"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

const fromIssuer = `{"certificateIssuer": {"kind": "ClusterIssuer", "name": "internal"}}`

// certManager is a cluster in which a test acts as cert-manager.
type certManager struct{ *world }

// install creates the kind Certificate.
func (w certManager) install() {
	w.T.Helper()
	text, err := os.ReadFile("testdata/certificates.cert-manager.io.yaml")
	w.Expect(err).NotTo(gomega.HaveOccurred())
	crd := &apiextensionsv1.CustomResourceDefinition{}
	w.Expect(yaml.UnmarshalStrict(text, crd)).To(gomega.Succeed())
	key := client.ObjectKeyFromObject(crd)
	// The test before deletes the same definition.
	w.Eventually(func() bool { return apierrors.IsNotFound(w.Get(w.T.Context(), key, crd.DeepCopy())) }).Should(gomega.BeTrue())
	w.Create(crd)
	w.Eventually(func() bool {
		live := &apiextensionsv1.CustomResourceDefinition{}
		return w.Get(w.T.Context(), key, live) == nil && apihelpers.IsCRDConditionTrue(live, apiextensionsv1.Established)
	}).Should(gomega.BeTrue())
}

// request waits for the Certificate of the kettle.
func (w certManager) request() *unstructured.Unstructured {
	w.T.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(webhook.CertificateRequestKind())
	w.Eventually(func() error {
		return w.Get(w.T.Context(), client.ObjectKey{Namespace: w.Namespace, Name: certName}, u)
	}).WithTimeout(time.Minute).Should(gomega.Succeed())
	return u
}

// issue writes the Secret of a Certificate as cert-manager does, and returns its authority.
func (w certManager) issue(request *unstructured.Unstructured) string {
	w.T.Helper()
	issued, err := webhook.Issue(webhook.Server{Deployment: "kettle"}, w.Namespace, time.Now())
	w.Expect(err).NotTo(gomega.HaveOccurred())
	name, _, err := unstructured.NestedString(request.Object, "spec", "secretName")
	w.Expect(err).NotTo(gomega.HaveOccurred())
	annotations, _, err := unstructured.NestedStringMap(request.Object, "spec", "secretTemplate", "annotations")
	w.Expect(err).NotTo(gomega.HaveOccurred())
	secret := &corev1.Secret{Type: corev1.SecretTypeTLS, Data: map[string][]byte{"ca.crt": issued.CA, "tls.crt": issued.Cert, "tls.key": issued.Key}}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(secret)
	w.Expect(err).NotTo(gomega.HaveOccurred())
	u := &unstructured.Unstructured{Object: content}
	u.SetAPIVersion("v1")
	u.SetKind("Secret")
	u.SetNamespace(w.Namespace)
	u.SetName(name)
	u.SetAnnotations(annotations)
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	w.Expect(w.Apply(w.T.Context(), client.ApplyConfigurationFromUnstructured(u),
		client.FieldOwner("cert-manager-certificates-issuing"), client.ForceOwnership)).To(gomega.Succeed())
	return string(issued.CA)
}

// trusts waits until the kettle has succeeded, and its webhooks, a conversion and its pods have the certificate of an authority.
func (w certManager) trusts(ca string, crd *apiextensionsv1.CustomResourceDefinition) {
	w.T.Helper()
	w.Eventually(func(g gomega.Gomega) {
		hooks := w.hooks(g)
		g.Expect(hooks).To(gomega.HaveLen(1))
		g.Expect(string(hooks[0].Webhooks[0].ClientConfig.CABundle)).To(gomega.Equal(ca))
		g.Expect(w.Get(w.T.Context(), client.ObjectKeyFromObject(crd), crd)).To(gomega.Succeed())
		g.Expect(crd.Spec.Conversion.Webhook).NotTo(gomega.BeNil())
		g.Expect(string(crd.Spec.Conversion.Webhook.ClientConfig.CABundle)).To(gomega.Equal(ca))
		g.Expect(w.deployment().Spec.Template.Annotations).To(gomega.HaveKeyWithValue("olmcahash", (&webhook.Certificate{CA: []byte(ca)}).CAHash()))
		g.Expect(w.csv("kettle.v1").Status.Phase).To(gomega.Equal(operatorsv1alpha1.CSVPhaseSucceeded))
	}).WithTimeout(90 * time.Second).Should(gomega.Succeed())
}

// TestCertManagerIssuesCertificates installs an operator whose Subscription names an issuer, without cert-manager and with
// it. Then the Subscription names no issuer, and names one again.
func TestCertManagerIssuesCertificates(t *testing.T) {
	w := certManager{newWorld(t)}
	w.supervise()
	crd := w.tableware("issued.example.com")
	sub := w.wish(nil)
	sub.Annotations = map[string]string{api.AnnotationConfig: fromIssuer}
	csv := w.kettle("kettle.v1", w.packaged, idle, checks, converts(crd.Name, "/convert"))
	w.Create(w.group("all"), sub, csv)

	w.says(w.reaches("kettle.v1", operatorsv1alpha1.CSVPhasePending, operatorsv1alpha1.CSVReasonNeedsReinstall),
		"the cluster has no API certificates.cert-manager.io: install cert-manager, or remove certificateIssuer")
	w.Expect(apierrors.IsNotFound(w.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: certName}, &corev1.Secret{}))).To(gomega.BeTrue())

	w.install()
	w.nudge()
	request := w.request()
	issuer, _, _ := unstructured.NestedStringMap(request.Object, "spec", "issuerRef")
	w.Expect(issuer).To(gomega.Equal(map[string]string{"group": "cert-manager.io", "kind": "ClusterIssuer", "name": "internal"}))
	w.Expect(unstructured.SetNestedSlice(request.Object, []any{map[string]any{
		"type": "Ready", "status": "False", "reason": "DoesNotExist", "message": "the issuer does not exist", "lastTransitionTime": "2026-01-01T00:00:00Z",
	}}, "status", "conditions")).To(gomega.Succeed())
	w.Expect(w.Status().Update(t.Context(), request)).To(gomega.Succeed())
	w.Eventually(func() string { return w.csv("kettle.v1").Annotations[api.AnnotationCause] }).WithTimeout(time.Minute).
		Should(gomega.ContainSubstring("is not issued: cert-manager reports DoesNotExist: the issuer does not exist"))

	ca := w.issue(request)
	w.trusts(ca, crd)
	w.Expect(w.secret(w).OwnerReferences).To(gomega.ContainElement(gomega.HaveField("UID", request.GetUID())))

	// Without the issuer, the supervisor replaces the certificate as one of its own that is due.
	w.change(sub, func() { sub.Annotations = nil })
	w.EventuallyGone(request)
	w.Eventually(func(g gomega.Gomega) {
		secret := w.secret(g)
		g.Expect(secret.Annotations).NotTo(gomega.HaveKey(api.AnnotationCertificate))
		g.Expect(secret.Data).To(gomega.HaveLen(3))
		g.Expect(string(secret.Data["olmCAKey"])).NotTo(gomega.Equal(ca))
	}).WithTimeout(time.Minute).Should(gomega.Succeed())
	w.trusts(string(w.secret(w).Data["olmCAKey"]), crd)

	// While a new issuer has not answered, the certificate of the supervisor stays.
	w.change(sub, func() { sub.Annotations = map[string]string{api.AnnotationConfig: fromIssuer} })
	again := w.request()
	w.Eventually(func() string { return w.csv("kettle.v1").Annotations[api.AnnotationCause] }).
		Should(gomega.ContainSubstring("the supervisor still issues the certificates"))
	w.Expect(w.csv("kettle.v1").Status.Phase).To(gomega.Equal(operatorsv1alpha1.CSVPhaseSucceeded))
	w.trusts(w.issue(again), crd)
	w.uncaused()

	// Nothing is left after the version.
	secret := w.secret(w)
	w.Expect(w.Delete(t.Context(), w.csv("kettle.v1"))).To(gomega.Succeed())
	w.EventuallyGone(csv)
	w.EventuallyGone(again)
	w.EventuallyGone(secret)
}

// TestAccountMustBeAllowedToRequestCertificates has an OperatorGroup whose account may not create Certificates.
func TestAccountMustBeAllowedToRequestCertificates(t *testing.T) {
	w := certManager{newWorld(t)}
	w.install()
	w.supervise()
	sub := w.wish(nil)
	sub.Annotations = map[string]string{api.AnnotationConfig: fromIssuer}
	group, account := w.weakGroup()
	owned := func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		csv.Spec.APIServiceDefinitions.Owned = []operatorsv1alpha1.APIServiceDescription{
			{Name: "cups", Group: "weak.example.com", Version: "v1", Kind: "Cup", DeploymentName: "kettle", ContainerPort: 443},
		}
	}
	w.Create(group, account, sub, w.kettle("kettle.v1", w.packaged, owned))
	csv := w.reaches("kettle.v1", operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVReasonComponentFailed)
	w.says(csv, "ServiceAccount "+w.Namespace+"/weak of OperatorGroup own lacks permission to create certificates of cert-manager.io")
}
