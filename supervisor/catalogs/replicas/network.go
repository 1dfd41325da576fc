package replicas

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/chandlery/chandlery/supervisor/catalogs/dialtls"
)

const (
	// policyName is the name of the load-balancing policy that routes each call to its pod.
	policyName = "chandlery_replicas"
	// connectTimeout limits one attempt to connect to a pod. Pods are in the same cluster.
	connectTimeout = 2 * time.Second
)

func init() { balancer.Register(builder{}) }

// Network holds the connections to the pods of all catalogs. They share one gRPC client, whose
// memory is about that of the connections, so that many catalogs cost little. Network uses no proxy
// and no name service.
type Network struct {
	client   *grpc.ClientConn
	attached chan struct{}
	once     sync.Once
	cc       balancer.ClientConn // set before attached is closed
}

// NewNetwork returns a Network without connections.
func NewNetwork() (*Network, error) {
	n := &Network{attached: make(chan struct{})}
	where := manual.NewBuilderWithScheme("replicas")
	where.InitialState(resolver.State{
		Addresses:  []resolver.Address{{Addr: "replicas"}}, // gRPC requires one address; the policy does not use it
		Attributes: attributes.New(networkKey{}, n),
	})
	retry := backoff.Config{BaseDelay: DefaultInterval / 4, Multiplier: 1.6, Jitter: 0.2, MaxDelay: DefaultInterval}
	params := grpc.ConnectParams{Backoff: retry, MinConnectTimeout: connectTimeout}
	client, err := dial(where.Scheme()+":///replicas", params, podCredentials{insecure.NewCredentials()},
		grpc.WithResolvers(where), grpc.WithNoProxy(), grpc.WithIdleTimeout(0), grpc.WithDisableServiceConfig(),
		grpc.WithDefaultServiceConfig(fmt.Sprintf(`{"loadBalancingConfig":[{%q:{}}]}`, policyName)))
	if err != nil {
		return nil, err
	}
	n.client = client
	client.Connect()
	return n, nil
}

// Close closes every connection.
func (n *Network) Close() error { return n.client.Close() }

// errClosed is returned by calls on a closed connection.
var errClosed = errors.New("the connection is closed")

// podConn is the connection to one pod.
type podConn struct {
	network *Network
	sub     balancer.SubConn

	mu    sync.Mutex
	state connectivity.State
	err   error
}

// connect starts a connection to an address, in plain text without credentials.
func (n *Network) connect(ctx context.Context, address string, secure *dialtls.Credentials) (*podConn, error) {
	select {
	case <-n.attached:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	l := &podConn{network: n}
	at, options := []resolver.Address{withCredentials(address, secure)}, balancer.NewSubConnOptions{StateListener: l.recordState}
	sub, err := n.cc.NewSubConn(at, options) //nolint:staticcheck // what is deprecated is to give more than one address
	if err != nil {
		return nil, fmt.Errorf("preparing a connection to %s: %w", address, err)
	}
	l.sub = sub
	sub.Connect()
	return l, nil
}

// recordState records the state of the connection. It reconnects an idle connection, because probes need
// one.
func (l *podConn) recordState(s balancer.SubConnState) {
	l.mu.Lock()
	if l.state != connectivity.Shutdown {
		l.state = s.ConnectivityState
	}
	if s.ConnectionError != nil {
		l.err = s.ConnectionError
	}
	l.mu.Unlock()
	if s.ConnectivityState == connectivity.Idle {
		l.sub.Connect()
	}
	l.network.updatePicker()
}

// updatePicker makes gRPC evaluate waiting calls again.
func (n *Network) updatePicker() {
	n.cc.UpdateState(balancer.State{ConnectivityState: connectivity.Ready, Picker: &picker{}})
}

func (l *podConn) current() (connectivity.State, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state, l.err
}

// close closes the connection. The caller ends its calls first.
func (l *podConn) close() {
	l.mu.Lock()
	l.state, l.err = connectivity.Shutdown, errClosed
	l.mu.Unlock()
	l.sub.Shutdown()
	l.network.updatePicker()
}

// withCredentials returns an address with the credentials of its connections; nil for plain text.
func withCredentials(address string, secure *dialtls.Credentials) resolver.Address {
	at := resolver.Address{Addr: address}
	if secure != nil {
		at.Attributes = attributes.New(credentialsKey{}, secure)
	}
	return at
}

// podCredentials secure each connection with the credentials of its address. Others are in plain text.
type podCredentials struct {
	credentials.TransportCredentials
}

// ClientHandshake secures a connection.
func (p podCredentials) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if secure, ok := credentials.ClientHandshakeInfoFromContext(ctx).Attributes.Value(credentialsKey{}).(*dialtls.Credentials); ok {
		return secure.ClientHandshake(ctx, authority, raw) //nolint:wrapcheck // it names the server
	}
	return p.TransportCredentials.ClientHandshake(ctx, authority, raw) //nolint:wrapcheck // plain text has no errors
}

// Clone returns the same credentials: they have no state.
func (p podCredentials) Clone() credentials.TransportCredentials { return p }

type (
	credentialsKey struct{} // of the credentials in the attributes of an address
	networkKey     struct{} // of the Network in the attributes of the resolver
	podConnKey     struct{} // of the podConn in the context of a call
)

// Invoke makes a call on the connection.
func (l *podConn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	return l.network.client.Invoke(context.WithValue(ctx, podConnKey{}, l), method, args, reply, opts...)
}

// NewStream begins a stream on the connection.
func (l *podConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return l.network.client.NewStream(context.WithValue(ctx, podConnKey{}, l), desc, method, opts...)
}

// picker routes each call to the connection of its pod.
type picker struct{}

// Pick implements balancer.Picker.
func (*picker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	l, ok := info.Ctx.Value(podConnKey{}).(*podConn)
	if !ok {
		return balancer.PickResult{}, errClosed
	}
	switch state, err := l.current(); state {
	case connectivity.Ready:
		return balancer.PickResult{SubConn: l.sub}, nil
	case connectivity.TransientFailure, connectivity.Shutdown:
		return balancer.PickResult{}, err
	default:
		return balancer.PickResult{}, balancer.ErrNoSubConnAvailable
	}
}

// builder builds the policy of a Network.
type builder struct{}

// Name returns the name of the policy.
func (builder) Name() string { return policyName }

// Build returns the policy.
func (builder) Build(cc balancer.ClientConn, _ balancer.BuildOptions) balancer.Balancer {
	return &policy{cc: cc}
}

// policy passes its ClientConn to the Network, which creates the connections.
type policy struct{ cc balancer.ClientConn }

// UpdateClientConnState passes the ClientConn to the Network in the resolver's attributes.
func (p *policy) UpdateClientConnState(s balancer.ClientConnState) error {
	if n, ok := s.ResolverState.Attributes.Value(networkKey{}).(*Network); ok {
		n.once.Do(func() {
			n.cc = p.cc
			close(n.attached)
		})
	}
	return nil
}

// ResolverError does nothing, because the resolver resolves nothing.
func (*policy) ResolverError(error) {}

// UpdateSubConnState does nothing, because each podConn has its own state listener.
func (*policy) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}

// Close does nothing, because gRPC closes the connections.
func (*policy) Close() {}

// ExitIdle does nothing, because a Network has no idle mode.
func (*policy) ExitIdle() {}
