package dialtls

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Security is how to connect to the address of a catalog. The zero value is plain text.
type Security struct {
	// Settings are the settings of the CatalogSource.
	Settings Settings
	// Material is nil without TLS, and if there is a Problem.
	Material *Material
	// Problem is why there is no Material; nil if nothing is wrong.
	Problem *Error
}

// Load reads what the annotations of a CatalogSource name. It returns an error only if the API server fails. reader
// should not cache: Secrets of all users would be cached.
func Load(ctx context.Context, reader client.Reader, namespace string, annotations map[string]string) (Security, error) {
	settings, problem := Parse(annotations)
	if problem != nil || !settings.Enabled {
		return Security{Settings: settings, Problem: problem}, nil //nolint:nilerr // it is a state of the catalog
	}
	var in Input
	if settings.CA != (Source{}) {
		text, found, err := readKey(ctx, reader, namespace, settings.CA)
		if err != nil {
			return Security{}, err
		}
		if !found {
			return Security{Settings: settings, Problem: failf(CANotFound, nil, "%s of namespace %s does not exist", settings.CA, namespace)}, nil
		}
		in.CA = text
	}
	if settings.ClientSecret != "" {
		var err error
		if in.Certificate, in.Key, problem, err = readPair(ctx, reader, namespace, settings.ClientSecret); err != nil || problem != nil {
			return Security{Settings: settings, Problem: problem}, err
		}
	}
	material, problem := NewMaterial(settings, in)
	return Security{Settings: settings, Material: material, Problem: problem}, nil
}

// readKey returns the value of a key of a ConfigMap or Secret.
func readKey(ctx context.Context, reader client.Reader, namespace string, source Source) (text []byte, found bool, err error) {
	key := client.ObjectKey{Namespace: namespace, Name: source.Name}
	secret, configMap := &corev1.Secret{}, &corev1.ConfigMap{}
	if source.Kind == "Secret" {
		err = reader.Get(ctx, key, secret)
	} else {
		err = reader.Get(ctx, key, configMap)
	}
	if err != nil {
		if apierrors.IsNotFound(err) {
			return nil, false, nil
		}
		return nil, false, fmt.Errorf("reading %s %s: %w", source.Kind, key, err)
	}
	if source.Kind == "Secret" {
		text, found = secret.Data[source.Key]
		return text, found, nil
	}
	if text, found = configMap.BinaryData[source.Key]; found {
		return text, true, nil
	}
	value, found := configMap.Data[source.Key]
	return []byte(value), found, nil
}

// readPair returns a client certificate and its key.
func readPair(ctx context.Context, reader client.Reader, namespace, name string) (certificate, private []byte, problem *Error, err error) {
	secret, key := &corev1.Secret{}, client.ObjectKey{Namespace: namespace, Name: name}
	if err := reader.Get(ctx, key, secret); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil, failf(ClientCertificateNotFound, nil, "Secret %s does not exist", key), nil
		}
		return nil, nil, nil, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	for _, name := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		if len(secret.Data[name]) == 0 {
			return nil, nil, failf(ClientCertificateNotFound, nil, "Secret %s has no key %s", key, name), nil
		}
	}
	return secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey], nil, nil
}
