package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/fbc"
	"github.com/chandlery/chandlery/bundles/index"
)

// maxBuilds is how often an index is built from a directory that changes during the build.
const maxBuilds = 3

var errChanging = errors.New("the directory changes while it is read: try again when it is at rest")

// Create writes the index of the directory to a file. The same content produces the same file. In a
// cache directory, as [IndexFile], it serves every directory with this content. The index of a part
// of the content does not record its files, so it is never used for the whole. The error holds
// [bundles.Problems] when the content cannot be served.
func (d Dir) Create(ctx context.Context, name string) (index.Info, error) {
	for range maxBuilds {
		before, err := d.Fingerprint()
		if err != nil {
			return index.Info{}, err
		}
		info, err := d.create(ctx, name)
		if after, again := d.Fingerprint(); again != nil || after == before {
			return info, err
		}
	}
	return index.Info{}, fmt.Errorf("making index of %q: %w", d.Path, errChanging)
}

func (d Dir) create(ctx context.Context, name string) (index.Info, error) {
	if err := checkDir(d.Path); err != nil {
		return index.Info{}, err
	}
	root, err := openRoot(d.Path)
	if err != nil {
		return index.Info{}, err
	}
	o, err := d.recorded(ctx, root)
	if err != nil {
		return index.Info{}, err
	}
	reader, err := fbc.Open(ctx, root, d.Options)
	if err != nil {
		return index.Info{}, fmt.Errorf("reading catalog: %w", err)
	}
	defer reader.Close() //nolint:errcheck // nothing was written
	if !slices.ContainsFunc(reader.Packages(), func(name string) bool { return name != "" }) && len(reader.Problems()) == 0 {
		if err := d.checkEmpty(0); err != nil {
			return index.Info{}, err
		}
	}
	x, err := d.createFrom(ctx, name, reader, o)
	if problems := bundles.Problems(nil); errors.As(err, &problems) {
		locate(problems, d.Path)
	}
	if err != nil {
		return index.Info{}, wrapBuildError(err)
	}
	return x.Info(), nil
}

// recorded returns what an index records of the directory: its files, unless only a part of their
// content is kept.
func (d Dir) recorded(ctx context.Context, root fs.FS) (index.Options, error) {
	o := index.Options{Progress: d.Progress, Durable: true}
	files, err := list(root)
	if err != nil {
		return o, nil //nolint:nilerr // what cannot be listed the reader reports
	}
	if files, err = sumFiles(ctx, root, files); err != nil {
		return o, err
	}
	for i := range files {
		files[i].ModTime = 0
	}
	o.Digest = d.Filter.digest(digestOf(files))
	if d.Filter.key() == "" {
		o.Sources = files
	}
	return o, nil
}

// createFrom writes the index of the selected part of a catalog.
func (d Dir) createFrom(ctx context.Context, name string, from index.Source, o index.Options) (*index.Index, error) {
	selected, err := d.Filter.apply(ctx, from)
	if err != nil {
		return nil, err
	}
	return index.Create(ctx, name, selected, o)
}
