package supervisor

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/chandlery/chandlery/supervisor/bundleimage"
	"github.com/chandlery/chandlery/supervisor/catalogs/contentcache"
)

const (
	// minBundleCache is the minimum size of the cache for bundles, in bytes.
	minBundleCache = 64 << 20
	// minCatalogCache is the minimum size of the cache for contents of catalogs, in bytes.
	minCatalogCache = 16 << 20
)

// Caches are the directories for content that can be read again. Sizes are in bytes; zero selects the default.
type Caches struct {
	// BundleDir is the directory for the content of bundle images; empty for the default. BundleSize is its maximum
	// size.
	BundleDir  string
	BundleSize int64
	// CatalogDir is the directory for the last known content of catalogs; empty to not keep it. CatalogSize is its
	// maximum size.
	CatalogDir  string
	CatalogSize int64
}

func (c *Caches) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.BundleDir, "bundle-cache-dir", bundleimage.DefaultDir(), "directory for the content of bundle images; created if missing; other users must not be able to write to it")
	c.BundleSize = bundleimage.DefaultSize
	fs.Var((*byteSize)(&c.BundleSize), "bundle-cache-size", "size limit of --bundle-cache-dir, such as 1Gi; pulls in progress can use 2Gi more")
	fs.StringVar(&c.CatalogDir, "catalog-cache-dir", "", "directory for the last known content of catalogs, used after a restart if a catalog does not answer; same rules as --bundle-cache-dir; empty: none")
	c.CatalogSize = contentcache.DefaultSize
	fs.Var((*byteSize)(&c.CatalogSize), "catalog-cache-size", "size limit of --catalog-cache-dir; a catalog can use a quarter of it")
}

// validate returns an error for every invalid size.
func (c *Caches) validate() error {
	var problems []error
	require := func(flag string, bytes, least int64, reason string) {
		if size, least := byteSize(bytes), byteSize(least); size < least && size != 0 {
			problems = append(problems, fmt.Errorf("%s is %s; it has to be at least %s%s", flag, &size, &least, reason))
		}
	}
	require("--bundle-cache-size", c.BundleSize, minBundleCache, ", which the content of one bundle may take")
	require("--catalog-cache-size", c.CatalogSize, minCatalogCache, "")
	return errors.Join(problems...)
}

// byteSize is a number of bytes in the notation of Kubernetes: 1Gi.
type byteSize int64

// String returns the number.
func (b *byteSize) String() string {
	return resource.NewQuantity(int64(*b), resource.BinarySI).String()
}

// Set parses a number.
func (b *byteSize) Set(text string) error {
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return fmt.Errorf("%w; write it as 512Mi or 1Gi", err)
	}
	*b = byteSize(quantity.Value())
	return nil
}

// Type names the kind of value in usage texts.
func (b *byteSize) Type() string { return "size" }
