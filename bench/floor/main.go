// Command floor answers recorded calls from memory: a bare gRPC server without interceptors,
// encoding or costly lookups. No server that sends the same bytes with the same library can be much
// faster, so it is the lower bound for the registry.
//
//	floor --address 127.0.0.1:50051 --recording FILE
//
// "/metrics" on the other address returns the memory that it has allocated so far.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chandlery/chandlery/bench/wire"
	"github.com/chandlery/chandlery/test/cli"
)

func main() { cli.Run("floor", run) }

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("floor", flag.ContinueOnError)
	address := flags.String("address", "127.0.0.1:0", "where to serve")
	metrics := flags.String("metrics-address", "127.0.0.1:0", "where to serve metrics")
	recording := flags.String("recording", "", "file with the calls to answer")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("reading flags: %w", err)
	}
	calls, err := wire.Read(*recording)
	if err != nil {
		return err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", *address)
	if err != nil {
		return fmt.Errorf("opening port: %w", err)
	}
	observer := &http.Server{Addr: *metrics, Handler: promhttp.Handler(), ReadHeaderTimeout: time.Second}
	server := newServer(calls)
	context.AfterFunc(ctx, func() {
		server.Stop()
		observer.Close() //nolint:errcheck // the process ends
	})
	failed := make(chan error, 1)
	go func() { failed <- observer.ListenAndServe() }()
	if err := server.Serve(listener); err != nil {
		return fmt.Errorf("serving: %w", err)
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving metrics: %w", err)
	}
	return nil
}

// answers maps requests to replies.
type answers map[string][]wire.Bytes

// newServer returns a server with the methods that occur in the calls.
func newServer(calls []wire.Call) *grpc.Server {
	byMethod := map[string]answers{}
	streams := map[string]bool{}
	for _, call := range calls {
		if byMethod[call.Method] == nil {
			byMethod[call.Method] = answers{}
		}
		var replies []wire.Bytes
		for _, reply := range call.Replies {
			replies = append(replies, reply)
		}
		byMethod[call.Method][string(call.Request)] = replies
		streams[call.Method] = streams[call.Method] || call.Stream
	}
	services := map[string]*grpc.ServiceDesc{}
	for method, known := range byMethod {
		service, name := wire.Split(method)
		if services[service] == nil {
			services[service] = &grpc.ServiceDesc{ServiceName: service, HandlerType: (*any)(nil)}
		}
		add(services[service], name, known, streams[method])
	}
	server := grpc.NewServer(grpc.ForceServerCodecV2(wire.Codec()))
	for _, service := range services {
		server.RegisterService(service, struct{}{})
	}
	return server
}

func add(service *grpc.ServiceDesc, name string, known answers, stream bool) {
	if stream {
		service.Streams = append(service.Streams, grpc.StreamDesc{
			StreamName: name, ServerStreams: true,
			Handler: func(_ any, stream grpc.ServerStream) error { return known.stream(stream) },
		})
		return
	}
	service.Methods = append(service.Methods, grpc.MethodDesc{
		MethodName: name,
		Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			return known.unary(decode)
		},
	})
}

var errUnknown = status.Error(codes.NotFound, "this request was not recorded")

func (a answers) unary(decode func(any) error) (any, error) {
	var request wire.Bytes
	if err := decode(&request); err != nil {
		return nil, err
	}
	replies, ok := a[string(request)]
	if !ok {
		return nil, errUnknown
	}
	return &replies[0], nil
}

func (a answers) stream(stream grpc.ServerStream) error {
	var request wire.Bytes
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	replies, ok := a[string(request)]
	if !ok {
		return errUnknown
	}
	for i := range replies {
		if err := stream.SendMsg(&replies[i]); err != nil {
			return err
		}
	}
	return nil
}
