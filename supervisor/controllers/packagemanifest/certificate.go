package packagemanifest

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/webhook"
)

const (
	// reloadInterval is how often a server reads its certificate, which the leader renews weeks before its expiry.
	reloadInterval = time.Minute
	// waitInterval is how often a server looks for its first certificate.
	waitInterval = time.Second
)

// servingCertificate is the certificate in the Secret, for a server.
type servingCertificate struct {
	reader          client.Reader
	namespace, name string

	mu        sync.Mutex
	cert, key []byte
	listeners []dynamiccertificates.Listener
}

// Name returns the name of the Secret.
func (s *servingCertificate) Name() string { return s.name }

// CurrentCertKeyContent returns the certificate and its key.
func (s *servingCertificate) CurrentCertKeyContent() (cert, key []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cert, s.key
}

// AddListener adds a listener for changes.
func (s *servingCertificate) AddListener(l dynamiccertificates.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = append(s.listeners, l)
}

// reload reads the Secret. It returns an error if the Secret does not exist.
func (s *servingCertificate) reload(ctx context.Context) error {
	secret := &corev1.Secret{}
	if err := s.reader.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: s.Name()}, secret); err != nil {
		return fmt.Errorf("reading the serving certificate of PackageManifests: %w", err)
	}
	s.mu.Lock()
	s.cert, s.key = secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]
	listeners := s.listeners
	s.mu.Unlock()
	recordExpiry(secret.Data[corev1.TLSCertKey])
	for _, l := range listeners {
		l.Enqueue()
	}
	return nil
}

// read returns the certificate and its key from the Secret.
func (s *servingCertificate) read(ctx context.Context) (cert, key []byte, err error) {
	if err := s.reload(ctx); err != nil {
		return nil, nil, err
	}
	cert, key = s.CurrentCertKeyContent()
	return cert, key, nil
}

// await waits until the leader has made the certificate.
func (s *servingCertificate) await(ctx context.Context) error {
	for s.reload(ctx) != nil {
		select {
		case <-ctx.Done():
			return ctx.Err() //nolint:wrapcheck // the caller ends, too
		case <-time.After(waitInterval):
		}
	}
	return nil
}

// follow reads the Secret periodically until ctx ends.
func (s *servingCertificate) follow(ctx context.Context) {
	ticker := time.NewTicker(reloadInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			// The server continues with the certificate that it has.
			_ = s.reload(ctx)
		}
	}
}

// storedCertificate reads the certificate for the leader. Both results are nil if there is none.
func (i installation) storedCertificate(ctx context.Context, reader client.Reader, namespace string) (*webhook.Certificate, *corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: i.endpoint.SecretName()}, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the serving certificate of PackageManifests: %w", err)
	}
	// An unreadable certificate is replaced.
	certificate, _ := webhook.FromSecret(secret)
	return certificate, secret, nil
}

// secretOf returns the Secret with a certificate. It is deleted with the Deployment of the supervisor.
func (i installation) secretOf(deployment *appsv1.Deployment, c *webhook.Certificate, old *corev1.Secret) *corev1.Secret {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: deployment.Namespace, Name: i.endpoint.SecretName(), Labels: i.labels(),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment", Name: deployment.Name, UID: deployment.UID,
			}},
		},
		Type: corev1.SecretTypeTLS, Data: c.Data(),
	}
	if old != nil {
		secret.ResourceVersion = old.ResourceVersion
	}
	return secret
}
