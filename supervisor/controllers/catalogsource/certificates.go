package catalogsource

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/deployment"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

const (
	// checkInterval is how often the certificate of a catalog is checked.
	checkInterval = 10 * time.Minute
	// overlap is how long clients have to read a new authority before its certificate is used, and as long afterwards
	// to drop the old one.
	overlap = 24 * time.Hour
)

// certificates keeps the server certificates of catalogs, each with an authority of its own.
type certificates struct {
	// cached reads the metadata of ConfigMaps.
	cached  client.Reader
	live    client.Reader
	client  client.Client
	clock   clock.PassiveClock
	checked catalogMap[time.Time] // when the certificate was checked last
}

// endpointOf describes the server of a catalog.
func endpointOf(source *operatorsv1alpha1.CatalogSource) webhook.Server {
	return webhook.Server{Deployment: source.Name, Service: catalogs.ServiceName(source)}
}

// ensure creates or renews the certificate of a catalog. It returns when to check it again.
func (c *certificates) ensure(ctx context.Context, source *operatorsv1alpha1.CatalogSource) (next time.Duration, err error) {
	key, now := client.ObjectKeyFromObject(source), c.clock.Now()
	published, err := c.isPublished(ctx, source)
	if err != nil {
		return 0, err
	}
	if last, known := c.checked.get(key); known && published && now.Sub(last) < checkInterval {
		return checkInterval - now.Sub(last), nil
	}
	secret, configMap, err := c.read(ctx, source)
	if err != nil {
		return 0, err
	}
	var stored *webhook.Certificate
	if secret != nil {
		stored, _ = webhook.FromSecret(secret) // an unreadable certificate is replaced
	}
	var trusted []byte
	if configMap != nil {
		trusted = []byte(configMap.Data[deployment.KeyCA])
	}
	certificate, err := nextCertificate(stored, source, trusted, now)
	if err != nil {
		return 0, err
	}
	// Clients must trust an authority before its certificate is used.
	if err := c.writeAuthorities(ctx, source, configMap, certificate); err != nil {
		return 0, err
	}
	if err := c.writeCertificate(ctx, source, secret, certificate); err != nil {
		return 0, err
	}
	c.checked.set(key, now)
	return checkInterval, nil
}

// nextCertificate returns the certificate that a catalog must have. trusted are the authorities in its ConfigMap.
func nextCertificate(stored *webhook.Certificate, source *operatorsv1alpha1.CatalogSource, trusted []byte, now time.Time) (*webhook.Certificate, error) {
	certificate, err := webhook.Renew(stored, endpointOf(source), source.Namespace, now)
	if err != nil {
		return nil, fmt.Errorf("making the certificate of CatalogSource %s/%s: %w", source.Namespace, source.Name, err)
	}
	if next := certificate.Next; next != nil && now.Sub(next.IssuedAt()) >= overlap && bytes.Equal(trusted, certificate.Bundle()) {
		certificate = certificate.UseNext()
	}
	if len(certificate.PreviousCA) > 0 && now.Sub(certificate.IssuedAt()) >= 2*overlap {
		certificate = certificate.DropPreviousCA()
	}
	return certificate, nil
}

// isPublished reports whether the cache has the ConfigMap with the authorities.
func (c *certificates) isPublished(ctx context.Context, source *operatorsv1alpha1.CatalogSource) (bool, error) {
	found, key := configMapMetadata(), client.ObjectKey{Namespace: source.Namespace, Name: catalogs.AuthorityName(source)}
	if err := c.cached.Get(ctx, key, found); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, fmt.Errorf("reading ConfigMap %s: %w", key, err)
	}
	return metav1.IsControlledBy(found, source), nil
}

// read reads the objects with the certificate and with the authorities; nil for those that do not exist.
func (c *certificates) read(ctx context.Context, source *operatorsv1alpha1.CatalogSource) (*corev1.Secret, *corev1.ConfigMap, error) {
	secret, configMap := &corev1.Secret{}, &corev1.ConfigMap{}
	if found, err := c.readOwned(ctx, source, "Secret", deployment.CertificateName(source), secret); err != nil {
		return nil, nil, err
	} else if !found {
		secret = nil
	}
	if found, err := c.readOwned(ctx, source, "ConfigMap", catalogs.AuthorityName(source), configMap); err != nil {
		return nil, nil, err
	} else if !found {
		configMap = nil
	}
	return secret, configMap, nil
}

// readOwned reads an object that a CatalogSource controls. An object of another owner is an error.
func (c *certificates) readOwned(ctx context.Context, source *operatorsv1alpha1.CatalogSource, kind, name string, into client.Object) (found bool, err error) {
	key := client.ObjectKey{Namespace: source.Namespace, Name: name}
	if err := c.live.Get(ctx, key, into); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, fmt.Errorf("reading %s %s: %w", kind, key, err)
	}
	if !metav1.IsControlledBy(into, source) {
		return false, fmt.Errorf("%s %s exists and has another owner; delete it or give the CatalogSource another name", kind, key)
	}
	return true, nil
}

// writeAuthorities publishes the authorities of a certificate.
func (c *certificates) writeAuthorities(ctx context.Context, source *operatorsv1alpha1.CatalogSource, old *corev1.ConfigMap, made *webhook.Certificate) error {
	next := &corev1.ConfigMap{
		ObjectMeta: deployment.Meta(source, catalogs.AuthorityName(source)),
		Data:       map[string]string{deployment.KeyCA: string(made.Bundle())},
	}
	var err error
	switch {
	case old == nil:
		err = apply.Create(ctx, c.client, next)
	case !maps.Equal(old.Data, next.Data):
		next.ResourceVersion = old.ResourceVersion
		err = apply.Replace(ctx, c.client, next)
	}
	if err != nil {
		return fmt.Errorf("writing ConfigMap %s: %w", client.ObjectKeyFromObject(next), err)
	}
	return nil
}

// writeCertificate writes a certificate for the replicas.
func (c *certificates) writeCertificate(ctx context.Context, source *operatorsv1alpha1.CatalogSource, old *corev1.Secret, made *webhook.Certificate) error {
	next := &corev1.Secret{
		ObjectMeta: deployment.Meta(source, deployment.CertificateName(source)), Type: corev1.SecretTypeTLS, Data: made.Data(),
	}
	var err error
	switch {
	case old == nil:
		err = apply.Create(ctx, c.client, next)
	case !maps.EqualFunc(old.Data, next.Data, bytes.Equal):
		next.ResourceVersion = old.ResourceVersion
		log.FromContext(ctx).Info("Changing certificate of catalog", "secret", client.ObjectKeyFromObject(next).String())
		err = apply.Replace(ctx, c.client, next)
	}
	if err != nil {
		return fmt.Errorf("writing Secret %s: %w", client.ObjectKeyFromObject(next), err)
	}
	return nil
}

// delete deletes the certificate of a catalog that does not serve TLS any more. The ConfigMap is deleted as one that is not
// used, and shows until then that there may be a certificate.
func (c *certificates) delete(ctx context.Context, source *operatorsv1alpha1.CatalogSource) error {
	published, err := c.isPublished(ctx, source)
	if err != nil || !published {
		return err
	}
	c.checked.forget(client.ObjectKeyFromObject(source))
	secret := &corev1.Secret{}
	found, err := c.readOwned(ctx, source, "Secret", deployment.CertificateName(source), secret)
	if err != nil || !found {
		return err
	}
	err = apply.DeleteIf(ctx, c.client, secret, apply.SameUID(secret))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	return nil
}
