package suite_test

import (
	"crypto/tls"
	"testing"
	"time"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/deployment"
	"github.com/chandlery/chandlery/test/certificates"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/testenv"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// TestTLSToAddress follows a catalog with mutual TLS. The objects that its annotations name come into being one by one,
// are broken, and are corrected. The supervisor notices everything without a restart.
func TestTLSToAddress(t *testing.T) {
	w := newWorld(t)
	ours, theirs := certificates.NewAuthority(t, "ours"), certificates.NewAuthority(t, "theirs")
	server := fakecatalog.StartExtended(t, fakecatalog.Simple("lamp", fakecatalog.Entry{Name: "lamp.v1", Version: "1.0.0"}))
	server.Stop()
	config := ours.Sign(t, certificates.Request{Hosts: []string{"shop.example"}}).Server(t)
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, ours.Pool()
	server.Secure(config)
	server.Restart()
	w.StartManager(ctrl.Options{Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{w.Namespace: {}}}}, func(mgr testenv.Manager) error {
		store := catalogs.NewStore(mgr.Context, time.Second, clock.RealClock{})
		if err := catalogs.Setup(mgr, store); err != nil {
			return err
		}
		return catalogsource.Setup(mgr, catalogsource.Options{Store: store, Config: catalogsource.Config{Settings: deployment.Settings{SetWorkloadUserID: true}}})
	})
	becomes := func(want string) {
		t.Helper()
		w.becomes("shop", func(g gomega.Gomega, s *operatorsv1alpha1.CatalogSource) {
			g.Expect(condition(s, api.ConditionConnectionSecured)).To(gomega.HavePrefix(want))
		})
	}
	annotate := func(name, value string) {
		t.Helper()
		w.Eventually(func(g gomega.Gomega) {
			s := w.source(g, "shop")
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, name, value)
			g.Expect(w.Update(t.Context(), s)).To(gomega.Succeed())
		}).Should(gomega.Succeed())
	}
	w.Create(fixtures.ServedCatalog(w.Namespace, "shop", server.Address()))
	becomes("False ServerExpectsTLS the server at " + server.Address())
	annotate(api.AnnotationTLS, "yes")
	becomes(`False TLSSettingsInvalid the annotation chandlery.dev/tls is "yes"`)
	annotate(api.AnnotationTLS, "configmap/ca")
	becomes("False CANotFound ConfigMap ca")
	ca := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "ca"}, Data: map[string]string{"ca.crt": string(theirs.PEM)}}
	w.Create(ca)
	becomes("False WrongServerName the server's certificate is valid for shop.example, not for 127.0.0.1")
	annotate(api.AnnotationTLSServerName, "shop.example")
	becomes("False UnknownAuthority")
	ca.Data["ca.crt"] = string(theirs.PEM) + string(ours.PEM)
	w.Expect(w.Update(t.Context(), ca)).To(gomega.Succeed())
	becomes("False ClientCertificateRequired")
	annotate(api.AnnotationTLSClientCertificate, "client")
	becomes("False ClientCertificateNotFound")
	pair := theirs.Sign(t, certificates.Request{})
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "client"}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: pair.Certificate, corev1.TLSPrivateKeyKey: pair.Key},
	}
	w.Create(secret)
	becomes("False ClientCertificateRefused")
	pair = ours.Sign(t, certificates.Request{})
	secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey] = pair.Certificate, pair.Key
	w.Expect(w.Update(t.Context(), secret)).To(gomega.Succeed())
	becomes("True ClientCertificateExpiring")
	w.becomes("shop", func(g gomega.Gomega, s *operatorsv1alpha1.CatalogSource) {
		g.Expect(s.Status.GRPCConnectionState).To(gomega.HaveField("LastObservedState", "READY"))
		g.Expect(s.Status.Message).To(gomega.BeEmpty())
	})
	pair = ours.Sign(t, certificates.Request{NotAfter: time.Now().AddDate(0, 1, 0)})
	secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey] = pair.Certificate, pair.Key
	w.Expect(w.Update(t.Context(), secret)).To(gomega.Succeed())
	becomes("True Secured")
	ca.Data["ca.crt"] = "broken"
	w.Expect(w.Update(t.Context(), ca)).To(gomega.Succeed())
	becomes("False CAInvalid ConfigMap ca, key ca.crt: it has no PEM certificate; the previous certificates stay in use")
}
