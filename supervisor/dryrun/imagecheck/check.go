package imagecheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/name"
	"golang.org/x/sync/errgroup"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/manifests"
	"github.com/chandlery/chandlery/supervisor/dryrun"
	"github.com/chandlery/chandlery/supervisor/resolution"
)

// parallel is the number of images that are checked at once.
const parallel = 8

// Pull returns the options to pull an image of a catalog. An [*image.Error] is the answer for this image.
type Pull func(ctx context.Context, catalog resolution.CatalogKey, reference string) (image.Options, error)

// Verify returns an error if the image of a bundle in a catalog does not meet the rules for signatures. An [*image.Error] is
// the answer for this image. If its reason is [image.ReasonPolicyNotSupported], only nodes can pull the image.
type Verify func(ctx context.Context, client *image.Client, catalog resolution.CatalogKey, reference string) error

// Check asks the sources of all images, and returns the images with the answers. It verifies and reads the bundle images, and
// also asks for the images that these name. For the others, it requests the manifest, and asks whether the configuration
// and the layers exist.
func Check(ctx context.Context, pull Pull, verify Verify, images []dryrun.Image) ([]dryrun.Image, error) {
	return (&checker{pull: pull, verify: verify, remedy: remedy}).check(ctx, images)
}

// CheckByFlags does the same with options that flags of a program set instead of a cluster. Remedies name these flags.
func CheckByFlags(ctx context.Context, options image.Options, verify Verify, images []dryrun.Image) ([]dryrun.Image, error) {
	pull := func(context.Context, resolution.CatalogKey, string) (image.Options, error) { return options, nil }
	return (&checker{pull: pull, verify: verify, remedy: remedyByFlags}).check(ctx, images)
}

func keyOf(i *dryrun.Image) imageKey { return imageKey{i.Reference, i.Catalog} }

// answer is the answer for an image.
type answer struct {
	check dryrun.ImageCheck
	// notChecked is why there is no check; empty if there is one.
	notChecked string
	// named are the images that the image of a bundle names.
	named dryrun.BundleImages
}

// checker asks for images, for each once.
type checker struct {
	pull   Pull
	verify Verify
	// remedy returns what to do about an image that cannot be had for a reason.
	remedy func(image.Reason) string
	// dir holds the content of bundle images.
	dir string

	mu      sync.Mutex
	answers map[imageKey]answer
}

// check asks the sources of all images.
func (c *checker) check(ctx context.Context, images []dryrun.Image) ([]dryrun.Image, error) {
	dir, err := os.MkdirTemp("", "chandlery-images-")
	if err != nil {
		return nil, fmt.Errorf("making a directory for bundle images: %w; set TMPDIR to a directory with room", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is a temporary directory
	c.dir, c.answers = dir, map[imageKey]answer{}
	if err := c.askAll(ctx, images); err != nil {
		return nil, err
	}
	all := newList(slices.Clone(images)...)
	for i := range images {
		named := c.answers[keyOf(&images[i])].named
		for _, bundle := range images[i].Bundles {
			all.addNamed(images[i].Catalog, bundle, named)
		}
	}
	out := all.sorted()
	if err := c.askAll(ctx, out); err != nil {
		return nil, err
	}
	for i := range out {
		found := c.answers[keyOf(&out[i])]
		if out[i].NotChecked = found.notChecked; found.notChecked == "" {
			out[i].Check = &found.check
		}
	}
	return out, nil
}

// askAll asks for the images without an answer.
func (c *checker) askAll(ctx context.Context, images []dryrun.Image) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i := range images {
		if c.isAnswered(keyOf(&images[i])) {
			continue
		}
		group.Go(func() error {
			found, err := c.ask(ctx, &images[i], filepath.Join(c.dir, fmt.Sprintf("%d-%d", len(images), i)))
			if err == nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				return fmt.Errorf("checking image %s: %w", images[i].Reference, err)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.answers[keyOf(&images[i])] = found
			return nil
		})
	}
	return group.Wait() //nolint:wrapcheck // wrapped where it arises
}

func (c *checker) isAnswered(key imageKey) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, known := c.answers[key]
	return known
}

// ask asks for an image. Only failures that are no answer of its sources are errors.
func (c *checker) ask(ctx context.Context, wanted *dryrun.Image, dir string) (answer, error) {
	options, err := c.pull(ctx, catalogKey(wanted.Catalog), wanted.Reference)
	if _, isAnswer := errors.AsType[*image.Error](err); isAnswer {
		return answer{check: c.failed(wanted.Reference, err)}, nil
	}
	if err != nil {
		return answer{}, err
	}
	found := answer{check: dryrun.ImageCheck{Available: true, Source: wanted.Reference}}
	options.Sources.Asked = func(a image.Attempt) {
		if a.Err == nil {
			found.check.Source = withTag(a.Place, wanted.Reference)
		}
	}
	client, err := image.New(options)
	if err != nil {
		return answer{}, fmt.Errorf("preparing to ask for images: %w", err)
	}
	if !slices.Contains(wanted.Kinds, dryrun.BundleImage) {
		if _, err := image.CheckContent(ctx, client, wanted.Reference); err != nil {
			return answer{check: c.failed(wanted.Reference, err)}, nil
		}
		return found, nil
	}
	if err := c.verify(ctx, client, catalogKey(wanted.Catalog), wanted.Reference); err != nil {
		return c.refused(wanted.Reference, err)
	}
	if found.named, err = read(ctx, client, wanted.Reference, dir); err != nil {
		return answer{check: c.failed(wanted.Reference, err)}, nil
	}
	return found, nil
}

// refused returns the answer for the image of a bundle that does not meet the rules for signatures. Only failures that are no
// answer of its sources are errors.
func (c *checker) refused(reference string, err error) (answer, error) {
	known, isAnswer := errors.AsType[*image.Error](err)
	switch {
	case !isAnswer:
		return answer{}, err
	case known.Reason == image.ReasonPolicyNotSupported:
		return answer{notChecked: known.Err.Error()}, nil
	default:
		return answer{check: c.failed(reference, err)}, nil
	}
}

// withTag returns the place of an image. Content is asked for by digest; users know the tag.
func withTag(place, reference string) string {
	repository, _, pinned := strings.Cut(place, "@")
	if tag, err := name.NewTag(reference); pinned && err == nil {
		return repository + ":" + tag.TagStr()
	}
	return place
}

// read returns the images that the image of a bundle names.
func read(ctx context.Context, client *image.Client, reference, dir string) (dryrun.BundleImages, error) {
	content, scratch := filepath.Join(dir, "content"), filepath.Join(dir, "scratch")
	for _, name := range []string{content, scratch} {
		if err := os.MkdirAll(name, 0o700); err != nil {
			return dryrun.BundleImages{}, &image.Error{Reference: reference, Reason: image.ReasonLocal, Err: err}
		}
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is a temporary directory
	if _, err := client.Extract(ctx, reference, image.Bundle(), content, scratch); err != nil {
		return dryrun.BundleImages{}, err //nolint:wrapcheck // names the image
	}
	root, err := os.OpenRoot(content)
	if err != nil {
		return dryrun.BundleImages{}, &image.Error{Reference: reference, Reason: image.ReasonLocal, Err: err}
	}
	defer root.Close() //nolint:errcheck // nothing was written
	objects, err := manifests.Read(root.FS(), manifests.Limits{})
	if err != nil {
		return dryrun.BundleImages{}, &image.Error{Reference: reference, Reason: image.ReasonInvalid, Err: err}
	}
	ofDeployments, related, err := manifests.Images([]byte(objects[0]))
	if err != nil {
		return dryrun.BundleImages{}, &image.Error{Reference: reference, Reason: image.ReasonInvalid, Err: err}
	}
	return dryrun.BundleImages{OfDeployments: ofDeployments, Related: related}, nil
}

// failed returns the answer for an image that no source has.
func (c *checker) failed(reference string, err error) dryrun.ImageCheck {
	reason := image.ReasonOf(err)
	check := dryrun.ImageCheck{Reason: string(reason), Remedy: cmp.Or(image.Remedy(err), c.remedy(reason))}
	sources, ok := errors.AsType[*image.SourcesError](err)
	if !ok || reason == image.ReasonPolicyRefused {
		// The message about signatures also names the rule.
		cause := err
		if known, ok := errors.AsType[*image.Error](err); ok {
			cause = known.Err
		}
		switch reason {
		case image.ReasonReference, image.ReasonConfiguration, image.ReasonPolicyRefused, image.ReasonLocal, "":
			check.Message = cause.Error()
		default:
			check.Tried = []dryrun.TriedPlace{{Place: reference, Reason: string(reason), Message: cause.Error()}}
		}
		return check
	}
	for i := range sources.Attempts {
		a := &sources.Attempts[i]
		check.Tried = append(check.Tried, dryrun.TriedPlace{Place: a.Place, Rule: a.Rule, Reason: string(a.Reason), Message: a.Err.Error()})
	}
	for _, s := range sources.Skipped {
		check.NotAsked = append(check.NotAsked, dryrun.ExcludedPlace{Place: s.Place, Rule: s.Rule, Why: s.Why})
	}
	return check
}

// remedy returns what to do about an image that cannot be had for a reason.
func remedy(reason image.Reason) string {
	switch reason {
	case image.ReasonReference:
		return "report the reference to the publisher of the catalog"
	case image.ReasonUnauthorized, image.ReasonCredentials:
		return "add credentials for it to spec.secrets of the CatalogSource or to --image-pull-secrets of the supervisor"
	case image.ReasonNotFound:
		return "copy the image to the mirror"
	case image.ReasonBlocked:
		return "add a mirror for it to registries.conf, or remove the rule that blocks it"
	case image.ReasonUntrusted:
		return "add the certificate authority of the registry to the image settings"
	case image.ReasonPlainHTTP:
		return "serve the registry by HTTPS, or allow plain HTTP for it in the image settings"
	case image.ReasonUnreachable:
		return "check the registry and the network between this program and it"
	case image.ReasonConfiguration:
		return "correct the image settings"
	case image.ReasonPolicyRefused:
		return "sign the image, or correct the rule"
	case image.ReasonLocal:
		return "set TMPDIR to a directory with room"
	default:
		return "copy or build the image again"
	}
}

// remedyByFlags returns the same for a program whose flags configure the access to registries.
func remedyByFlags(reason image.Reason) string {
	switch reason {
	case image.ReasonUnauthorized:
		return "give credentials for it with --pull-secret"
	case image.ReasonCredentials:
		return "correct what --pull-secret or the docker configuration names"
	case image.ReasonUntrusted:
		return "trust the certificate authority of the registry with --registry-ca"
	case image.ReasonPlainHTTP:
		return "serve the registry by HTTPS, or allow plain HTTP with --use-http"
	default:
		return remedy(reason)
	}
}
