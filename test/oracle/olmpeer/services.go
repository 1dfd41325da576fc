package olmpeer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// services is a SOCKS5 proxy to the Services of a cluster. OLM runs outside the cluster, where the names of Services
// are not resolved. It connects to catalogs through the proxy of $GRPC_PROXY.
type services struct {
	client   client.Client
	listener net.Listener
}

// ServeServices starts a proxy to the Services of a cluster, on an address of this machine, and returns its URL for
// $GRPC_PROXY of OLM. The proxy runs until the process ends.
func ServeServices(ctx context.Context, c client.Client, host string) (string, error) {
	s, err := serveServices(ctx, c, host)
	if err != nil {
		return "", err
	}
	return s.url(), nil
}

// serveServices starts the proxy, which runs until the process ends.
func serveServices(ctx context.Context, c client.Client, host string) (*services, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, fmt.Errorf("starting the proxy to Services: %w", err)
	}
	s := &services{client: c, listener: listener}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go s.serve(ctx, connection)
		}
	}()
	return s, nil
}

// url returns the URL of the proxy.
func (s *services) url() string { return "socks5://" + s.listener.Addr().String() }

// The parts of SOCKS5 (RFC 1928) that the proxy has.
const (
	socksVersion    = 5
	socksConnect    = 1
	socksDomainName = 3
	socksSucceeded  = 0
	socksRefused    = 5
)

// serve connects one client.
func (s *services) serve(ctx context.Context, caller net.Conn) {
	defer caller.Close() //nolint:errcheck // nothing is left to write
	host, port, err := readRequest(caller)
	if err != nil {
		return
	}
	callee, err := s.dial(ctx, host, port)
	reply := []byte{socksVersion, socksSucceeded, 0, 1, 0, 0, 0, 0, 0, 0}
	if err != nil {
		reply[1] = socksRefused
	}
	if _, writeErr := caller.Write(reply); err != nil || writeErr != nil {
		return
	}
	defer callee.Close() //nolint:errcheck // nothing is left to write
	relay(caller, callee)
}

// relay copies in both directions until one of them ends.
func relay(caller, callee net.Conn) {
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{caller, callee}, {callee, caller}} {
		both.Go(func() {
			_, _ = io.Copy(pair[0], pair[1])
			_ = caller.Close()
			_ = callee.Close()
		})
	}
	both.Wait()
}

// readRequest reads the greeting of a client and its request to connect to a host name.
func readRequest(caller io.ReadWriter) (host string, port uint16, err error) {
	greeting := make([]byte, 2)
	if _, err := io.ReadFull(caller, greeting); err != nil {
		return "", 0, fmt.Errorf("reading the greeting: %w", err)
	}
	if _, err := io.CopyN(io.Discard, caller, int64(greeting[1])); err != nil {
		return "", 0, fmt.Errorf("reading the methods: %w", err)
	}
	if _, err := caller.Write([]byte{socksVersion, 0}); err != nil {
		return "", 0, fmt.Errorf("answering the greeting: %w", err)
	}
	head := make([]byte, 5)
	if _, err := io.ReadFull(caller, head); err != nil {
		return "", 0, fmt.Errorf("reading the request: %w", err)
	}
	if head[0] != socksVersion || head[1] != socksConnect || head[3] != socksDomainName {
		return "", 0, errors.New("the request is not to connect to a host name")
	}
	rest := make([]byte, int(head[4])+2)
	if _, err := io.ReadFull(caller, rest); err != nil {
		return "", 0, fmt.Errorf("reading the host: %w", err)
	}
	return string(rest[:head[4]]), binary.BigEndian.Uint16(rest[head[4]:]), nil
}

// dial connects to a ready pod of the Service NAME.NAMESPACE.svc.
func (s *services) dial(ctx context.Context, host string, port uint16) (net.Conn, error) {
	labels := strings.Split(host, ".")
	if len(labels) < 3 || labels[2] != "svc" {
		return nil, fmt.Errorf("%s is no Service", host)
	}
	slices := &discoveryv1.EndpointSliceList{}
	err := s.client.List(ctx, slices, client.InNamespace(labels[1]), client.MatchingLabels{discoveryv1.LabelServiceName: labels[0]})
	if err != nil {
		return nil, fmt.Errorf("reading the endpoints of %s: %w", host, err)
	}
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			if ready := endpoint.Conditions.Ready; ready != nil && *ready {
				var dialer net.Dialer
				return dialer.DialContext(ctx, "tcp", net.JoinHostPort(endpoint.Addresses[0], strconv.Itoa(int(port))))
			}
		}
	}
	return nil, fmt.Errorf("no pod of %s is ready", host)
}
