package truncation

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/programs"
)

const (
	timeout = 30 * time.Second
	// large is a number of bundles whose index is mapped. small is a number of bundles whose index is copied.
	large, small = 200, 2
	// property is the smallest size of each bundle in bytes.
	property = 50 << 10
)

// registry is the program, built once.
var registry string

func TestMain(m *testing.M) {
	os.Exit(programs.Main(func(dir string) int {
		registry = filepath.Join(dir, "registry")
		return m.Run()
	}, "./cmd/registry"))
}

// writeCatalog writes a catalog with a number of bundles, and returns its folder.
func writeCatalog(t *testing.T, count int) string {
	t.Helper()
	var text, entries strings.Builder
	for i := range count {
		if i > 0 {
			fmt.Fprintf(&entries, `,{"name":"b%d","replaces":"b%d"}`, i, i-1)
		} else {
			entries.WriteString(`{"name":"b0"}`)
		}
		fmt.Fprintf(&text, `{"schema":"olm.bundle","package":"p","name":"b%d","image":"i:%d","properties":[
 {"type":"olm.package","value":{"packageName":"p","version":"1.0.%d"}},{"type":"big","value":"%d%s"}]}`+"\n",
			i, i, i, i, strings.Repeat("x", property))
	}
	fmt.Fprintf(&text, `{"schema":"olm.package","name":"p","defaultChannel":"a"}
{"schema":"olm.channel","package":"p","name":"a","entries":[%s]}`+"\n", entries.String())
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "catalog.json"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// build builds the index file of a catalog.
func build(t *testing.T, catalog string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "catalog.index")
	if out, err := exec.CommandContext(t.Context(), registry, "build", catalog, "-o", file).CombinedOutput(); err != nil {
		t.Fatalf("building the index: %v\n%s", err, out)
	}
	return file
}

// served is a running registry with a client.
type served struct {
	process *process.Process
	client  api.RegistryClient
	health  grpc.ServerStreamingClient[healthpb.HealthCheckResponse]
}

// serve starts a registry, waits until it serves, and requests each bundle once.
func serve(t *testing.T, source string, bundles int, args ...string) *served {
	t.Helper()
	address := ports.Address(t)
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	s := &served{process: programs.Start(t, "registry", registry, append([]string{
		"serve", source, "--host", host, "--port", port, "--metrics-address", "0", "--pprof-addr", "0", "--termination-log", "",
	}, args...)...)}
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	s.client = api.NewRegistryClient(conn)
	if s.health, err = healthpb.NewHealthClient(conn).Watch(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true)); err != nil {
		t.Fatal(err)
	}
	s.waitFor(t, healthpb.HealthCheckResponse_SERVING)
	for i := range bundles {
		if err := s.ask(ctx, i); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// waitFor reads the health of the registry until it has a status.
func (s *served) waitFor(t *testing.T, want healthpb.HealthCheckResponse_ServingStatus) {
	t.Helper()
	for {
		answer, err := s.health.Recv()
		if err != nil {
			t.Fatalf("waiting for %s: %v\n%s", want, err, process.Tail(s.process.Log()))
		}
		if answer.GetStatus() == want {
			return
		}
	}
}

var errOtherBundle = errors.New("another bundle")

// ask requests a bundle and checks that it is the right one.
func (s *served) ask(ctx context.Context, i int) error {
	got, err := s.client.GetBundle(ctx, &api.GetBundleRequest{PkgName: "p", ChannelName: "a", CsvName: fmt.Sprintf("b%d", i)})
	if err != nil {
		return err
	}
	want := fmt.Sprintf("%q", fmt.Sprintf("%d%s", i, strings.Repeat("x", property)))
	for _, p := range got.GetProperties() {
		if p.GetType() == "big" && p.GetValue() == want {
			return nil
		}
	}
	return fmt.Errorf("%w: asked for b%d, got %s", errOtherBundle, i, got.GetCsvName())
}

// askAll requests all bundles at once. A call may fail only with an allowed code.
func (s *served) askAll(t *testing.T, count int, allowed ...codes.Code) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	for i := range count {
		group.Go(func() error {
			err := s.ask(ctx, i)
			for _, code := range allowed {
				if status.Code(err) == code {
					return nil
				}
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Errorf("asking for a bundle: %v", err)
	}
}

// result waits until the process has ended, and returns its exit code.
func (s *served) result(t *testing.T) int {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- s.process.Result() }()
	select {
	case err := <-done:
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return exit.ExitCode()
	case <-time.After(timeout):
		t.Fatalf("the registry does not end:\n%s", process.Tail(s.process.Log()))
		return -1
	}
}

// checkOrderlyEnd checks that the process reported why it ended and did not crash.
func (s *served) checkOrderlyEnd(t *testing.T, why string) {
	t.Helper()
	code := s.result(t)
	log, err := os.ReadFile(s.process.Log())
	if err != nil {
		t.Fatal(err)
	}
	if code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	for _, text := range []string{"SIGBUS", "unexpected fault address", "panic:", "goroutine "} {
		if strings.Contains(string(log), text) {
			t.Errorf("the log has %q", text)
		}
	}
	if !strings.Contains(string(log), why) {
		t.Errorf("the log does not have %q", why)
	}
	if t.Failed() {
		t.Logf("log:\n%s", process.Tail(s.process.Log()))
	}
}

// TestTruncatedIndexEndsOrderly truncates the file that a registry has mapped. Clients then request
// what is missing.
func TestTruncatedIndexEndsOrderly(t *testing.T) {
	catalog := writeCatalog(t, large)
	for name, size := range map[string]int64{"Half": property * large / 2, "Header": 512, "Nothing": 0} {
		t.Run(name, func(t *testing.T) {
			file := build(t, catalog)
			s := serve(t, file, large)
			if err := os.Truncate(file, size); err != nil {
				t.Fatal(err)
			}
			s.askAll(t, large, codes.Unavailable, codes.DataLoss)
			s.checkOrderlyEnd(t, "was truncated")
		})
	}
	t.Run("Idle", func(t *testing.T) {
		file := build(t, catalog)
		s := serve(t, file, large)
		if err := os.Truncate(file, 0); err != nil {
			t.Fatal(err)
		}
		s.waitFor(t, healthpb.HealthCheckResponse_NOT_SERVING)
		s.checkOrderlyEnd(t, "was truncated")
	})
	t.Run("Cache", func(t *testing.T) {
		cache := t.TempDir()
		s := serve(t, catalog, large, "--cache-dir", cache)
		if err := os.Truncate(filepath.Join(cache, "chandlery.index"), 0); err != nil {
			t.Fatal(err)
		}
		s.askAll(t, large, codes.Unavailable, codes.DataLoss)
		s.checkOrderlyEnd(t, "was truncated")
	})
}

// TestOverwrittenIndexEndsOrderly writes the served index again in place. Its length does not change.
func TestOverwrittenIndexEndsOrderly(t *testing.T) {
	file := build(t, writeCatalog(t, large))
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, file, large)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	s.checkOrderlyEnd(t, "while it was served")
}

// TestReplacedIndexIsServed renames another index to the name of the served one and truncates the
// old one. When the new one is served, it truncates that, too.
func TestReplacedIndexIsServed(t *testing.T) {
	catalog := writeCatalog(t, large)
	file, next := build(t, catalog), build(t, writeCatalog(t, large+1))
	s := serve(t, file, large, "--reload-interval", "100ms")
	old := file + ".old"
	if err := errors.Join(os.Rename(file, old), os.Rename(next, file)); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(timeout)
	for s.ask(t.Context(), large) != nil {
		if time.Now().After(deadline) {
			t.Fatal("the new index is not served")
		}
	}
	if err := os.Truncate(old, 0); err != nil {
		t.Fatal(err)
	}
	s.askAll(t, large+1)
	if err := os.Truncate(file, 0); err != nil {
		t.Fatal(err)
	}
	s.askAll(t, large+1, codes.Unavailable, codes.DataLoss)
	s.checkOrderlyEnd(t, "was truncated")
}

// TestTruncatedSmallIndexIsServed truncates a file that is small enough for the registry to copy.
func TestTruncatedSmallIndexIsServed(t *testing.T) {
	file := build(t, writeCatalog(t, small))
	s := serve(t, file, small, "--reload-interval", "0")
	if err := os.Truncate(file, 0); err != nil {
		t.Fatal(err)
	}
	s.askAll(t, small)
	if err := s.process.Stop(timeout); err != nil {
		t.Error(err)
	}
}
