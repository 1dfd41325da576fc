package replicas

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"

	"github.com/chandlery/chandlery/supervisor/catalogs/dialproxy"
	"github.com/chandlery/chandlery/supervisor/catalogs/dialtls"
)

const (
	// maxMessage limits one message from a catalog, in bytes. Real bundles exceed gRPC's default of
	// 4 MiB. Without a limit, a catalog could exhaust the supervisor's memory.
	maxMessage = 64 << 20
	// maxBackoff limits the pause between two attempts to connect to an address, so that the
	// supervisor notices soon when a catalog returns.
	maxBackoff = 10 * time.Second
	// bufferSize is the size of a connection's read and write buffers, in bytes. gRPC's default of
	// 32 KiB suits connections with much traffic. The supervisor has many connections with little.
	bufferSize = 4 << 10
)

// dialAddress returns a connection to the address of a CatalogSource. A proxy receives the host name,
// which may be a name that only the proxy can resolve.
func dialAddress(address string, proxies dialproxy.Environment, secure *dialtls.Credentials) (*grpc.ClientConn, error) {
	retry := backoff.DefaultConfig
	retry.MaxDelay = maxBackoff
	params := grpc.ConnectParams{Backoff: retry, MinConnectTimeout: maxBackoff}
	proxy, err := proxies.For(address)
	switch {
	case err != nil:
		return nil, fmt.Errorf("choosing a proxy for %s: %w", address, err)
	case proxy == nil:
		return dial(address, params, secure, grpc.WithNoProxy(), grpc.WithContextDialer(secure.Dialer(dialTCP)))
	}
	return dial("passthrough:///"+address, params, secure, grpc.WithContextDialer(secure.Dialer(proxy.Dial)))
}

func dialTCP(ctx context.Context, address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", address) //nolint:wrapcheck // gRPC states the address.
}

func dial(target string, params grpc.ConnectParams, secure credentials.TransportCredentials, more ...grpc.DialOption) (*grpc.ClientConn, error) {
	options := append([]grpc.DialOption{
		grpc.WithTransportCredentials(secure),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.ForceCodecV2(newBoundedCodec())),
		grpc.WithConnectParams(params),
		grpc.WithReadBufferSize(bufferSize),
		grpc.WithWriteBufferSize(bufferSize),
		grpc.WithChainUnaryInterceptor(limitUnaryText),
		grpc.WithChainStreamInterceptor(limitStreamText),
	}, more...)
	conn, err := grpc.NewClient(target, options...)
	if err != nil {
		return nil, fmt.Errorf("preparing a connection to %s: %w", target, err)
	}
	return conn, nil
}
