package fakecatalog

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/chandlery/chandlery/proto/api"
)

// contract serves api.Registry of a server.
type contract struct {
	api.UnimplementedRegistryServer

	server *Server
}

// header returns the header of a stream with the digest of the content.
func header(digest string) metadata.MD {
	if digest == "" {
		return nil
	}
	return metadata.Pairs(api.ContentDigestHeader, digest)
}

// open counts a call, and sends the header of its stream. It returns the packages to send.
func (c *contract) open(calls *atomic.Int32, stream grpc.ServerStream) ([]Package, error) {
	calls.Add(1)
	packages, digest, err := c.server.content()
	if err != nil {
		return nil, err
	}
	return packages, stream.SetHeader(header(digest))
}

// ListPackages sends the names of the packages.
func (c *contract) ListPackages(_ *api.ListPackageRequest, stream grpc.ServerStreamingServer[api.PackageName]) error {
	packages, err := c.open(&c.server.asked, stream)
	if err != nil {
		return err
	}
	for _, p := range packages {
		if err := stream.Send(&api.PackageName{Name: p.Name}); err != nil {
			return err
		}
	}
	return nil
}

// ListBundles sends every channel entry.
func (c *contract) ListBundles(_ *api.ListBundlesRequest, stream grpc.ServerStreamingServer[api.Bundle]) error {
	packages, err := c.open(&c.server.listed, stream)
	if err != nil {
		return err
	}
	for _, p := range packages {
		for _, b := range p.Bundles() {
			if err := stream.Send(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// GetPackage returns a package.
func (c *contract) GetPackage(_ context.Context, request *api.GetPackageRequest) (*api.Package, error) {
	packages, _, err := c.server.content()
	if err != nil {
		return nil, err
	}
	for _, p := range packages {
		if p.Name == request.GetName() {
			return p.Package(), nil
		}
	}
	return nil, status.Errorf(codes.NotFound, "no package %s", request.GetName())
}

// GetBundle returns a bundle of a channel.
func (c *contract) GetBundle(_ context.Context, request *api.GetBundleRequest) (*api.Bundle, error) {
	packages, _, err := c.server.content()
	if err != nil {
		return nil, err
	}
	for _, p := range packages {
		for _, b := range p.Bundles() {
			if b.GetPackageName() == request.GetPkgName() && b.GetChannelName() == request.GetChannelName() && b.GetCsvName() == request.GetCsvName() {
				b.Replaces, b.Skips = "", nil
				return b, nil
			}
		}
	}
	return nil, status.Errorf(codes.NotFound, "no bundle %s in channel %s of package %s", request.GetCsvName(), request.GetChannelName(), request.GetPkgName())
}

// GetBundleForChannel returns the head of a channel.
func (c *contract) GetBundleForChannel(ctx context.Context, request *api.GetBundleInChannelRequest) (*api.Bundle, error) {
	c.server.head(ctx)
	packages, _, err := c.server.content()
	if err != nil {
		return nil, err
	}
	var head *api.Bundle
	for _, p := range packages {
		for _, b := range p.Bundles() {
			if b.GetPackageName() == request.GetPkgName() && b.GetChannelName() == request.GetChannelName() {
				head = b
			}
		}
	}
	if head == nil {
		return nil, status.Errorf(codes.NotFound, "no channel %s of package %s", request.GetChannelName(), request.GetPkgName())
	}
	return head, nil
}
