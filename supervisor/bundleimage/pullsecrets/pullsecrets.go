// Package pullsecrets finds the credentials for the images of a catalog. They are in the Secrets that its
// CatalogSource names, and in those that were added to the ServiceAccount of its pods.
package pullsecrets

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/bundles/image"
)

// Secret is a pull secret as it was read.
type Secret struct {
	// Keychain holds its credentials; nil if there is a Problem.
	Keychain authn.Keychain
	// Problem is what is wrong with the Secret; empty if nothing is.
	Problem string

	// version identifies this content of this Secret.
	version string
}

// Read reads a pull secret. An unusable Secret has a Problem and causes no error.
func Read(ctx context.Context, reader client.Reader, key types.NamespacedName) (*Secret, error) {
	object := &corev1.Secret{}
	if err := reader.Get(ctx, key, object); err != nil {
		if apierrors.IsNotFound(err) {
			return &Secret{Problem: "does not exist"}, nil
		}
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	var data []byte
	switch object.Type {
	case corev1.SecretTypeDockerConfigJson:
		data = object.Data[corev1.DockerConfigJsonKey]
	case corev1.SecretTypeDockercfg:
		data = object.Data[corev1.DockerConfigKey]
	default:
		return &Secret{Problem: fmt.Sprintf("is of type %s, not %s", object.Type, corev1.SecretTypeDockerConfigJson)}, nil
	}
	keychain, err := image.ParsePullSecret(data)
	if err != nil {
		return &Secret{Problem: "is unusable: " + err.Error()}, nil //nolint:nilerr // it is what is wrong with this Secret alone
	}
	return &Secret{Keychain: keychain, version: key.String() + "@" + string(object.UID) + ":" + object.ResourceVersion}, nil
}

// Set holds the credentials of a catalog.
type Set struct {
	// Problem describes the first unusable Secret. The others may suffice.
	Problem string

	secrets []*Secret
}

// Find reads the Secrets of the given names and those of a ServiceAccount, all in one namespace. It omits
// unusable Secrets.
func Find(ctx context.Context, reader client.Reader, namespace, account string, names []string) (*Set, error) {
	object := &corev1.ServiceAccount{}
	key := types.NamespacedName{Namespace: namespace, Name: account}
	if err := reader.Get(ctx, key, object); err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading ServiceAccount %s: %w", key, err)
	}
	all := append([]string(nil), names...)
	for _, ref := range object.ImagePullSecrets {
		all = append(all, ref.Name)
	}
	found := &Set{}
	seen := map[string]bool{"": true}
	for _, name := range all {
		if seen[name] {
			continue
		}
		seen[name] = true
		one, err := Read(ctx, reader, types.NamespacedName{Namespace: namespace, Name: name})
		if err != nil {
			return nil, err
		}
		if one.Problem != "" {
			found.Problem = cmp.Or(found.Problem, namespace+"/"+name+" "+one.Problem)
			continue
		}
		found.secrets = append(found.secrets, one)
	}
	return found, nil
}

// Keychain returns the credentials of all Secrets.
func (s *Set) Keychain() authn.Keychain {
	all := make([]authn.Keychain, 0, len(s.secrets))
	for _, one := range s.secrets {
		all = append(all, one.Keychain)
	}
	return image.Keychains(all...)
}

// Anonymous is the identity of requests without credentials.
const Anonymous = "anonymous"

// Identity returns a name for the credentials of a repository: the content of all Secrets that apply to it.
// Equal identities have equal access. The identity does not reveal the credentials.
func (s *Set) Identity(target authn.Resource) string {
	var versions []string
	for _, one := range s.secrets {
		if found, err := one.Keychain.Resolve(target); err != nil || found != authn.Anonymous {
			versions = append(versions, one.version)
		}
	}
	if len(versions) == 0 {
		return Anonymous
	}
	return strings.Join(versions, " ")
}
