package replicas

import (
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/chandlery/chandlery/supervisor/dialproxy"
)

const (
	// maxMessage bounds, in bytes, one message from a catalog. gRPC's default of
	// 4 MiB is less than real bundles have; without any bound a catalog could
	// exhaust the supervisor's memory.
	maxMessage = 64 << 20
	// maxBackoff is the longest pause between two tries to connect to an address,
	// so that a catalog that comes back is noticed soon.
	maxBackoff = 10 * time.Second
	// bufferSize is that of a connection's buffers, in bytes. gRPC's default of
	// 32 KiB each is for connections that carry much; these are many.
	bufferSize = 4 << 10
)

// dialAddress prepares a connection to the address of a CatalogSource. Catalogs
// are served in plain text: the API has no field for certificates. A proxy gets the name of
// the catalog, which may be one that only the proxy can resolve.
func dialAddress(address string, proxies dialproxy.Environment) (*grpc.ClientConn, error) {
	retry := backoff.DefaultConfig
	retry.MaxDelay = maxBackoff
	params := grpc.ConnectParams{Backoff: retry, MinConnectTimeout: maxBackoff}
	proxy, err := proxies.For(address)
	switch {
	case err != nil:
		return nil, fmt.Errorf("choosing a proxy for %s: %w", address, err)
	case proxy == nil:
		return dial(address, params, grpc.WithNoProxy())
	}
	return dial("passthrough:///"+address, params, grpc.WithContextDialer(proxy.Dial))
}

func dial(target string, params grpc.ConnectParams, more ...grpc.DialOption) (*grpc.ClientConn, error) {
	options := append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithConnectParams(params),
		grpc.WithReadBufferSize(bufferSize),
		grpc.WithWriteBufferSize(bufferSize),
		grpc.WithChainUnaryInterceptor(clipUnary),
		grpc.WithChainStreamInterceptor(clipStream),
	}, more...)
	conn, err := grpc.NewClient(target, options...)
	if err != nil {
		return nil, fmt.Errorf("preparing a connection to %s: %w", target, err)
	}
	return conn, nil
}
