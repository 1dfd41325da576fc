package fakecatalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/chandlery/chandlery/proto/api"
	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
)

// pages configures the paging.
type pages struct {
	// size is the largest size of a page; zero for the requested size.
	size int
	// aborted is the number of further pages, other than first ones, that fail.
	aborted int
	// served is the number of served pages.
	served int
}

// Paginate limits the size of pages.
func (s *Server) Paginate(size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages.size = size
}

// Abort makes the next n pages other than first ones fail, as after a change of the content.
func (s *Server) Abort(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages.aborted = n
}

// Pages returns the number of served pages of bundles.
func (s *Server) Pages() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pages.served
}

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
	e.server.mu.Lock()
	defer e.server.mu.Unlock()
	e.server.asked++
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
	var all []*registryv1.Bundle
	for _, p := range e.server.served() {
		defaultChannel := p.Package().GetDefaultChannelName()
		for _, b := range p.Bundles() {
			all = append(all, bundle(b, defaultChannel))
		}
	}
	out := &registryv1.ListBundlesResponse{}
	var err error
	out.Bundles, out.NextPageToken, out.ContentDigest, err = turn(e.server, all, r)
	return out, err
}

// ListDeprecations returns a page of deprecations.
func (e *extension) ListDeprecations(_ context.Context, r *registryv1.ListDeprecationsRequest) (*registryv1.ListDeprecationsResponse, error) {
	var all []*registryv1.DeprecatedObject
	add := func(pkg, name, message string, kind registryv1.DeprecatedKind) {
		if message != "" {
			all = append(all, &registryv1.DeprecatedObject{Package: pkg, Kind: kind, Name: name, Message: message})
		}
	}
	for _, p := range e.server.served() {
		add(p.Name, "", p.Deprecation, registryv1.DeprecatedKind_DEPRECATED_KIND_PACKAGE)
		for _, c := range p.Channels {
			add(p.Name, c.Name, c.Deprecation, registryv1.DeprecatedKind_DEPRECATED_KIND_CHANNEL)
			for _, entry := range c.Entries {
				add(p.Name, entry.Name, entry.Deprecation, registryv1.DeprecatedKind_DEPRECATED_KIND_BUNDLE)
			}
		}
	}
	out := &registryv1.ListDeprecationsResponse{}
	var err error
	out.Deprecations, out.NextPageToken, out.ContentDigest, err = turn(e.server, all, r)
	return out, err
}

// served returns the content.
func (s *Server) served() []Package {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.packages
}

// request is the interface of requests for pages.
type request interface {
	GetPageSize() int32
	GetPageToken() string
}

// turn returns the requested page of all elements.
func turn[T any](s *Server, all []T, r request) (found []T, next, digest string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil {
		return nil, "", "", s.failure
	}
	digest = s.digest()
	begin := 0
	if r.GetPageToken() != "" {
		of, place, _ := strings.Cut(r.GetPageToken(), ":")
		if begin, err = strconv.Atoi(place); err != nil || begin > len(all) {
			return nil, "", "", status.Error(codes.InvalidArgument, "the page token is none of ours")
		}
		if of != digest || s.pages.aborted > 0 {
			s.pages.aborted = max(0, s.pages.aborted-1)
			return nil, "", "", status.Error(codes.Aborted, "the content has been replaced")
		}
	}
	size := int(r.GetPageSize())
	if s.pages.size > 0 {
		size = min(size, s.pages.size)
	}
	end := min(len(all), begin+size)
	if end < len(all) {
		next = digest + ":" + strconv.Itoa(end)
	}
	s.pages.served++
	return all[begin:end], next, digest, nil
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
