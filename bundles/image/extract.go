package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/name"
	"golang.org/x/sync/errgroup"
)

// Extracted describes an extracted directory.
type Extracted struct {
	// Digest is the digest that the reference resolved to.
	Digest string `json:"digest"`
	// Manifest is the digest of the image for one platform.
	Manifest string `json:"manifest"`
	// Platform is the platform of the image; empty for an image for a single platform.
	Platform string `json:"platform,omitempty"`
	// Dir is the directory in the image.
	Dir string `json:"dir"`
	// Files and Bytes are the size of the directory.
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// Extract extracts a directory of an image to dir, an empty directory. It stores the transferred
// layers in scratch. The error is an [*Error]; dir may then hold anything.
func (c *Client) Extract(ctx context.Context, reference string, what Tree, dir, scratch string) (*Extracted, error) {
	var out *Extracted
	if c.options.Sources.Router != nil {
		pinned, err := pinned(ctx, c, reference)
		if err != nil {
			return nil, err
		}
		reference = pinned
	}
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

// pinned returns a reference with the digest that it resolves to. A source may resolve tags, and another one have the
// content.
func pinned(ctx context.Context, c *Client, reference string) (string, error) {
	digest, err := c.Resolve(ctx, reference)
	if err != nil {
		return "", err
	}
	ref, err := c.parse(reference)
	if err != nil {
		return "", describe(reference, err)
	}
	return pin(ref, digest), nil
}

func (s *session) extract(ctx context.Context, what Tree, dir, scratch string) (*Extracted, error) {
	digest, err := s.resolve(ctx)
	if err != nil {
		return nil, err
	}
	// From here on the image is fixed, even if the tag moves.
	ref := s.ref.Context().Digest(digest)
	m, err := s.manifest(ctx, ref)
	if err != nil {
		return nil, err
	}
	labels, err := s.labels(ctx, ref, m)
	if err != nil {
		return nil, err
	}
	if err := what.check(labels); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fail(ReasonLocal, "opening the directory for the content: %w", err)
	}
	defer root.Close() //nolint:errcheck // what was written has been closed
	if err := clearDir(root); err != nil {
		return nil, err
	}
	e := &extraction{session: s, ref: ref, manifest: m, labels: labels, what: &what, scratch: scratch}
	extract := e.labelled
	if what.isUnlabelled(labels) {
		extract = e.unlabelled
	}
	extracted, err := extract(ctx, root)
	if err != nil {
		return nil, err
	}
	files, size, err := extracted.result()
	if err != nil {
		return nil, what.missing(labels, err)
	}
	return &Extracted{
		Digest: digest, Manifest: m.digest, Platform: m.platform, Dir: "/" + strings.TrimPrefix(string(extracted.dir), "."), Files: files, Bytes: size,
	}, nil
}

// clearDir removes what an attempt at another source has left.
func clearDir(root *os.Root) error {
	left, err := fs.ReadDir(root.FS(), ".")
	for _, entry := range left {
		err = errors.Join(err, root.RemoveAll(entry.Name()))
	}
	if err != nil {
		return fail(ReasonLocal, "emptying the directory for the content: %w", err)
	}
	return nil
}

// extraction extracts a directory of an image.
type extraction struct {
	session  *session
	ref      name.Digest
	manifest *manifest
	labels   map[string]string
	what     *Tree
	// scratch is a directory for the layers.
	scratch string
	// archive replaces the layers; nil for none.
	archive *os.File
}

// labelled extracts the directory that the labels name below root.
func (e *extraction) labelled(ctx context.Context, root *os.Root) (*tree, error) {
	inImage, err := e.what.dir(e.labels)
	if err != nil {
		return nil, err
	}
	extracted := newTree(root, inImage, e.limits())
	return extracted, e.layers(ctx, extracted)
}

func (e *extraction) limits() *Limits { return &e.session.client.options.Limits }

// maxTransfers is the number of concurrent layer transfers.
const maxTransfers = 3

// layers transfers the layers, some in parallel. It applies each to every tree after all lower layers.
func (e *extraction) layers(ctx context.Context, to ...*tree) error {
	if e.archive != nil {
		left := e.limits().MaxUnpackedBytes
		return applyLayer(ctx, e.archive, &left, e.limits(), to)
	}
	group, ctx := errgroup.WithContext(ctx)
	ready := make([]chan *os.File, len(e.manifest.Layers))
	for i := range ready {
		ready[i] = make(chan *os.File, 1)
	}
	slots := make(chan struct{}, maxTransfers)
	progress := e.progress()
	group.Go(func() error { return e.apply(ctx, ready, slots, to) })
	for i := range e.manifest.Layers {
		// Start in order, because the lowest layer must be among those in progress.
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			continue
		}
		group.Go(func() error {
			file, err := temporary(e.scratch)
			if err != nil {
				return err
			}
			if err := e.spool(ctx, &e.manifest.Layers[i], file, progress); err != nil {
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

// temporary returns a file that is deleted when it is closed, even if the program is killed.
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

// apply applies the layers in their order when they are ready. It then permits further transfers.
func (e *extraction) apply(ctx context.Context, ready []chan *os.File, slots <-chan struct{}, to []*tree) error {
	limits := e.limits()
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

func applyLayer(ctx context.Context, file *os.File, left *int64, limits *Limits, to []*tree) error {
	if _, err := file.Seek(0, 0); err != nil {
		return fail(ReasonLocal, "rewinding a temporary file: %w", err)
	}
	for _, one := range to {
		one.begin()
	}
	// Trees do not overlap, so at most one of them reads the content.
	err := entries(ctx, file, left, limits.MaxUnpackedBytes, func(header *tar.Header, content io.Reader) error {
		for _, one := range to {
			if err := one.apply(header, content); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return layerError(ctx, err)
	}
	return nil
}

// progress returns a function that counts transferred bytes.
func (e *extraction) progress() func(int64) {
	report := e.session.client.options.Progress
	if report == nil {
		return func(int64) {}
	}
	var (
		mu          sync.Mutex
		done, total int64
	)
	for i := range e.manifest.Layers {
		total += e.manifest.Layers[i].Size
	}
	return func(n int64) {
		mu.Lock()
		defer mu.Unlock()
		done += n
		report(done, total)
	}
}
