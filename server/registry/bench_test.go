package registry

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/chandlery/chandlery/bundles/fbc"
	"github.com/chandlery/chandlery/bundles/index"
	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/test/realcatalogs"
)

// serve serves the real catalog in this process.
func serve(b *testing.B) api.RegistryClient {
	b.Helper()
	catalog, err := fbc.Load(b.Context(), os.DirFS(realcatalogs.Dir(b, realcatalogs.Metadata)), fbc.Options{})
	if err != nil {
		b.Fatal(err)
	}
	x, err := index.Build(b.Context(), catalog)
	if err != nil {
		b.Fatal(err)
	}
	server := grpc.NewServer(grpc.ForceServerCodecV2(Codec()))
	Register(server, New(func() *index.Index { return x }, func(_ *index.Index, err error) { b.Error(err) }))
	listener := bufconn.Listen(1 << 20)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:///bufconn", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		conn.Close()
		server.Stop()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	return api.NewRegistryClient(conn)
}

// The figures include the decoding of the answers by the client.

func BenchmarkListBundles(b *testing.B) {
	client := serve(b)
	b.ReportAllocs()
	for b.Loop() {
		stream, err := client.ListBundles(b.Context(), &api.ListBundlesRequest{})
		if err != nil {
			b.Fatal(err)
		}
		for err == nil {
			_, err = stream.Recv()
		}
		if !errors.Is(err, io.EOF) {
			b.Fatal(err)
		}
	}
}

func BenchmarkGetBundle(b *testing.B) {
	client := serve(b)
	request := &api.GetBundleRequest{PkgName: "etcd", ChannelName: "singlenamespace-alpha", CsvName: "etcdoperator.v0.9.4"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := client.GetBundle(b.Context(), request); err != nil {
			b.Fatal(err)
		}
	}
}
