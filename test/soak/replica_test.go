package soak

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/process"
)

// replica is one of the registries. It uses the same ports after a restart.
type replica struct {
	name, source string
	// address serves gRPC. The others serve HTTP.
	address, metrics, profiles string
	running                    *process.Process
	conn                       *grpc.ClientConn
}

func newReplica(t *testing.T, name, source string) *replica {
	t.Helper()
	r := &replica{name: name, source: source, address: ports.Address(t), metrics: ports.Address(t), profiles: ports.Address(t)}
	var err error
	r.conn, err = grpc.NewClient("passthrough:///"+r.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.conn.Close() })
	if err := r.start(t.Context(), filepath.Join(t.ArtifactDir(), name+".log")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.running.Kill(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// start runs the program and waits until it serves.
func (r *replica) start(ctx context.Context, log string) error {
	host, port, err := net.SplitHostPort(r.address)
	if err != nil {
		return err
	}
	r.running, err = process.Start(ctx, process.Spec{
		Name: r.name, Path: filepath.Join(bin, "registry"), Log: log,
		Args: []string{
			"serve", r.source, "--host", host, "--port", port, "--metrics-address", r.metrics, "--pprof-addr", r.profiles,
			"--termination-log", "", "--reload-interval", "50ms",
		},
	})
	if err != nil {
		return err
	}
	err = await(ctx, r.name+" to serve", func(ctx context.Context) bool {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		answer, err := healthpb.NewHealthClient(r.conn).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true))
		return err == nil && answer.GetStatus() == healthpb.HealthCheckResponse_SERVING || r.running.Unexpected() != nil
	})
	return errors.Join(r.running.Unexpected(), err)
}

// restart stops the program as the kubelet does, and starts it again.
func (r *replica) restart(ctx context.Context) error {
	if err := r.running.Stop(30 * time.Second); err != nil {
		return err
	}
	return r.start(ctx, r.running.Log())
}

// generation returns the generation of the served content.
func (r *replica) generation(ctx context.Context) (int, error) {
	got, err := api.NewRegistryClient(r.conn).GetBundle(ctx, request(0))
	if err != nil {
		return 0, err
	}
	return generationOf(got)
}

// usage holds the resources of a process.
type usage struct {
	goroutines int
	files      int
	// mappings is the number of mapped files. Memory is not compared, because it depends on the runtime.
	mappings int
}

func (u usage) String() string {
	return fmt.Sprintf("%d goroutines, %d files, %d mapped files", u.goroutines, u.files, u.mappings)
}

// exceeds reports whether resources are left. The connections of the check itself may vary.
func (u usage) exceeds(before usage) bool {
	return u.goroutines > before.goroutines+2 || u.files > before.files+1 || u.mappings > before.mappings
}

// usage returns the resources of the process after a garbage collection, which also ends mappings.
func (r *replica) usage(t *testing.T) usage {
	t.Helper()
	for range 2 {
		get(t, "http://"+r.profiles+"/debug/pprof/heap?gc=1")
	}
	u := usage{goroutines: -1}
	for line := range strings.Lines(get(t, "http://"+r.metrics+"/metrics")) {
		if text, ok := strings.CutPrefix(line, "go_goroutines "); ok {
			number, err := strconv.Atoi(strings.TrimSpace(text))
			if err != nil {
				t.Fatal(err)
			}
			u.goroutines = number
		}
	}
	if u.goroutines < 0 {
		t.Fatal("no metric go_goroutines")
	}
	proc := fmt.Sprintf("/proc/%d", r.running.PID())
	files, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		t.Fatal(err)
	}
	u.files = len(files)
	maps, err := os.Open(filepath.Join(proc, "maps"))
	if err != nil {
		t.Fatal(err)
	}
	defer maps.Close()
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) > 5 && strings.HasPrefix(fields[5], "/") {
			u.mappings++
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return u
}

func get(t *testing.T, url string) string {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// wait fails the test unless the condition becomes true within a minute.
func wait(t *testing.T, what string, holds func(context.Context) bool) {
	t.Helper()
	if err := await(t.Context(), what, holds); err != nil {
		t.Fatal(err)
	}
}

var errInVain = errors.New("waited in vain")

// await waits until the condition holds, a minute at most.
func await(ctx context.Context, what string, holds func(context.Context) bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds(ctx) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%w for %s", errInVain, what)
		}
	}
	return nil
}
