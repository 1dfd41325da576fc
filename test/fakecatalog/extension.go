package fakecatalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/chandlery/chandlery/proto/api"
	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
)

// HangUp ends the streams of all watches.
func (s *Server) HangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangups++
	s.news()
}

// digest returns the digest of a content.
func digest(packages []Package) string {
	sum := sha256.New()
	add := func(m proto.Message) {
		// Content that cannot be encoded cannot be served either.
		text, _ := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		_, _ = sum.Write(append(text, 0))
	}
	for _, p := range packages {
		add(p.Package())
		for _, b := range p.Bundles() {
			add(b)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// extension serves the extension API of a server.
type extension struct {
	registryv1.UnimplementedRegistryServiceServer

	server *Server
}

// GetInfo returns the digest of the content.
func (e *extension) GetInfo(context.Context, *registryv1.GetInfoRequest) (*registryv1.GetInfoResponse, error) {
	e.server.asked.Add(1)
	e.server.mu.Lock()
	defer e.server.mu.Unlock()
	if e.server.failure != nil {
		return nil, e.server.failure
	}
	return &registryv1.GetInfoResponse{Content: &registryv1.Content{Digest: e.server.digest()}, Build: &registryv1.Build{}}, nil
}

// Watch sends the digest of the content after each change.
func (e *extension) Watch(_ *registryv1.WatchRequest, stream grpc.ServerStreamingServer[registryv1.WatchResponse]) error {
	begun := -1
	for {
		e.server.mu.Lock()
		failure, digest, changed, hangups := e.server.failure, e.server.digest(), e.server.changed, e.server.hangups
		e.server.mu.Unlock()
		if failure != nil {
			return failure
		}
		if begun >= 0 && begun != hangups {
			return status.Error(codes.Unavailable, "the server hangs up")
		}
		begun = hangups
		answer := &registryv1.WatchResponse{}
		if digest != "" {
			answer.Content = &registryv1.Content{Digest: digest}
		}
		if err := stream.Send(answer); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return status.FromContextError(stream.Context().Err()).Err()
		}
	}
}

// ListBundles returns a page of bundles.
func (e *extension) ListBundles(_ context.Context, r *registryv1.ListBundlesRequest) (*registryv1.ListBundlesResponse, error) {
	packages, digest, err := e.server.content()
	if err != nil {
		return nil, err
	}
	var all []*registryv1.Bundle
	for _, p := range packages {
		defaultChannel := p.Package().GetDefaultChannelName()
		for _, b := range p.Bundles() {
			all = append(all, bundle(b, defaultChannel))
		}
	}
	out := &registryv1.ListBundlesResponse{ContentDigest: digest}
	out.Bundles, out.NextPageToken, err = turn(&e.server.paging, digest, all, r)
	return out, err
}

// ListDeprecations returns a page of deprecations.
func (e *extension) ListDeprecations(_ context.Context, r *registryv1.ListDeprecationsRequest) (*registryv1.ListDeprecationsResponse, error) {
	packages, digest, err := e.server.content()
	if err != nil {
		return nil, err
	}
	var all []*registryv1.DeprecatedObject
	add := func(pkg, name, message string, kind registryv1.DeprecatedKind) {
		if message != "" {
			all = append(all, &registryv1.DeprecatedObject{Package: pkg, Kind: kind, Name: name, Message: message})
		}
	}
	for _, p := range packages {
		add(p.Name, "", p.Deprecation, registryv1.DeprecatedKind_DEPRECATED_KIND_PACKAGE)
		for _, c := range p.Channels {
			add(p.Name, c.Name, c.Deprecation, registryv1.DeprecatedKind_DEPRECATED_KIND_CHANNEL)
			for _, entry := range c.Entries {
				add(p.Name, entry.Name, entry.Deprecation, registryv1.DeprecatedKind_DEPRECATED_KIND_BUNDLE)
			}
		}
	}
	out := &registryv1.ListDeprecationsResponse{ContentDigest: digest}
	out.Deprecations, out.NextPageToken, err = turn(&e.server.paging, digest, all, r)
	return out, err
}

// bundle returns a bundle without its manifests.
func bundle(b *api.Bundle, defaultChannel string) *registryv1.Bundle {
	out := &registryv1.Bundle{
		Name: b.GetCsvName(), Package: b.GetPackageName(), Channel: b.GetChannelName(), Image: b.GetBundlePath(), Version: b.GetVersion(),
		SkipRange: b.GetSkipRange(), Replaces: b.GetReplaces(), Skips: b.GetSkips(),
		InDefaultChannel: b.GetChannelName() == defaultChannel,
	}
	for _, p := range b.GetProperties() {
		out.Properties = append(out.Properties, &registryv1.Property{Type: p.GetType(), Value: p.GetValue()})
	}
	if d := b.GetDeprecation(); d != nil {
		out.Deprecation = &registryv1.Deprecation{Message: d.GetMessage()}
	}
	return out
}
