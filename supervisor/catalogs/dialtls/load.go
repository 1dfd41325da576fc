package dialtls

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
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
	return load(ctx, reader, namespace, settings)
}

// LoadHosted reads the authorities of the replicas of a hosted catalog from a ConfigMap. Their certificates have a name.
func LoadHosted(ctx context.Context, reader client.Reader, authorities types.NamespacedName, name string) (Security, error) {
	return load(ctx, reader, authorities.Namespace, Settings{
		Enabled: true, CA: Source{Kind: kindConfigMap, Name: authorities.Name, Key: keyCA}, ServerName: name,
	})
}

// load reads what settings name.
func load(ctx context.Context, reader client.Reader, namespace string, settings Settings) (Security, error) {
	var in Input
	var problem *Error
	if settings.CA != (Source{}) {
		var err error
		if in.CA, problem, err = readKey(ctx, reader, namespace, settings.CA); err != nil || problem != nil {
			return Security{Settings: settings, Problem: problem}, err
		}
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
func readKey(ctx context.Context, reader client.Reader, namespace string, source Source) (text []byte, problem *Error, err error) {
	missing := failf(CANotFound, nil, "%s of namespace %s does not exist", source, namespace)
	key := client.ObjectKey{Namespace: namespace, Name: source.Name}
	secret, configMap := &corev1.Secret{}, &corev1.ConfigMap{}
	if source.Kind == kindSecret {
		problem, err = read(ctx, reader, key, secret, missing)
	} else {
		problem, err = read(ctx, reader, key, configMap, missing)
	}
	if err != nil || problem != nil {
		return nil, problem, err
	}
	for _, data := range []map[string][]byte{secret.Data, configMap.BinaryData} {
		if text, found := data[source.Key]; found {
			return text, nil, nil
		}
	}
	if text, found := configMap.Data[source.Key]; found {
		return []byte(text), nil, nil
	}
	return nil, missing, nil
}

// read reads a ConfigMap or Secret. It returns missing if the object does not exist. The package server of a cluster, and a
// supervisor with fewer permissions, may not read all Secrets.
func read(ctx context.Context, reader client.Reader, key client.ObjectKey, into client.Object, missing *Error) (*Error, error) {
	kind := kindConfigMap
	if _, is := into.(*corev1.Secret); is {
		kind = kindSecret
	}
	err := reader.Get(ctx, key, into)
	switch {
	case err == nil:
		return nil, nil //nolint:nilnil // there is no problem
	case apierrors.IsNotFound(err):
		return missing, nil
	case apierrors.IsForbidden(err):
		return failf(MayNotRead, err, "there is no permission to get %s %s", kind, key), nil
	default:
		return nil, fmt.Errorf("reading %s %s: %w", kind, key, err)
	}
}

// readPair returns a client certificate and its key.
func readPair(ctx context.Context, reader client.Reader, namespace, name string) (certificate, private []byte, problem *Error, err error) {
	secret, key := &corev1.Secret{}, client.ObjectKey{Namespace: namespace, Name: name}
	missing := failf(ClientCertificateNotFound, nil, "Secret %s does not exist", key)
	if problem, err := read(ctx, reader, key, secret, missing); err != nil || problem != nil {
		return nil, nil, problem, err
	}
	for _, name := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		if len(secret.Data[name]) == 0 {
			return nil, nil, failf(ClientCertificateNotFound, nil, "Secret %s has no key %s", key, name), nil
		}
	}
	return secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey], nil, nil
}
