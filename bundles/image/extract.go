package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/name"
	"golang.org/x/sync/errgroup"
)

// Tree says which directory of an image is wanted.
type Tree struct {
	// Label of the image that names the directory.
	Label string
	// Default is the directory of images without the label; empty to insist
	// on it.
	Default string
	// Legacy maps labels of images that hold something else in its place to
	// what that is.
	Legacy map[string]string
}

// Catalog is the directory of a catalog image that holds the catalog.
func Catalog() Tree {
	return Tree{
		Label: "operators.operatorframework.io.index.configs.v1", Default: "/configs",
		Legacy: map[string]string{
			"operators.operatorframework.io.index.database.v1": "a database of the format before file-based catalogs: " +
				"convert it with 'opm migrate' of an older release",
			"operators.operatorframework.io.bundle.manifests.v1": "a single bundle, not a catalog",
		},
	}
}

// Extracted says what has been brought to the file system.
type Extracted struct {
	// Digest of what the reference stands for.
	Digest string `json:"digest"`
	// Manifest is the digest of the image for one platform.
	Manifest string `json:"manifest"`
	// Platform of the image; empty when it is for a single one.
	Platform string `json:"platform,omitempty"`
	// Dir is the directory in the image.
	Dir string `json:"dir"`
	// Files and Bytes are how much it holds.
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// Extract brings a directory of an image to dir, an empty directory. Beside the
// content it needs room for the layers as they are transferred, in scratch. The
// error is an [*Error]; dir then holds anything.
func (c *Client) Extract(ctx context.Context, reference string, what Tree, dir, scratch string) (*Extracted, error) {
	var out *Extracted
	err := c.within(ctx, reference, c.options.PullTimeout, func(ctx context.Context, s *session) error {
		var err error
		out, err = s.extract(ctx, what, dir, scratch)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (s *session) extract(ctx context.Context, what Tree, dir, scratch string) (*Extracted, error) {
	digest, err := s.resolve(ctx)
	if err != nil {
		return nil, err
	}
	// Whatever the tag does meanwhile, this is one image.
	ref := s.ref.Context().Digest(digest)
	m, err := s.manifest(ctx, ref)
	if err != nil {
		return nil, err
	}
	labels, err := s.labels(ctx, ref, m)
	if err != nil {
		return nil, err
	}
	inImage, err := what.dir(labels)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fail(ReasonLocal, "opening the directory for the content: %w", err)
	}
	defer root.Close() //nolint:errcheck // what was written has been closed
	grown := newTree(root, inImage, &s.client.options.Limits)
	if err := s.layers(ctx, ref, m, grown, scratch); err != nil {
		return nil, err
	}
	files, size, err := grown.result()
	if err != nil {
		return nil, what.missing(labels, err)
	}
	return &Extracted{
		Digest: digest, Manifest: m.digest, Platform: m.platform, Dir: "/" + strings.TrimPrefix(inImage, "."), Files: files, Bytes: size,
	}, nil
}

// dir returns the directory that labels name, without slashes around it.
func (w *Tree) dir(labels map[string]string) (string, error) {
	dir, labelled := labels[w.Label]
	if !labelled || dir == "" {
		dir = w.Default
	}
	if dir == "" {
		return "", w.missing(labels, fail(ReasonNoTree, "has no label %s", w.Label))
	}
	if len(dir) > maxPathBytes {
		return "", fail(ReasonInvalid, "label %s names a directory of %d bytes", w.Label, len(dir))
	}
	dir = strings.TrimPrefix(path.Clean("/"+dir), "/")
	if dir == "" {
		dir = "."
	}
	return dir, nil
}

// missing adds to an error what the image holds instead.
func (w *Tree) missing(labels map[string]string, err error) error {
	for label, content := range w.Legacy {
		if _, ok := labels[label]; ok {
			return fail(ReasonNoTree, "%w; it holds %s", err, content)
		}
	}
	if _, labelled := labels[w.Label]; !labelled && errors.Is(err, errEmptyTree) {
		return fail(ReasonNoTree, "%w, and it has no label %s that names another", err, w.Label)
	}
	return err
}

// maxTransfers is how many layers are transferred at a time.
const maxTransfers = 3

// layers transfers the layers, some at a time, and applies each once all those
// below it have been.
func (s *session) layers(ctx context.Context, ref name.Digest, m *manifest, to *tree, scratch string) error {
	group, ctx := errgroup.WithContext(ctx)
	ready := make([]chan *os.File, len(m.Layers))
	for i := range ready {
		ready[i] = make(chan *os.File, 1)
	}
	slots := make(chan struct{}, maxTransfers)
	progress := s.progress(m)
	group.Go(func() error { return s.apply(ctx, ready, slots, to) })
	for i := range m.Layers {
		// In order: the lowest layer must be among those under way.
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			continue
		}
		group.Go(func() error {
			file, err := temporary(scratch)
			if err != nil {
				return err
			}
			if err := s.spool(ctx, ref, &m.Layers[i], file, progress); err != nil {
				_ = file.Close()
				return err
			}
			ready[i] <- file
			return nil
		})
	}
	err := group.Wait()
	for i := range ready {
		select {
		case file := <-ready[i]:
			_ = file.Close()
		default:
		}
	}
	return err //nolint:wrapcheck // it has been, by those who know what they did
}

// temporary returns a file that is gone when it is closed, even if the program
// is killed before.
func temporary(scratch string) (*os.File, error) {
	file, err := os.CreateTemp(scratch, "layer-*")
	if err != nil {
		return nil, fail(ReasonLocal, "making a temporary file: %w", err)
	}
	if err := os.Remove(file.Name()); err != nil {
		_ = file.Close()
		return nil, fail(ReasonLocal, "making a temporary file: %w", err)
	}
	return file, nil
}

// apply applies the layers in their order as they become ready, and makes room
// for further transfers.
func (s *session) apply(ctx context.Context, ready []chan *os.File, slots <-chan struct{}, to *tree) error {
	limits := &s.client.options.Limits
	left := limits.MaxUnpackedBytes
	for i := range ready {
		var file *os.File
		select {
		case file = <-ready[i]:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		err := applyLayer(ctx, file, &left, limits, to)
		_ = file.Close()
		<-slots
		if err != nil {
			return fmt.Errorf("unpacking layer %d: %w", i+1, err)
		}
	}
	return nil
}

func applyLayer(ctx context.Context, file *os.File, left *int64, limits *Limits, to *tree) error {
	if _, err := file.Seek(0, 0); err != nil {
		return fail(ReasonLocal, "rewinding a temporary file: %w", err)
	}
	to.begin()
	err := entries(ctx, file, left, limits.MaxUnpackedBytes, to.apply)
	if err != nil {
		return layerError(ctx, err)
	}
	return nil
}

// progress returns what counts transferred bytes.
func (s *session) progress(m *manifest) func(int64) {
	report := s.client.options.Progress
	if report == nil {
		return func(int64) {}
	}
	var (
		mu          sync.Mutex
		done, total int64
	)
	for i := range m.Layers {
		total += m.Layers[i].Size
	}
	return func(n int64) {
		mu.Lock()
		defer mu.Unlock()
		done += n
		report(done, total)
	}
}
