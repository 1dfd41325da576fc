package suite_test

import (
	"context"
	"io"
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/catalogs/contentcache"
	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest/server"
)

// TestSupervisorsShareContents reads the content of a catalog from the supervisor, as a new pod does.
func TestSupervisorsShareContents(t *testing.T) {
	w := supervise(t)
	w.sells(w.global, "shop", "The Shop", nil, "lamp")
	w.available()
	source := catalogs.NewObject()
	key := client.ObjectKey{Namespace: w.global, Name: "shop"}
	w.Expect(w.Get(t.Context(), key, source)).To(gomega.Succeed())
	peer := &server.Peer{Address: w.at, Certificate: func(ctx context.Context) (cert, key []byte, err error) {
		secret := &corev1.Secret{}
		err = w.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: "chandlery-packagemanifests-service-cert"}, secret)
		return secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey], err
	}}
	var from io.ReadCloser
	w.EventuallySucceeds(func(g gomega.Gomega) {
		var err error
		from, err = peer.Open(t.Context(), key, source.GetUID())
		g.Expect(err).NotTo(gomega.HaveOccurred())
	})
	defer func() { _ = from.Close() }()
	own, err := contentcache.Open(t.TempDir(), 0)
	w.Expect(err).NotTo(gomega.HaveOccurred())
	w.Expect(own.Receive(key, source.GetUID(), from)).To(gomega.Succeed())
	var packages []string
	_, err = own.Read(key, source.GetUID(), func(*api.Bundle) error { return nil }, func(p *api.Package) error {
		packages = append(packages, p.GetName())
		return nil
	})
	w.Expect(err).NotTo(gomega.HaveOccurred())
	w.Expect(packages).To(gomega.Equal([]string{"lamp"}))
}
