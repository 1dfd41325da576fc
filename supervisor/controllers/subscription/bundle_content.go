package subscription

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/bundleimage"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/resolution"
)

// catalogStore returns the content of catalogs.
type catalogStore interface {
	State(key types.NamespacedName) (catalogs.State, bool)
	Bundle(ctx context.Context, catalog types.NamespacedName, pkg, channel, name string) (plansteps.Bundle, error)
}

// imageReader pulls bundle images, and returns their content.
type imageReader interface {
	State(ctx context.Context, request bundleimage.Request) bundleimage.State
	Content(ctx context.Context, request bundleimage.Request) (bundleimage.Content, error)
}

// contentReader reads the content of bundles from catalogs and images.
type contentReader struct {
	catalogs catalogStore
	images   imageReader
	// kinds are the kinds that plans may contain in addition to OLM's.
	kinds plansteps.Kinds
}

// digest is the digest of manifests, or the error of reading them.
type digest struct {
	text string
	err  error
}

// errContentUnknown reports that a catalog has no manifests for a bundle that was chosen from it.
// Only an inconsistent catalog causes this.
var errContentUnknown = errors.New("the catalog has no manifests for it")

// errCatalogTimeout reports that a catalog does not return its bundles in time.
var errCatalogTimeout = errors.New("the catalog does not answer in time")

// digestTimeout bounds how long a catalog may take in one pass to return the requested manifests.
// Other catalogs, and the status of every Subscription, wait for it. It exceeds the time of one
// replica, so that a hanging replica is detected.
const digestTimeout = 15 * time.Second

// identify returns the decisions with the identities of their versions. It reads the manifests whose
// digest is unknown: a catalog that is read in pages does not send them. An error concerns only the
// Subscriptions with that bundle.
func (r *contentReader) identify(ctx context.Context, set catalogSet, decisions []*decision) []*decision {
	return identified(decisions, set, r.digests(ctx, set, decisions))
}

// identified returns the decisions with the identities of their versions, which determine the plan.
// digests are the digests that the catalogs lack.
func identified(decisions []*decision, set catalogSet, digests map[bundleKey]digest) []*decision {
	list := make([]*decision, 0, len(decisions))
	for _, d := range decisions {
		next := *d
		next.identities = nil
		for _, c := range d.choices() {
			content, err := contentOf(c, set, digests)
			if err != nil {
				next = *d.failed(&planError{err: err})
				break
			}
			next.identities = append(next.identities, plansteps.Identity{
				Catalog: c.Catalog.String(), Package: c.Package, Channel: c.Channel,
				Bundle: c.Bundle, Replaces: c.Replaces, Content: content, Generated: c != d.install,
			})
		}
		list = append(list, &next)
	}
	return list
}

// imagePrefix distinguishes, in an identity, the name of an image from the digest of manifests.
const imagePrefix = "image "

func isImage(content string) bool { return strings.HasPrefix(content, imagePrefix) }

// contentOf returns what identifies the content of a version: the digest of its manifests, or its
// image.
func contentOf(c *resolution.Choice, set catalogSet, digests map[bundleKey]digest) (string, error) {
	m := bundleKeyOf(c)
	if known := set.digest(m); known != "" {
		return known, nil
	}
	switch read := digests[m]; {
	case read.err != nil:
		return "", read.err
	case read.text != "":
		return read.text, nil
	case c.Entry.Bundle.Image != "":
		return imagePrefix + c.Entry.Bundle.Image, nil
	default:
		return "", fmt.Errorf("bundle %s of package %s cannot be installed: %w", c.Bundle, c.Package, errContentUnknown)
	}
}

// digests reads the manifests of the chosen bundles that the catalogs have no digest of.
func (r *contentReader) digests(ctx context.Context, set catalogSet, decisions []*decision) map[bundleKey]digest {
	found := map[bundleKey]digest{}
	unknown := map[types.NamespacedName][]bundleKey{}
	for _, d := range decisions {
		for _, c := range d.choices() {
			m := bundleKeyOf(c)
			if _, seen := found[m]; !seen && set.digest(m) == "" && c.Entry.Bundle.Image == "" {
				found[m] = digest{}
				unknown[m.catalog] = append(unknown[m.catalog], m)
			}
		}
	}
	var (
		group errgroup.Group
		mu    sync.Mutex
	)
	for _, wanted := range unknown {
		group.Go(func() error {
			read := r.digestsFrom(ctx, wanted)
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(found, read)
			return nil
		})
	}
	_ = group.Wait() // each failure is in its digest
	return found
}

// digestsFrom reads manifests from one catalog, within digestTimeout.
func (r *contentReader) digestsFrom(ctx context.Context, wanted []bundleKey) map[bundleKey]digest {
	const atOnce = 8
	limited, cancel := context.WithTimeout(ctx, digestTimeout)
	defer cancel()
	var (
		group errgroup.Group
		mu    sync.Mutex
	)
	group.SetLimit(atOnce)
	found := make(map[bundleKey]digest, len(wanted))
	for _, m := range wanted {
		group.Go(func() error {
			next := r.digestOf(limited, m)
			mu.Lock()
			defer mu.Unlock()
			found[m] = next
			return nil
		})
	}
	_ = group.Wait() // each failure is in its digest
	return found
}

// digestOf reads manifests from a catalog, unless the time is over. It returns the same message for
// every timeout.
func (r *contentReader) digestOf(ctx context.Context, m bundleKey) digest {
	err := ctx.Err()
	if err == nil {
		var bundle plansteps.Bundle
		bundle, err = r.catalogs.Bundle(ctx, m.catalog, m.pkg, m.channel, m.name)
		if err == nil && len(bundle.Objects) > 0 {
			return digest{text: plansteps.Digest(bundle.Objects)}
		}
	}
	if err != nil && (ctx.Err() != nil || status.Code(err) == codes.DeadlineExceeded) {
		err = fmt.Errorf("reading bundle %s of package %s from catalogsource %s: %w; the supervisor retries every %s: check that its pods are ready and not overloaded",
			m.name, m.pkg, m.catalog, errCatalogTimeout, retryAfter)
	}
	return digest{err: err}
}

// bundles reads the bundles of a desired plan. pulls are those by nodes, by the name of the bundle. The error is
// imagesError where images have yet to be pulled.
func (r *contentReader) bundles(
	ctx context.Context, o *namespaceState, desired *desiredPlan,
) (list []plansteps.Bundle, pulls map[string]*bundleimage.NodePull, err error) {
	var missing imagesError
	pulls = map[string]*bundleimage.NodePull{}
	for i, c := range desired.choices {
		if !isImage(desired.versions[i].Content) {
			bundle, err := r.fromCatalog(ctx, c, desired.versions[i].Content)
			if err != nil {
				return nil, nil, err
			}
			list = append(list, bundle)
			continue
		}
		request := imageRequest(o, c)
		state := r.images.State(ctx, request)
		if !state.Ready {
			missing = append(missing, missingImage{image: request.Image, bundle: c.Bundle, state: state})
			continue
		}
		bundle, err := r.fromImage(ctx, c, request)
		if err != nil {
			return nil, nil, err
		}
		list = append(list, bundle)
		if state.Node != nil {
			pulls[c.Bundle] = state.Node
		}
	}
	if len(missing) > 0 {
		return nil, nil, missing
	}
	return list, pulls, nil
}

// fromCatalog reads a chosen bundle from its catalog. It fails if the manifests have another digest by
// now.
func (r *contentReader) fromCatalog(ctx context.Context, c *resolution.Choice, digest string) (plansteps.Bundle, error) {
	m := bundleKeyOf(c)
	bundle, err := r.catalogs.Bundle(ctx, m.catalog, m.pkg, m.channel, m.name)
	if err != nil {
		return plansteps.Bundle{}, err
	}
	if plansteps.Digest(bundle.Objects) != digest {
		return plansteps.Bundle{}, fmt.Errorf("bundle %s of package %s: %w; resolving again once its new content has been read", m.name, m.pkg, plansteps.ErrContentChanged)
	}
	bundle.Replaces = c.Replaces
	return bundle, nil
}

// fromImage reads a chosen bundle whose image was pulled. The other fields come from its catalog.
func (r *contentReader) fromImage(ctx context.Context, c *resolution.Choice, request bundleimage.Request) (plansteps.Bundle, error) {
	m := bundleKeyOf(c)
	bundle, err := r.catalogs.Bundle(ctx, m.catalog, m.pkg, m.channel, m.name)
	if err != nil {
		return plansteps.Bundle{}, err
	}
	content, err := r.images.Content(ctx, request)
	if err != nil {
		return plansteps.Bundle{}, fmt.Errorf("reading bundle %s of package %s: %w", m.name, m.pkg, err)
	}
	bundle.Objects, bundle.Image, bundle.Replaces = content.Objects, content.Image, c.Replaces
	return bundle, nil
}

// imageRequest returns the request for the image of a bundle, with the settings of its CatalogSource
// and of the OperatorGroup.
func imageRequest(o *namespaceState, c *resolution.Choice) bundleimage.Request {
	request := bundleimage.Request{
		Image: c.Entry.Bundle.Image, Catalog: catalogFor(c), Namespace: o.namespace,
		Timeout: o.groups.unpackTimeout, RetryInterval: o.groups.unpackRetry,
	}
	if source := o.catalogs[request.Catalog].Source; source != nil {
		request.Account, request.Secrets = catalogs.AccountName(source), source.Spec.Secrets
		request.Config, request.Policy = source.Annotations[api.AnnotationImageConfig], source.Annotations[api.AnnotationImageVerify]
		request.Pull = source.Annotations[api.AnnotationImagePull]
	}
	return request
}
