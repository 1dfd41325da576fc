package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/chandlery/chandlery/proto/api"
	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
	"github.com/chandlery/chandlery/server/source"
)

// TestMetricsConnections has one client open as many connections to the port of metrics and probes as it can get.
func TestMetricsConnections(t *testing.T) {
	dir := t.TempDir()
	writeCatalog(t, dir, catalogOf("p"))
	f, _ := startSocket(t, Config{Source: source.Dir{Path: dir}, MetricsAddress: "127.0.0.1:0"})
	f.waitLoaded(t)
	address := f.MetricsAddress().String()
	const opened, most = 4 * maxMetricsConnections, maxMetricsConnections + maxMetricsConnections/16
	var ended atomic.Int64
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	for range opened {
		conn, err := dialer.DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		// The server may have closed it already.
		_, _ = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
		go func() {
			_, _ = io.Copy(io.Discard, conn)
			ended.Add(1)
		}()
	}
	wait(t, "the connections beyond the limit to be closed", func() bool { return ended.Load() >= opened-most })
	if got := opened - ended.Load(); got < 1 {
		t.Error("all connections are closed")
	}
	for _, from := range []string{"127.0.0.2", "127.0.0.3"} {
		for _, path := range []string{"/readyz", "/metrics"} {
			if got := getFrom(t, from, "http://"+address+path); got != http.StatusOK {
				t.Errorf("%s from %s: got %d", path, from, got)
			}
		}
	}
}

// getFrom makes a request on a connection of its own, as the kubelet does.
func getFrom(t *testing.T, from, url string) int {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		return (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext(ctx, "tcp", address)
	}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Do(request)
	if err != nil {
		t.Fatalf("%s from %s: %v", url, from, err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

// TestWatchesDoNotLockOut has one client hold as many connections as it can get, with watches or
// with calls that never end. Others probe and make calls.
func TestWatchesDoNotLockOut(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		call   func(c *rawClient)
	}{
		"Watch": {"a watch is no work", func(c *rawClient) {
			c.call(healthpb.Health_Watch_FullMethodName, &healthpb.HealthCheckRequest{})
		}},
		"WatchContent": {"nor is the one of our own service", func(c *rawClient) {
			c.call(registryv1.RegistryService_Watch_FullMethodName, &registryv1.WatchRequest{})
		}},
		"Request": {"nor is a request that is never sent", func(c *rawClient) {
			c.call(api.Registry_ListPackages_FullMethodName, nil)
		}},
		"Unread": {"answers that are not taken make a connection busy, and many of those are too much", func(c *rawClient) {
			c.call(api.Registry_ListPackages_FullMethodName, &api.ListPackageRequest{})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			limits := DefaultLimits()
			limits.Connections = 40
			f, address := startSmall(t, limits, "")
			f.waitLoaded(t)
			dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
			for range 2 * limits.Connections {
				conn, err := dialer.DialContext(t.Context(), "tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { conn.Close() })
				// The server may have closed it already.
				_, _ = conn.Write(greeting(t, tc.call))
			}
			wait(t, "the port to be full", func() bool { return value(t, f.metrics.connections) >= float64(limits.Connections) })
			for range 10 {
				for _, from := range []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"} {
					probeGRPC(t, from, address)
				}
			}
			// Ten clients with three connections each take the connections beyond a quarter.
			for client := range 10 {
				for range 3 {
					served(t, dialFrom(t, fmt.Sprintf("127.0.1.%d", client), address))
				}
			}
			// gRPC drops a connection some time after the listener has closed it.
			wait(t, tc.reason+": the client to have a quarter of the connections while others need them", func() bool {
				return f.listener.connectionsOf("127.0.0.2") <= limits.Connections/4
			})
		})
	}
}

// greeting returns the bytes of a client that makes a call and takes no answer.
func greeting(t *testing.T, call func(c *rawClient)) []byte {
	t.Helper()
	var out bytes.Buffer
	out.WriteString(http2.ClientPreface)
	c := &rawClient{Framer: http2.NewFramer(&out, nil), t: t, next: 1}
	c.must(c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}), c.WriteSettingsAck())
	call(c)
	return out.Bytes()
}

// connectionsOf returns how many connections a host has.
func (s *connections) connectionsOf(host string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for c := range s.open {
		if c.Host() == host {
			n++
		}
	}
	return n
}

// probeGRPC requests health as the kubelet does, on a connection of its own.
func probeGRPC(t *testing.T, from, address string) {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}); err != nil {
		t.Fatalf("a probe from %s fails: %v", from, err)
	}
}

// TestWatchIsNoWork reads the request of a watch and the request of another call.
func TestWatchIsNoWork(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		method string
		busy   bool
	}{
		"Watch": {"a watch only waits", watchMethod, false},
		"Call":  {"a call works on its request", "ListPackages", true},
	} {
		t.Run(name, func(t *testing.T) {
			c := accepted(t, DefaultLimits())
			m := newCallMetrics(family{promauto.With(prometheus.NewRegistry())}).method("x", tc.method)
			s := &serverStream{ServerStream: received{}, method: m, conn: c}
			if err := s.RecvMsg(nil); err != nil {
				t.Fatal(err)
			}
			if s.busy != tc.busy {
				t.Errorf("%s: busy is %v", tc.reason, s.busy)
			}
			s.idle()
			if s.busy {
				t.Errorf("%s: it is busy when it has ended", tc.reason)
			}
		})
	}
}

// received is a stream on which a request has come.
type received struct{ grpc.ServerStream }

func (received) RecvMsg(any) error { return nil }
