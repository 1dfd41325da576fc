package suite_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"testing"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource"
)

// TestServeTLS turns TLS of a hosted catalog on by flag and off by annotation.
func TestServeTLS(t *testing.T) {
	w := newWorld(t)
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "taken-catalog-cert"}}
	w.Create(foreign, goods("goods"), goods("other"), ofConfigMap("goods", "goods"), ofConfigMap("taken", "other"))
	w.supervise(func(c *catalogsource.Config) { c.TLS = true })
	d := w.rolledOut("goods", 2)
	w.Expect(d.Spec.Template.Spec.Containers[0].Args).To(gomega.ContainElement("--tls-port=50052"))
	service, secret, ca := &corev1.Service{}, &corev1.Secret{}, &corev1.ConfigMap{}
	w.get(w, "goods", service)
	w.Expect(service.Spec.Ports).To(gomega.HaveLen(2))
	w.get(w, "goods-catalog-cert", secret)
	w.get(w, "goods-catalog-ca", ca)
	if _, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]); err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(secret.Data[corev1.TLSCertKey])
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(ca.Data["ca.crt"]))
	if _, err := certificate.Verify(x509.VerifyOptions{DNSName: "goods." + w.Namespace + ".svc", Roots: roots}); err != nil {
		t.Error(err)
	}

	// A Secret of another owner is not touched.
	w.becomes("taken", func(g gomega.Gomega, s *operatorsv1alpha1.CatalogSource) {
		g.Expect(s.Status.Message).To(gomega.ContainSubstring("taken-catalog-cert exists and has another owner"))
	})

	// Deleted authorities return.
	w.Expect(w.Delete(t.Context(), ca)).To(gomega.Succeed())
	w.Eventually(func(g gomega.Gomega) {
		again := &corev1.ConfigMap{}
		w.get(g, "goods-catalog-ca", again)
		g.Expect(again.UID).NotTo(gomega.Equal(ca.UID))
		g.Expect(again.Data).To(gomega.Equal(ca.Data))
	}).Should(gomega.Succeed())

	w.Eventually(func(g gomega.Gomega) {
		s := w.source(g, "goods")
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, api.AnnotationServeTLS, "false")
		g.Expect(w.Update(t.Context(), s)).To(gomega.Succeed())
	}).Should(gomega.Succeed())
	w.Eventually(func(g gomega.Gomega) {
		for name, o := range map[string]client.Object{"goods-catalog-cert": &corev1.Secret{}, "goods-catalog-ca": &corev1.ConfigMap{}} {
			err := w.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: name}, o)
			g.Expect(apierrors.IsNotFound(err)).To(gomega.BeTrue(), name)
		}
	}).Should(gomega.Succeed())
}
