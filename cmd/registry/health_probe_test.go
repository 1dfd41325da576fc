package main

import (
	"bytes"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// TestProbe asks servers as OLM's probes do.
func TestProbe(t *testing.T) {
	t.Parallel()
	start := func(register func(*grpc.Server)) string {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		register(server)
		served := make(chan error, 1)
		go func() { served <- server.Serve(listener) }()
		t.Cleanup(func() {
			server.Stop()
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
		return listener.Addr().String()
	}
	checks := health.NewServer()
	checks.SetServingStatus("reading", healthpb.HealthCheckResponse_NOT_SERVING)
	healthy := start(func(s *grpc.Server) { healthpb.RegisterHealthServer(s, checks) })
	other := start(func(*grpc.Server) {})
	_, port, err := net.SplitHostPort(healthy)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"as OLM does":        {args: []string{"-addr=:" + port}, want: "status: SERVING\n"},
		"a service":          {args: []string{"-addr", healthy, "-service=reading"}, code: probeNotServing, want: "status: NOT_SERVING\n"},
		"an unknown service": {args: []string{"-addr", healthy, "-service=x"}, code: probeCallFailed, want: "code = NotFound"},
		"no health service":  {args: []string{"--addr", other}, code: probeCallFailed, want: "code = Unimplemented"},
		"no server":          {args: []string{"-addr=127.0.0.1:1", "-connect-timeout=50ms"}, code: probeNotConnected, want: "grpc_health_probe: no connection to 127.0.0.1:1 within 50ms\n"},
		"no address":         {code: probeInvalidFlags, want: "name the server with -addr=HOST:PORT"},
		"an unknown flag":    {args: []string{"-spiffe"}, code: probeInvalidFlags, want: "flag provided but not defined: -spiffe"},
		"help":               {args: []string{"-h"}, want: "-rpc-timeout"},
	} {
		var out bytes.Buffer
		if code := probe(t.Context(), c.args, &out); code != c.code || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: exit code %d and %q, want %d and %q", name, code, out.String(), c.code, c.want)
		}
	}
}
