// Package pullsecrets finds the credentials for the images of a catalog. They are in the Secrets that its
// CatalogSource names, and in those that were added to the ServiceAccount of its pods.
package pullsecrets

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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
	keychain, err := image.ParseNamedPullSecret(key.String(), data)
	if err != nil {
		return &Secret{Problem: "is unusable: " + err.Error()}, nil //nolint:nilerr // it is what is wrong with this Secret alone
	}
	return &Secret{Keychain: keychain, version: key.String() + "@" + string(object.UID) + ":" + object.ResourceVersion}, nil
}

// Set holds the credentials of a catalog.
type Set struct {
	// Problem describes the first unusable Secret. The others may suffice.
	Problem string

	secrets, shared []*Secret
}

// Query names the Secrets of a catalog.
type Query struct {
	// Namespace holds the Secrets of Names, and the ServiceAccount Account, whose pull secrets apply too.
	Namespace, Account string
	Names              []string
	// Shared are Secrets for the images of all catalogs.
	Shared []types.NamespacedName
}

// Find reads the Secrets of a catalog. It omits unusable ones.
func Find(ctx context.Context, reader client.Reader, q Query) (*Set, error) {
	object := &corev1.ServiceAccount{}
	key := types.NamespacedName{Namespace: q.Namespace, Name: q.Account}
	if err := reader.Get(ctx, key, object); err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading ServiceAccount %s: %w", key, err)
	}
	var own []types.NamespacedName
	for _, name := range q.Names {
		own = append(own, types.NamespacedName{Namespace: q.Namespace, Name: name})
	}
	for _, ref := range object.ImagePullSecrets {
		own = append(own, types.NamespacedName{Namespace: q.Namespace, Name: ref.Name})
	}
	found := &Set{}
	var err error
	if found.secrets, err = found.read(ctx, reader, own); err != nil {
		return nil, err
	}
	if found.shared, err = found.read(ctx, reader, q.Shared); err != nil {
		return nil, err
	}
	return found, nil
}

// maxSecrets is the largest number of pull secrets of a catalog. A tenant decides how many a ServiceAccount names, and all are
// in memory during a pull.
const maxSecrets = 32

// read reads Secrets, each once. It notes the first unusable one and omits all such.
func (s *Set) read(ctx context.Context, reader client.Reader, keys []types.NamespacedName) ([]*Secret, error) {
	var found []*Secret
	seen := map[types.NamespacedName]bool{}
	for _, key := range keys {
		if seen[key] || key.Name == "" {
			continue
		}
		seen[key] = true
		if len(seen) > maxSecrets {
			s.Problem = cmp.Or(s.Problem, fmt.Sprintf("%s is not used: a catalog can have at most %d", key, maxSecrets))
			break
		}
		one, err := Read(ctx, reader, key)
		if err != nil {
			return nil, err
		}
		if one.Problem != "" {
			s.Problem = cmp.Or(s.Problem, key.String()+" "+one.Problem)
			continue
		}
		found = append(found, one)
	}
	return found, nil
}

// Keychain returns the credentials of all Secrets, with the shared ones last.
func (s *Set) Keychain() authn.Keychain {
	return image.Fallback(keychain(s.secrets), keychain(s.shared))
}

func keychain(secrets []*Secret) authn.Keychain {
	all := make([]authn.Keychain, 0, len(secrets))
	for _, one := range secrets {
		all = append(all, one.Keychain)
	}
	return image.Keychains(all...)
}

// Anonymous is the identity of requests without credentials.
const Anonymous = "anonymous"

// Identity returns a name for the credentials of repositories: the content of all Secrets that apply to any of
// them. Equal identities have equal access. The identity does not reveal the credentials.
func (s *Set) Identity(targets ...authn.Resource) string {
	var versions []string
	for _, one := range slices.Concat(s.secrets, s.shared) {
		applies := slices.ContainsFunc(targets, func(target authn.Resource) bool {
			found, err := one.Keychain.Resolve(target)
			return err != nil || found != authn.Anonymous
		})
		if applies {
			versions = append(versions, one.version)
		}
	}
	if len(versions) == 0 {
		return Anonymous
	}
	return strings.Join(versions, " ")
}
