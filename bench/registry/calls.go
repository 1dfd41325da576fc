package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/chandlery/chandlery/bench/wire"
	"github.com/chandlery/chandlery/proto/api"
)

// maxRequests is the largest number of different requests for a method.
const maxRequests = 400

// entry is an element of ListBundles: package, channel, bundle and the provided APIs.
type entry struct {
	pkg, channel, bundle string
	apis                 []*api.GroupVersionKind
}

// recorded are requests to a server and its answers.
type recorded struct {
	file    string
	entries []entry
	// packages are the names in the order of ListPackages.
	packages []string
	// heads are the first entries of each channel, for the names of the channels.
	heads []entry
	// calls are the calls by method, at most maxRequests of each.
	calls map[string][]wire.Call
}

// Methods that are called with the bytes of a request.
const (
	getPackage          = api.Registry_GetPackage_FullMethodName
	getBundle           = api.Registry_GetBundle_FullMethodName
	getBundleForChannel = api.Registry_GetBundleForChannel_FullMethodName
	listBundles         = api.Registry_ListBundles_FullMethodName
)

// record makes all calls that the floor is to answer to the registry once.
func (b *bench) record(ctx context.Context) (*recorded, error) {
	if b.recorded != nil {
		return b.recorded, nil
	}
	b.sayf("recording what the floor will answer")
	s, err := b.start(ctx, b.registryLaunch(b.content()))
	if err != nil {
		return nil, err
	}
	r, err := recordFrom(ctx, s.address)
	if err := errors.Join(err, s.stop()); err != nil {
		return nil, err
	}
	var calls []wire.Call
	for _, some := range r.calls {
		calls = append(calls, some...)
	}
	r.file = filepath.Join(b.dir, "recording")
	b.recorded = r
	return r, wire.Write(r.file, calls)
}

func recordFrom(ctx context.Context, address string) (*recorded, error) {
	conn, err := dial(address)
	if err != nil {
		return nil, err
	}
	defer conn.Close() //nolint:errcheck // nothing hangs on it
	r := &recorded{calls: map[string][]wire.Call{}}
	if err := r.survey(ctx, api.NewRegistryClient(conn)); err != nil {
		return nil, err
	}
	for method, requests := range r.requests() {
		for _, request := range requests {
			call, err := recordCall(ctx, conn, method, request)
			if err != nil {
				return nil, err
			}
			r.calls[method] = append(r.calls[method], call)
		}
	}
	return r, nil
}

// survey lists the packages and channels of the server.
func (r *recorded) survey(ctx context.Context, client api.RegistryClient) error {
	names, err := client.ListPackages(ctx, &api.ListPackageRequest{})
	if err := each(names, err, func(p *api.PackageName) { r.packages = append(r.packages, p.GetName()) }); err != nil {
		return fmt.Errorf("listing packages: %w", err)
	}
	seen := map[[2]string]bool{}
	bundles, err := client.ListBundles(ctx, &api.ListBundlesRequest{})
	if err := each(bundles, err, func(m *api.Bundle) {
		e := entry{pkg: m.GetPackageName(), channel: m.GetChannelName(), bundle: m.GetCsvName(), apis: m.GetProvidedApis()}
		r.entries = append(r.entries, e)
		if at := [2]string{e.pkg, e.channel}; !seen[at] {
			seen[at] = true
			r.heads = append(r.heads, e)
		}
	}); err != nil {
		return fmt.Errorf("listing bundles: %w", err)
	}
	return nil
}

// requests returns the requests, evenly spread over the catalog.
func (r *recorded) requests() map[string][]proto.Message {
	asked := map[string][]proto.Message{listBundles: {&api.ListBundlesRequest{}}}
	for _, name := range spread(r.packages) {
		asked[getPackage] = append(asked[getPackage], &api.GetPackageRequest{Name: name})
	}
	for _, e := range spread(r.entries) {
		asked[getBundle] = append(asked[getBundle],
			&api.GetBundleRequest{PkgName: e.pkg, ChannelName: e.channel, CsvName: e.bundle})
	}
	for _, e := range spread(r.heads) {
		asked[getBundleForChannel] = append(asked[getBundleForChannel],
			&api.GetBundleInChannelRequest{PkgName: e.pkg, ChannelName: e.channel})
	}
	return asked
}

// spread returns at most maxRequests elements, evenly spread over a list.
func spread[T any](all []T) []T {
	count := min(len(all), maxRequests)
	some := make([]T, count)
	for i := range some {
		some[i] = all[i*len(all)/count]
	}
	return some
}

// recordCall makes a call and records its messages.
func recordCall(ctx context.Context, conn *grpc.ClientConn, method string, request proto.Message) (wire.Call, error) {
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(request)
	if err != nil {
		return wire.Call{}, fmt.Errorf("encoding a request: %w", err)
	}
	call := wire.Call{Method: method, Request: encoded, Stream: method == listBundles}
	keep := func(reply wire.Bytes) { call.Replies = append(call.Replies, reply) }
	if call.Stream {
		err = stream(ctx, conn, method, encoded, keep)
	} else {
		sent, reply := wire.Bytes(encoded), wire.Bytes{}
		err = conn.Invoke(ctx, method, &sent, &reply, rawCodec())
		keep(reply)
	}
	if err != nil {
		return call, fmt.Errorf("recording %s: %w", method, err)
	}
	return call, nil
}

func rawCodec() grpc.CallOption { return grpc.ForceCodecV2(wire.Codec()) }

// stream calls a streaming method and passes on every message in the form of T.
func stream[T wire.Bytes | wire.Size](
	ctx context.Context, conn *grpc.ClientConn, method string, request []byte, visit func(T),
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	description := &grpc.StreamDesc{ServerStreams: true}
	s, err := conn.NewStream(ctx, description, method, rawCodec())
	if err != nil {
		return err
	}
	sent := wire.Bytes(request)
	if err := errors.Join(s.SendMsg(&sent), s.CloseSend()); err != nil {
		return err
	}
	for {
		var message T
		err := s.RecvMsg(&message)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		visit(message)
	}
}

// each passes on the messages of a stream.
func each[T any](s grpc.ServerStreamingClient[T], err error, visit func(*T)) error {
	for err == nil {
		var message *T
		if message, err = s.Recv(); err == nil {
			visit(message)
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// connected waits until a connection is ready.
func connected(ctx context.Context, conn *grpc.ClientConn) error {
	conn.Connect()
	for state := conn.GetState(); state != connectivity.Ready; state = conn.GetState() {
		if !conn.WaitForStateChange(ctx, state) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// isNotFound reports whether an error means that the object does not exist. opm has no code for it.
func isNotFound(err error) bool {
	return status.Code(err) == codes.NotFound || status.Code(err) == codes.Unknown
}
