package bundleimage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/internal/keylimit"
	"github.com/chandlery/chandlery/supervisor/imagepolicy"
	"github.com/chandlery/chandlery/supervisor/imagesources"
)

// maxQuery is the maximum time for a registry to resolve a reference.
const maxQuery = 20 * time.Second

// authorizer asks registries whether requests may have images, and stores their answers for times when a
// registry cannot be reached.
type authorizer struct {
	o        *Options
	contents *contentStore
	limiter  *keylimit.Limiter
}

// authorization is an image that a request may have.
type authorization struct {
	*Request

	// resolved is the reference by digest.
	resolved, digest string
	access           *imagesources.Access
	// identity is the identity that the registry authorized.
	identity string
	// cached is true if the registry cannot be reached and the content is cached.
	cached bool
}

// key returns the key of the content.
func (a *authorization) key() contentKey { return contentKey{a.catalog().Realm(), a.resolved} }

// authorize asks the registry for the digest of an image, with the credentials of the request, and checks that the image
// meets the rules for signatures.
func (a *authorizer) authorize(ctx context.Context, r *Request, rules imagepolicy.Rules) (*authorization, error) {
	if err := rules.Forbidden(r.Image); err != nil {
		return nil, err //nolint:wrapcheck // it names the image
	}
	ref, err := image.ParseReference(r.Image)
	if err != nil {
		return nil, &image.Error{Reference: r.Image, Reason: image.ReasonReference, Err: err}
	}
	access, err := a.o.Sources.Access(ctx, a.o.Reader, r.catalog(), r.Image)
	if image.ReasonOf(err) != "" {
		return nil, err //nolint:wrapcheck // names the image
	}
	if err != nil {
		return nil, fmt.Errorf("finding the credentials for image %q: %w", r.Image, err)
	}
	client, err := a.o.client(r, access, nil)
	if err != nil {
		return nil, err
	}
	found := &authorization{Request: r, access: access}
	if found.identity, err = access.Identity(ref); err != nil {
		return nil, withReference(r.Image, err)
	}
	if realm := r.catalog().Realm(); realm != "" {
		found.identity += " in " + realm
	}
	found.digest, err = a.find(ctx, client, ref, r.Image)
	if err != nil {
		found.digest, found.cached = a.storedDigest(ref, r, found.identity, err)
		if !found.cached {
			return nil, withSecretProblem(err, access.SecretProblem)
		}
	}
	found.resolved = ref.Context().Digest(found.digest).Name()
	return found, a.verify(ctx, client, found, rules)
}

// verify checks that an image meets the rules for signatures. It stores the answer: what a rule accepts for a digest does
// not change.
func (a *authorizer) verify(ctx context.Context, client *image.Client, found *authorization, rules imagepolicy.Rules) error {
	if !rules.Any() {
		return nil
	}
	verdict := "signed for " + rules.ID() + " " + found.digest
	if _, known := a.contents.store.Recall(verdict); !known {
		release, err := a.limiter.Acquire(ctx, host(found.resolved))
		if err != nil {
			return fmt.Errorf("waiting to ask for signatures of image %q: %w", found.Image, err)
		}
		defer release()
		if err := rules.Check(ctx, client, found.Image, found.digest); err != nil {
			return err //nolint:wrapcheck // it names the image
		}
	}
	// An answer that is used stays stored.
	if err := a.contents.store.Remember(verdict, found.digest); err != nil {
		log.FromContext(ctx).Error(err, "Storing that an image is signed failed", "image", found.Image)
	}
	return nil
}

// find asks the registry for the digest of an image.
func (a *authorizer) find(ctx context.Context, client *image.Client, ref name.Reference, reference string) (string, error) {
	release, err := a.limiter.Acquire(ctx, ref.Context().RegistryStr())
	if err != nil {
		return "", fmt.Errorf("waiting to ask for image %q: %w", reference, err)
	}
	defer release()
	return client.Find(ctx, reference) //nolint:wrapcheck // it names the image
}

// storedDigest returns the stored answer of a registry that cannot be reached, if the content is cached. It drops the
// answer if the registry has revoked it.
func (a *authorizer) storedDigest(ref name.Reference, r *Request, identity string, err error) (digest string, ok bool) {
	reference := r.Image
	store := a.contents.store
	if digest, ok = store.Recall(grantKey(reference, identity)); !ok {
		return "", false
	}
	resolved := ref.Context().Digest(digest).Name()
	if image.IsAway(err) {
		objects, err := a.contents.get(contentKey{r.catalog().Realm(), resolved}, digest)
		return digest, err == nil && objects != nil
	}
	switch image.ReasonOf(err) {
	case image.ReasonUnauthorized, image.ReasonNotFound:
		store.Forget(grantKey(reference, identity))
		store.Forget(grantKey(resolved, identity))
	default:
	}
	return "", false
}

// record stores an authorization, for times when the registry cannot be reached.
func (a *authorizer) record(ctx context.Context, found *authorization) {
	for _, one := range []string{found.Image, found.resolved} {
		if err := a.contents.store.Remember(grantKey(one, found.identity), found.digest); err != nil {
			log.FromContext(ctx).Error(err, "Storing the authorization for an image failed", "image", one)
		}
	}
}

// grantKey returns the key under which an authorization is stored.
func grantKey(reference, identity string) string { return reference + " " + identity }

// withSecretProblem adds the unusable credentials to an error about authorization.
func withSecretProblem(err error, problem string) error {
	known, ok := errors.AsType[*image.Error](err)
	if !ok || problem == "" || known.Reason != image.ReasonUnauthorized && known.Reason != image.ReasonNotFound {
		return err
	}
	return &image.Error{Reference: known.Reference, Reason: known.Reason, Err: fmt.Errorf("%w; Secret %s", known.Err, problem)}
}
