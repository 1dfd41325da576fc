package inputs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/fbc"
	"github.com/chandlery/chandlery/bundles/index"
	"github.com/chandlery/chandlery/bundles/manifests"
	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/supervisor/catalogs/dialtls"
	"github.com/chandlery/chandlery/supervisor/dryrun"
	"github.com/chandlery/chandlery/supervisor/resolution"
)

var errNoBundle = errors.New("the catalog no longer has it")

// Images returns the images that a catalog names for bundles, in the order of the bundles.
func (g *Gathered) Images(ctx context.Context, catalog resolution.CatalogKey, keys []dryrun.BundleKey) ([]dryrun.BundleImages, error) {
	p := g.scope.locations[catalog]
	if p == nil {
		return nil, fmt.Errorf("catalog %s: %w", catalog, errNoBundle)
	}
	found, err := g.scope.images(ctx, p, keys)
	if err != nil {
		return nil, fmt.Errorf("reading the images in catalog %s: %w", catalog, err)
	}
	return found, nil
}

func (s *scope) images(ctx context.Context, p *catalogLocation, keys []dryrun.BundleKey) ([]dryrun.BundleImages, error) {
	if p.override == "" {
		conn, end, err := s.cluster.Dial(ctx, p.source)
		if err != nil {
			return nil, err
		}
		defer end()
		return imagesInServer(ctx, conn, keys)
	}
	info, err := os.Stat(p.override)
	switch {
	case err == nil && info.IsDir():
		return imagesInDirectory(ctx, p.override, keys)
	case err == nil:
		return imagesInIndex(p.override, keys)
	}
	conn, err := dial(p.override, dialtls.NewCredentials(dialtls.Security{}))
	if err != nil {
		return nil, err
	}
	defer conn.Close() //nolint:errcheck // everything has been read by then
	return imagesInServer(ctx, conn, keys)
}

func imagesInServer(ctx context.Context, conn grpc.ClientConnInterface, keys []dryrun.BundleKey) ([]dryrun.BundleImages, error) {
	client := api.NewRegistryClient(conn)
	out := make([]dryrun.BundleImages, 0, len(keys))
	for _, key := range keys {
		b, err := client.GetBundle(ctx, &api.GetBundleRequest{PkgName: key.Package, ChannelName: key.Channel, CsvName: key.Name})
		if err != nil {
			return nil, fmt.Errorf("bundle %s: %s", key.Name, status.Convert(err).Message())
		}
		one, err := imagesOf([]byte(b.GetCsvJson()))
		if err != nil {
			return nil, fmt.Errorf("bundle %s: %w", key.Name, err)
		}
		out = append(out, one)
	}
	return out, nil
}

func imagesInIndex(name string, keys []dryrun.BundleKey) ([]dryrun.BundleImages, error) {
	x, err := index.Open(name)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller names the catalog
	}
	out := make([]dryrun.BundleImages, 0, len(keys))
	for _, key := range keys {
		message, err := x.Bundle(key.Package, key.Channel, key.Name)
		if err != nil {
			return nil, fmt.Errorf("bundle %s: %w", key.Name, err)
		}
		b := &api.Bundle{}
		if err := proto.Unmarshal(message.Bytes(), b); err != nil {
			return nil, fmt.Errorf("bundle %s: decoding it: %w", key.Name, err)
		}
		one, err := imagesOf([]byte(b.GetCsvJson()))
		if err != nil {
			return nil, fmt.Errorf("bundle %s: %w", key.Name, err)
		}
		out = append(out, one)
	}
	return out, nil
}

func imagesInDirectory(ctx context.Context, dir string, keys []dryrun.BundleKey) ([]dryrun.BundleImages, error) {
	decoded, err := fbc.Load(ctx, os.DirFS(dir), fbc.Options{})
	if err != nil {
		return nil, brief(err)
	}
	out := make([]dryrun.BundleImages, 0, len(keys))
	for _, key := range keys {
		b := bundleIn(decoded, key)
		if b == nil {
			return nil, fmt.Errorf("bundle %s: %w", key.Name, errNoBundle)
		}
		one, err := imagesOf(csvOf(b))
		if err != nil {
			return nil, fmt.Errorf("bundle %s: %w", key.Name, err)
		}
		for _, related := range b.RelatedImages {
			if related.Image != "" && !slices.Contains(one.OfDeployments, related.Image) {
				one.Related = append(one.Related, related.Image)
			}
		}
		slices.Sort(one.Related)
		one.Related = slices.Compact(one.Related)
		out = append(out, one)
	}
	return out, nil
}

func bundleIn(catalog *bundles.Catalog, key dryrun.BundleKey) *bundles.Bundle {
	for _, p := range catalog.Packages {
		for _, b := range p.Bundles {
			if p.Name == key.Package && b.Name == key.Name {
				return b
			}
		}
	}
	return nil
}

// csvOf returns the ClusterServiceVersion among the manifests of a bundle; nil if the catalog lacks it.
func csvOf(b *bundles.Bundle) []byte {
	facts, err := bundles.ParseProperties(b.Properties)
	if facts == nil || err != nil {
		return nil
	}
	for _, object := range facts.Objects {
		if text, err := object.AppendData(nil); err == nil && manifests.IsCSV(text) {
			return text
		}
	}
	return nil
}

// imagesOf returns the images that a ClusterServiceVersion names; none if it is empty.
func imagesOf(csv []byte) (dryrun.BundleImages, error) {
	if len(csv) == 0 {
		return dryrun.BundleImages{}, nil
	}
	ofDeployments, related, err := manifests.Images(csv)
	return dryrun.BundleImages{OfDeployments: ofDeployments, Related: related}, err //nolint:wrapcheck // the caller names the bundle
}
