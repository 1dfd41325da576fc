package server

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/chandlery/chandlery/bundles/index"
	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/server/registry"
	"github.com/chandlery/chandlery/server/source"
)

// BenchmarkUnary compares a server with its interceptor to a bare server of the same service. The
// figures include the client.
func BenchmarkUnary(b *testing.B) {
	dir := b.TempDir()
	bundle := strings.ReplaceAll(catalogOf("p"), `1.0.0"}}]`, `1.0.0"}},{"type":"big","value":"`+strings.Repeat("x", 50<<10)+`"}]`)
	writeCatalog(b, dir, bundle)
	for _, callers := range []int{1, 8, 32} {
		b.Run(fmt.Sprintf("bare/%d", callers), func(b *testing.B) { askOften(b, bare(b, source.Dir{Path: dir}), callers) })
		b.Run(fmt.Sprintf("whole/%d", callers), func(b *testing.B) { askOften(b, whole(b, source.Dir{Path: dir}), callers) })
	}
}

// bare runs a server without interceptors.
func bare(b *testing.B, from Source) string {
	b.Helper()
	x, err := from.Load(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	server := grpc.NewServer(grpc.ForceServerCodecV2(registry.Codec()))
	registry.Register(server, registry.New(func() *index.Index { return x }, func(*index.Index, error) {}))
	listener, err := new(net.ListenConfig).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	b.Cleanup(func() { server.Stop(); <-done })
	return listener.Addr().String()
}

// whole runs a server as the program does.
func whole(b *testing.B, from Source) string {
	b.Helper()
	s, err := New(b.Context(), Config{
		Source: from, Address: "127.0.0.1:0", AccessLogSample: 1000, Logger: slog.New(slog.NewJSONHandler(&logBuffer{}, nil)),
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	wait(b, "content", func() bool { return s.content.current.Load() != nil })
	return s.Address().String()
}

func askOften(b *testing.B, address string, callers int) {
	b.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	client := api.NewRegistryClient(conn)
	request := &api.GetBundleRequest{PkgName: "p", ChannelName: "a", CsvName: "b"}
	if _, err := client.GetBundle(b.Context(), request, grpc.WaitForReady(true)); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	todo := make(chan struct{}, callers)
	done := make(chan error, callers)
	for range callers {
		go func() {
			var failed error
			for range todo {
				if _, err := client.GetBundle(b.Context(), request); err != nil {
					failed = err
				}
			}
			done <- failed
		}()
	}
	for range b.N {
		todo <- struct{}{}
	}
	close(todo)
	for range callers {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}
