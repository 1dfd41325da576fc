package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/fbc"
	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/index"
)

// Image is a catalog in an OCI image. For a tag, it is the image that the tag currently points to,
// which is resolved once per Poll. If the registry is unreachable, the image does not change. Use
// it by pointer.
type Image struct {
	// Reference of the image.
	Reference string
	// Client pulls the image.
	Client *image.Client
	// Poll is the time between two resolutions of the tag; zero for never.
	Poll time.Duration
	// CacheDir stores content and index of the image for the next start; empty for none. Like any
	// cache it saves time. It also helps if the registry is unreachable at the start.
	CacheDir string
	// Suspicious checks a cached index; see [Cache].
	Suspicious bool
	// AllowEmpty accepts a catalog without any package.
	AllowEmpty bool
	// Filter selects the part of the content to keep.
	Filter Filter
	// Options bound the content of the catalog.
	Options fbc.Options
	// Progress is called while the index is built; see [index.Options].
	Progress func(done, all int)
	// Logger receives the logs; nil for none.
	Logger *slog.Logger
	// Settings reads the settings for image registries that Client uses; nil if there are none. Its error says why the
	// current ones are not in force.
	Settings func() error

	resolution resolution
}

// CheckSettings returns Settings.
func (i *Image) CheckSettings() func() error { return i.Settings }

// Load returns the index of the image that the reference last resolved to. The error holds [bundles.Problems].
func (i *Image) Load(ctx context.Context) (*index.Index, error) { return i.load(ctx, Dir.Load) }

// LoadFresh does what [Image.Load] does and ignores the cached index.
func (i *Image) LoadFresh(ctx context.Context) (*index.Index, error) {
	return i.load(ctx, Dir.LoadFresh)
}

func (i *Image) load(ctx context.Context, read func(Dir, context.Context) (*index.Index, error)) (*index.Index, error) {
	var x *index.Index
	err := i.with(ctx, func(dir Dir) error {
		var err error
		x, err = read(dir, ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return x, nil
}

// Verify reports whether an index matches the image, as [Dir.Verify] does. It returns true for an
// index that is not in a cache, because a check would pull the image again.
func (i *Image) Verify(ctx context.Context, x *index.Index) (bool, error) {
	if len(x.Sources()) == 0 {
		return true, nil
	}
	var same bool
	err := i.with(ctx, func(dir Dir) error {
		var err error
		same, err = dir.Verify(ctx, x)
		return err
	})
	return same, err
}

// Create writes the index of the image to a file.
func (i *Image) Create(ctx context.Context, name string) (index.Info, error) {
	var info index.Info
	err := i.with(ctx, func(dir Dir) error {
		var err error
		info, err = dir.Create(ctx, name)
		return err
	})
	return info, err
}

// with pulls the image, uses its catalog and cleans up.
func (i *Image) with(ctx context.Context, use func(Dir) error) error {
	digest, err := i.current(ctx)
	if err != nil {
		return imageProblems(i.Reference, err)
	}
	kept, store, cleanUp, err := i.fetch(ctx, digest)
	if err != nil {
		return imageProblems(i.Reference, err)
	}
	defer cleanUp()
	dir := Dir{Path: kept.Path, AllowEmpty: i.AllowEmpty, Filter: i.Filter, Options: i.Options, Progress: i.Progress}
	if store.Dir == i.CacheDir {
		dir.Cache = Cache{Dir: filepath.Join(kept.Entry, "index"), Suspicious: i.Suspicious, Logger: i.Logger}
	}
	if err := use(dir); err != nil {
		return i.locate(kept, err)
	}
	if store.Dir != i.CacheDir {
		return nil
	}
	if err := store.Prune(kept); err != nil {
		i.logger().WarnContext(ctx, "Cannot remove old images", "error", err)
	}
	return nil
}

// current returns the digest to load. It resolves the reference if that has not happened yet. If
// the registry is unreachable, it returns the digest of the last start.
func (i *Image) current(ctx context.Context) (string, error) {
	if digest, _ := i.resolution.last(0); digest != "" {
		return digest, nil
	}
	digest, err := i.Client.Resolve(ctx, i.Reference)
	if err == nil {
		i.found(ctx, digest)
		return digest, nil
	}
	if i.CacheDir == "" || !image.IsAway(err) {
		return "", err
	}
	remembered, ok := image.Store{Dir: i.CacheDir}.Recall(i.Reference)
	if !ok {
		return "", err
	}
	i.logger().WarnContext(ctx, "Cannot ask the registry, taking the image of the last time",
		"image", i.Reference, "digest", remembered, "error", err)
	i.resolution.restore(remembered)
	return remembered, nil
}

// fetch pulls the image to the cache directory. It uses a temporary directory if there is no cache
// directory or it cannot be written.
func (i *Image) fetch(ctx context.Context, digest string) (*image.Kept, image.Store, func(), error) {
	if i.CacheDir != "" {
		store := image.Store{Dir: i.CacheDir}
		kept, err := store.Get(ctx, i.Client, i.Reference, digest, image.Catalog())
		if err == nil {
			i.storeDigest(ctx, store, digest)
			return kept, store, kept.Release, nil
		}
		if image.ReasonOf(err) != image.ReasonLocal || !isPermission(err) {
			return nil, store, nil, err
		}
		i.logger().WarnContext(ctx, "Cannot write to the cache directory, using a temporary one", "error", err)
	}
	dir, err := os.MkdirTemp("", "registry-*")
	if err != nil {
		return nil, image.Store{}, nil, &image.Error{Reference: i.Reference, Reason: image.ReasonLocal, Err: err}
	}
	store := image.Store{Dir: dir}
	kept, err := store.Get(ctx, i.Client, i.Reference, digest, image.Catalog())
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, store, nil, err
	}
	return kept, store, func() {
		kept.Release()
		// The index no longer needs the content.
		_ = os.RemoveAll(dir)
	}, nil
}

// isPermission reports whether an error means that a directory is not writable: because of its
// mode, a read-only file system or another file of its name.
func isPermission(err error) bool {
	pathError := (*fs.PathError)(nil)
	return errors.As(err, &pathError) && (pathError.Op == "mkdir" || errors.Is(err, fs.ErrPermission))
}

func (i *Image) storeDigest(ctx context.Context, store image.Store, digest string) {
	if image.IsDigest(i.Reference) {
		return
	}
	if err := store.Remember(i.Reference, digest); err != nil {
		i.logger().DebugContext(ctx, "Cannot note the digest", "error", err)
	}
}

// Fingerprint returns the digest that the reference resolves to. It resolves the reference if the
// last resolution is at least Poll ago. It logs a failure and returns the last digest.
func (i *Image) Fingerprint() (string, error) {
	if image.IsDigest(i.Reference) {
		return i.Reference, nil
	}
	digest, due := i.resolution.last(i.Poll)
	if !due {
		return digest, nil
	}
	//nolint:forbidigo // callers have no context; the time is limited here
	ctx, cancel := context.WithTimeout(context.Background(), pollTimeout)
	defer cancel()
	now, err := i.Client.Resolve(ctx, i.Reference)
	if err == nil {
		i.found(ctx, now)
		return now, nil
	}
	first := i.resolution.failed()
	if first && digest != "" {
		i.logger().WarnContext(ctx, "Cannot look at the image, keeping the content", "image", i.Reference, "error", err)
	}
	if first && digest == "" {
		i.logger().WarnContext(ctx, "Cannot look at the image for the first time", "image", i.Reference, "error", err)
	}
	if digest == "" {
		return "", fmt.Errorf("looking at the image: %w", err)
	}
	return digest, nil
}

// found records the digest that the reference resolved to.
func (i *Image) found(ctx context.Context, digest string) {
	before, recovered := i.resolution.succeeded(digest)
	switch {
	case before != digest:
		i.logger().InfoContext(ctx, "Found image", "image", i.Reference, "digest", digest, "before", before)
	case recovered:
		i.logger().InfoContext(ctx, "The registry answers again", "image", i.Reference)
	}
}

func (i *Image) logger() *slog.Logger {
	if i.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return i.Logger
}

// locate replaces the local directory by the image in a problem.
func (i *Image) locate(kept *image.Kept, err error) error {
	var problems bundles.Problems
	if !errors.As(err, &problems) {
		return err
	}
	for n := range problems {
		if problems[n].File == kept.Path {
			problems[n].File = i.Reference + kept.Dir
		}
	}
	return err
}

// imageProblems returns an error of an image as [bundles.Problems].
func imageProblems(reference string, err error) error {
	e, ok := errors.AsType[*image.Error](err)
	if !ok {
		return err
	}
	return bundles.Problems{{
		File: reference, Message: e.Err.Error(), Remedy: ImageRemedy(e), Unreadable: e.MayPass(),
	}}
}

// ImageRemedy returns the remedy for an error of an image. It names flags that our programs share.
func ImageRemedy(err error) string {
	return cmp.Or(image.Remedy(err), imageRemedies[image.ReasonOf(err)])
}

var imageRemedies = map[image.Reason]string{
	image.ReasonReference:     "name the image as oci:registry/repository:tag or oci:registry/repository@sha256:digest",
	image.ReasonUnauthorized:  "check that the image exists, and give credentials that may read it with --pull-secret",
	image.ReasonNotFound:      "check registry, repository and tag",
	image.ReasonPlatform:      "choose another with --platform",
	image.ReasonNoTree:        "name an image that holds a file-based catalog",
	image.ReasonTooLarge:      "if the image is to be trusted, allow more with --max-image-size",
	image.ReasonInvalid:       "build and push the image again",
	image.ReasonUntrusted:     "trust the authority that signed the registry's certificate with --registry-ca",
	image.ReasonPlainHTTP:     "if that is how the registry is to be reached, allow it with --use-http",
	image.ReasonCredentials:   "correct what --pull-secret or the docker configuration names",
	image.ReasonUnreachable:   "check the registry and the network",
	image.ReasonBlocked:       "name a mirror for it in the settings, or remove the rule that blocks it",
	image.ReasonConfiguration: "correct what --image-config, --image-registries-conf or --image-certs-dir names",
	image.ReasonLocal:         "give --cache-dir or TMPDIR a directory that can be written to and has room",
}
