package catalogs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/bundles/manifests"
	"github.com/chandlery/chandlery/proto/api"
	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

const (
	// snapshotTimeout limits the reading of a whole catalog.
	snapshotTimeout = 2 * time.Minute
	// bundleTimeout limits the reading of one bundle from one replica.
	bundleTimeout = 10 * time.Second
	// probeTimeout limits a request for the content digest, so that a hanging server is noticed
	// soon.
	probeTimeout = 5 * time.Second
)

// announcedDigest returns the content digest that a catalog announces, or an error if it does not
// answer within timeout. The digest is empty for servers other than the registry of this project.
func announcedDigest(ctx context.Context, client api.RegistryClient, timeout time.Duration) (string, error) {
	// Only the header of the stream is needed. Cancelling the context ends the stream.
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	stream, err := client.ListPackages(ctx, &api.ListPackageRequest{})
	if err != nil {
		return "", fmt.Errorf("failed to list packages: %w", err)
	}
	header, err := stream.Header()
	if err != nil {
		return "", fmt.Errorf("failed to list packages: %w", err)
	}
	if header == nil {
		// The stream has ended. Only Recv returns its error.
		if _, err := stream.Recv(); err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("failed to list packages: %w", err)
		}
	}
	return digestOf(header), nil
}

func digestOf(header metadata.MD) string {
	if values := header.Get(api.ContentDigestHeader); len(values) == 1 {
		return values[0]
	}
	return ""
}

// Read reads a whole catalog once over a connection. It reads pages from a server with the
// extension API, and a list from others.
func Read(ctx context.Context, conn grpc.ClientConnInterface) (*Snapshot, error) {
	s, err := fetchPages(ctx, registryv1.NewRegistryServiceClient(conn), maxBytes)
	if status.Code(err) == codes.Unimplemented {
		return fetchList(ctx, api.NewRegistryClient(conn), maxBytes)
	}
	return s, err
}

// fetchList reads a whole catalog through api.Registry. The server sends the manifests as well;
// only their digests are held.
func fetchList(ctx context.Context, client api.RegistryClient, limit int64) (*Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	stream, err := client.ListBundles(ctx, &api.ListBundlesRequest{})
	if err != nil {
		return nil, fmt.Errorf("failed to list bundles: %w", err)
	}
	a := newSnapshotBuilder(limit)
	for {
		bundle, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = a.addListed(bundle)
		}
		if err != nil {
			return nil, fmt.Errorf("failed to list bundles: %w", err)
		}
	}
	for _, name := range a.packageNames() {
		pkg, err := client.GetPackage(ctx, &api.GetPackageRequest{Name: name})
		if err != nil {
			return nil, fmt.Errorf("failed to get package %s: %w", name, err)
		}
		if err := a.addPackage(pkg); err != nil {
			return nil, err
		}
	}
	header, err := stream.Header()
	if err != nil {
		return nil, fmt.Errorf("failed to list bundles: %w", err)
	}
	return a.snapshot(digestOf(header)), nil
}

// fetchBundle reads one bundle including its manifests.
func fetchBundle(ctx context.Context, client api.RegistryClient, catalog types.NamespacedName, request *api.GetBundleRequest) (plansteps.Bundle, error) {
	ctx, cancel := context.WithTimeout(ctx, bundleTimeout)
	defer cancel()
	b, err := client.GetBundle(ctx, request)
	if err != nil {
		return plansteps.Bundle{}, fmt.Errorf("reading bundle %s of package %s from catalog %s: %w", request.GetCsvName(), request.GetPkgName(), catalog, err)
	}
	if err := manifests.CheckSize(b.GetObject()...); err != nil {
		return plansteps.Bundle{}, fmt.Errorf("bundle %s of package %s of catalog %s %w", request.GetCsvName(), request.GetPkgName(), catalog, err)
	}
	properties := make([]plansteps.Property, 0, len(b.GetProperties()))
	for _, p := range b.GetProperties() {
		properties = append(properties, plansteps.Property{Type: p.GetType(), Value: p.GetValue()})
	}
	return plansteps.Bundle{
		Name: b.GetCsvName(), Package: b.GetPackageName(), Channel: b.GetChannelName(),
		Catalog: catalog, Properties: properties, Objects: b.GetObject(),
	}, nil
}
