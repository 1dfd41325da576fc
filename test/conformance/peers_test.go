package conformance

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/test/oracle"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/process"
)

// buildOPM returns the path of the peer's program.
func buildOPM(t *testing.T) string {
	t.Helper()
	program, err := oracle.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// peer is one of the two servers.
type peer struct {
	api.RegistryClient

	conn *grpc.ClientConn
}

// startPeers serves a directory with both servers and waits until both are ready.
func startPeers(t *testing.T, dir string) (ours, theirs peer) {
	t.Helper()
	work := t.TempDir()
	theirPort, ourPort := freePort(t), freePort(t)
	opm, err := oracle.Serve(t.Context(), buildOPM(t), dir, theirPort, work)
	if err != nil {
		t.Fatal(err)
	}
	registry := startOurs(t, dir, ourPort, work)
	stopBoth(t, registry, opm)
	return connect(t, registry, ourPort), connect(t, opm, theirPort)
}

// startOurs serves a directory with the registry.
func startOurs(t *testing.T, dir, port, work string, more ...string) *process.Process {
	t.Helper()
	registry, err := process.Start(t.Context(), process.Spec{
		Name: "registry serve", Path: filepath.Join(bin, "registry"), Log: filepath.Join(work, "registry.log"),
		Args: append([]string{"serve", dir, "--host=127.0.0.1", "--port", port, "--metrics-address=0", "--termination-log="}, more...),
	})
	if err != nil {
		t.Fatal(err)
	}
	return registry
}

// stopBoth stops both servers when the test ends. Neither may have ended before.
func stopBoth(t *testing.T, registry, opm *process.Process) {
	t.Helper()
	t.Cleanup(func() {
		for _, p := range []*process.Process{registry, opm} {
			if err := p.Unexpected(); err != nil {
				t.Error(err)
			}
			if err := p.Stop(30 * time.Second); err != nil {
				t.Error(err)
			}
		}
	})
}

func freePort(t *testing.T) string {
	t.Helper()
	_, port, err := net.SplitHostPort(ports.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// connect waits until a process serves and returns a connection.
func connect(t *testing.T, p *process.Process, port string) peer {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///127.0.0.1:"+port, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	client := healthpb.NewHealthClient(conn)
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		answer, err := client.Check(ctx, &healthpb.HealthCheckRequest{Service: "Registry"})
		if err == nil && answer.GetStatus() == healthpb.HealthCheckResponse_SERVING {
			return peer{RegistryClient: api.NewRegistryClient(conn), conn: conn}
		}
		select {
		case <-ctx.Done():
			log, _ := os.ReadFile(p.Log())
			t.Fatalf("%s does not serve: %v\n%s", p.Name(), err, bytes.TrimSpace(log))
		case <-p.Done():
			t.Fatal(p.Unexpected())
		case <-ticker.C:
		}
	}
}
