package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/cmd/internal/pulling"
	"github.com/chandlery/chandlery/cmd/internal/selectionflags"
	"github.com/chandlery/chandlery/server"
	"github.com/chandlery/chandlery/server/source"
)

// sourceFlags are the flags for reading content. Every command that reads a catalog has them, so an
// argument means the same for all.
type sourceFlags struct {
	allowEmpty bool
	// selection is the part of the content to keep. Commands without its flags keep everything.
	selection selectionflags.Flags

	cacheDir string
	// cacheOnly fills the cache and then ends the program.
	cacheOnly bool
	// cacheEnforceIntegrity compares the cache with the content before using the cache, instead of
	// afterwards. Any damaged or outdated cache is rebuilt.
	cacheEnforceIntegrity bool

	poll    time.Duration
	pulling pulling.Flags
}

// AddFlags adds the flags to a set.
func (o *sourceFlags) AddFlags(flags *pflag.FlagSet) {
	o.addCacheFlags(flags)
	flags.BoolVar(&o.allowEmpty, "allow-empty", false, "accept a catalog without packages; a ConfigMap may always be empty")
	flags.DurationVar(&o.poll, "poll", 5*time.Minute,
		"time between two checks of the digest behind an image tag; 0: never")
	o.pulling.AddFlags(flags)
}

// addCacheFlags adds the cache flags of "opm serve".
func (o *sourceFlags) addCacheFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.cacheDir, "cache-dir", "",
		"directory for cached catalog content, for a faster start; the program rebuilds missing or stale content")
	flags.BoolVar(&o.cacheOnly, "cache-only", false, "fill the cache directory and exit; without --cache-dir, only check the content")
	flags.BoolVar(&o.cacheEnforceIntegrity, "cache-enforce-integrity", false,
		"verify a cached index against the catalog before its first use; false: verify it after its first use")
}

// check returns an error for invalid values.
func (o *sourceFlags) check() error {
	if o.poll < 0 {
		return fmt.Errorf("--poll %w, found %s", errNegative, o.poll)
	}
	return o.pulling.Check()
}

// The prefixes of arguments that do not name files.
const (
	imagePrefix     = "oci:"
	configMapPrefix = "configmap:"
)

// open returns the source that an argument names: an image as "oci:REFERENCE", a mounted ConfigMap
// as "configmap:DIR" or by its files, an index file or a directory. It does not read the content.
func (o *sourceFlags) open(argument string, logger *slog.Logger) (server.Source, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	filter, err := o.filter(argument, logger)
	if err != nil {
		return nil, err
	}
	if reference, ok := strings.CutPrefix(argument, imagePrefix); ok {
		return o.openImage(reference, filter)
	}
	if dir, ok := strings.CutPrefix(argument, configMapPrefix); ok {
		return source.ConfigMap{Path: dir, Filter: filter}, nil
	}
	return o.openPath(argument, filter)
}

// openPath returns the source at a path.
func (o *sourceFlags) openPath(path string, filter source.Filter) (server.Source, error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.IsDir() && filter.Selection != nil:
		return nil, fmt.Errorf("%s %w", path, errSelectIndex)
	case err == nil && !info.IsDir():
		return source.File{Path: path, AllowEmpty: o.allowEmpty}, nil
	case err == nil && source.IsConfigMap(path):
		return source.ConfigMap{Path: path, Filter: filter}, nil
	case errors.Is(err, fs.ErrNotExist) && isLikeImage(path):
		return nil, bundles.Problems{{
			File: path, Message: "there is no such file or directory",
			Remedy: "to read an image write " + imagePrefix + path,
		}}
	}
	return source.Dir{
		Path: path, AllowEmpty: o.allowEmpty, Filter: filter,
		Cache: source.Cache{Dir: o.cacheDir, Suspicious: o.cacheEnforceIntegrity, Logger: filter.Logger},
	}, nil
}

var errSelectIndex = errors.New("is an index file, which does not support selection; select when you create it with 'registry build'")

// filter returns the filter for the content of an argument.
func (o *sourceFlags) filter(argument string, logger *slog.Logger) (source.Filter, error) {
	selected, err := o.selection.Selection(strings.TrimPrefix(argument, imagePrefix))
	if err != nil {
		return source.Filter{}, err
	}
	return source.Filter{Selection: selected, Logger: logger}, nil
}

// isLikeImage reports whether an argument looks like the name of an image with a registry.
func isLikeImage(argument string) bool {
	host, rest, ok := strings.Cut(argument, "/")
	return ok && rest != "" && !strings.HasPrefix(host, ".") && strings.ContainsAny(host, ".:")
}

// openImage returns the source for an image.
func (o *sourceFlags) openImage(reference string, filter source.Filter) (server.Source, error) {
	client, settings, err := o.pulling.LongLived("chandlery-registry/" + version)
	if err != nil {
		return nil, fmt.Errorf("opening image %q: %w", reference, err)
	}
	return &source.Image{
		Reference: reference, Client: client, Poll: o.poll, CacheDir: o.cacheDir, Suspicious: o.cacheEnforceIntegrity,
		AllowEmpty: o.allowEmpty, Filter: filter, Logger: filter.Logger, Settings: settings,
	}, nil
}

// The errors that prevent --cache-only.
var (
	errNotCached = errors.New("--cache-only: only a directory or an image has a cache; " +
		"an index file needs none, and 'registry build' creates an index file from a ConfigMap")
	errCacheNotFilled = errors.New("the index could not be stored in --cache-dir")
	errSeeWarnings    = errors.New("see the warnings")
)

// fillCache reads the content to fill the cache. Without a directory for the cache, it only checks the content, as opm does.
func (o *sourceFlags) fillCache(ctx context.Context, from server.Source, logger *slog.Logger) error {
	switch from.(type) {
	case source.Dir, *source.Image:
	default:
		return errNotCached
	}
	x, err := from.Load(ctx)
	if err != nil {
		return fmt.Errorf("filling the cache: %w", err)
	}
	stats := x.Stats()
	if o.cacheDir == "" {
		logger.InfoContext(ctx, "The content is valid; without --cache-dir, no cache is kept", "packages", stats.Packages, "bundles", stats.Bundles)
		return nil
	}
	// Only a cached index records its source. An empty one records nothing.
	if len(x.Sources()) == 0 && stats.Packages > 0 {
		return fmt.Errorf("%w %s: %w", errCacheNotFilled, o.cacheDir, whyNotWritable(o.cacheDir))
	}
	logger.InfoContext(ctx, "Filled the cache", "packages", stats.Packages, "bundles", stats.Bundles)
	return nil
}

// whyNotWritable tries to write to a directory, or to its nearest existing parent, and returns the error.
func whyNotWritable(dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir {
		return whyNotWritable(filepath.Dir(dir))
	}
	file, err := os.CreateTemp(dir, ".chandlery-tmp-*")
	if err != nil {
		return err
	}
	return errors.Join(errSeeWarnings, file.Close(), os.Remove(file.Name()))
}
