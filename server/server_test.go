package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/index"
	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/server/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const catalogText = `{"schema":"olm.package","name":"NAME","defaultChannel":"a"}
{"schema":"olm.channel","package":"NAME","name":"a","entries":[{"name":"b"}]}
{"schema":"olm.bundle","package":"NAME","name":"b","image":"i","properties":[
 {"type":"olm.package","value":{"packageName":"NAME","version":"1.0.0"}}]}`

func catalogOf(name string) string { return strings.ReplaceAll(catalogText, "NAME", name) }

// logBuffer is a log that is safe for concurrent reads and writes.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// fixture is a running server with a connected client.
type fixture struct {
	*Server
	api.RegistryClient

	health healthpb.HealthClient
	logs   *logBuffer
	// stop ends the server. done receives the error of Run.
	stop context.CancelFunc
	done chan error
}

func start(t *testing.T, config Config) *fixture {
	t.Helper()
	f := &fixture{logs: &logBuffer{}, done: make(chan error, 1)}
	listener := bufconn.Listen(1 << 16)
	config.Listener = listener
	config.Logger = slog.New(slog.NewTextHandler(f.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	if f.Server, err = New(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, f.stop = context.WithCancel(context.WithoutCancel(t.Context()))
	go func() { f.done <- f.Run(ctx) }()
	conn, err := grpc.NewClient("passthrough:///bufconn", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	f.RegistryClient, f.health = api.NewRegistryClient(conn), healthpb.NewHealthClient(conn)
	t.Cleanup(func() {
		f.stop()
		// A test that has taken the error has closed the channel.
		<-f.done
		conn.Close()
	})
	return f
}

// wait fails the test unless the condition becomes true before a deadline.
func wait(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			tb.Fatalf("waited in vain for %s", what)
		}
	}
}

func (f *fixture) waitServing(t *testing.T) {
	t.Helper()
	wait(t, "SERVING", func() bool {
		answer, err := f.health.Check(t.Context(), &healthpb.HealthCheckRequest{Service: "api.Registry"})
		return err == nil && answer.GetStatus() == healthpb.HealthCheckResponse_SERVING
	})
}

func (f *fixture) packages(t *testing.T) []string {
	t.Helper()
	stream, err := f.ListPackages(t.Context(), &api.ListPackageRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for {
		name, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name.GetName())
	}
}

// writeCatalog creates the file in one step. A machine under load may take longer than the reload
// interval between creating and filling it.
func writeCatalog(tb testing.TB, dir, text string) {
	tb.Helper()
	temporary := filepath.Join(tb.TempDir(), "catalog.json")
	if err := os.WriteFile(temporary, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	if err := os.Rename(temporary, filepath.Join(dir, "catalog.json")); err != nil {
		tb.Fatal(err)
	}
}

// fakeSource is a source whose loads the test controls.
type fakeSource struct {
	load func(context.Context) (*index.Index, error)
}

func (s fakeSource) Load(ctx context.Context) (*index.Index, error) { return s.load(ctx) }

func (s fakeSource) Fingerprint() (string, error) { return "", nil }

func TestUnavailableUntilLoaded(t *testing.T) {
	release := make(chan struct{})
	f := start(t, Config{Source: fakeSource{func(ctx context.Context) (*index.Index, error) {
		<-release
		return index.Build(ctx, &bundles.Catalog{})
	}}})
	stream, err := f.ListBundles(t.Context(), &api.ListBundlesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("ListBundles before loading: %v", err)
	}
	if _, err := f.GetPackage(t.Context(), &api.GetPackageRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("GetPackage before loading: %v", err)
	}
	for _, name := range []string{"", "Registry", "api.Registry"} {
		answer, err := f.health.Check(t.Context(), &healthpb.HealthCheckRequest{Service: name})
		if err != nil || answer.GetStatus() != healthpb.HealthCheckResponse_NOT_SERVING {
			t.Errorf("health of %q before loading: %v, %v", name, answer, err)
		}
	}
	close(release)
	f.waitServing(t)
	if got := f.packages(t); len(got) != 0 {
		t.Errorf("got packages %v", got)
	}
}

func TestAnswers(t *testing.T) {
	dir := t.TempDir()
	writeCatalog(t, dir, catalogOf("p")+catalogOf("o"))
	f := start(t, Config{Source: source.Dir{Path: dir}, MetricsAddress: "127.0.0.1:0"})
	f.waitServing(t)
	if got := f.packages(t); len(got) != 2 || got[0] != "o" || got[1] != "p" {
		t.Errorf("got packages %v", got)
	}
	request := &api.GetBundleRequest{PkgName: "p", ChannelName: "a", CsvName: "b"}
	for name, options := range map[string][]grpc.CallOption{"plain": nil, "gzip": {grpc.UseCompressor(gzip.Name)}} {
		got, err := f.GetBundle(t.Context(), request, options...)
		if err != nil || got.GetCsvName() != "b" || got.GetVersion() != "1.0.0" {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
	stream, err := f.ListPackages(t.Context(), &api.ListPackageRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if header, err := stream.Header(); err != nil || len(header.Get(api.ContentDigestHeader)) != 1 {
		t.Errorf("the header of a stream is %v, %v; want the digest of the content", header, err)
	}
	request.CsvName = "c"
	_, err = f.GetBundle(t.Context(), request)
	if got := status.Convert(err); got.Code() != codes.NotFound || got.Message() != `package "p", channel "a", bundle "c" not found` {
		t.Errorf("got %v", got)
	}
	if logs := f.logs.String(); !strings.Contains(logs, "method=GetBundle code=NotFound duration=") {
		t.Errorf("the call was not logged:\n%s", logs)
	}
	metrics := get(t, "http://"+f.MetricsAddress().String()+"/metrics")
	for _, want := range []string{
		"chandlery_registry_catalog_packages 2", "chandlery_registry_build_info{", "chandlery_registry_catalog_problems 0",
		`chandlery_registry_catalog_loads_total{result="success"} 1`,
		`chandlery_registry_requests_total{code="NotFound",method="GetBundle",service="api.Registry"} 1`,
		`chandlery_registry_requests_total{code="OK",method="GetBundle",service="api.Registry"} 2`,
		`chandlery_registry_request_duration_seconds_count{method="GetBundle",service="api.Registry"} 3`,
		`chandlery_registry_requests_in_flight{method="GetBundle",service="api.Registry"} 0`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if got := get(t, "http://"+f.MetricsAddress().String()+path); got != "ok\n" {
			t.Errorf("%s: %q", path, got)
		}
	}
}

// value returns the value of a counter or a gauge.
func value(t *testing.T, c prometheus.Metric) float64 {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue() + m.GetGauge().GetValue()
}

func get(t *testing.T, url string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
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

func TestReload(t *testing.T) {
	dir := t.TempDir()
	writeCatalog(t, dir, catalogOf("first"))
	f := start(t, Config{Source: source.Dir{Path: dir}, ReloadInterval: 10 * time.Millisecond})
	f.waitServing(t)
	serves := func(name string) func() bool {
		return func() bool { got := f.packages(t); return len(got) == 1 && got[0] == name }
	}
	writeCatalog(t, dir, catalogOf("second")+"\n")
	wait(t, "the new content", serves("second"))
	writeCatalog(t, dir, catalogOf("third")+catalogOf("third"))
	const kept = "Keeping the old content"
	wait(t, "the problem to be logged", func() bool { return strings.Contains(f.logs.String(), kept) })
	if !serves("second")() {
		t.Error("the old content is not served any more")
	}
	if logs := f.logs.String(); !strings.Contains(logs, "duplicate package") {
		t.Errorf("the problem is not named:\n%s", logs)
	}
	writeCatalog(t, dir, catalogOf("fourth"))
	wait(t, "the repaired content", serves("fourth"))
	if got := strings.Count(f.logs.String(), kept); got != 1 {
		t.Errorf("the failure was logged %d times", got)
	}
}

func TestFirstLoadFails(t *testing.T) {
	f := start(t, Config{Source: source.Dir{Path: t.TempDir()}, MetricsAddress: "127.0.0.1:0"})
	err := <-f.done
	close(f.done)
	if problems := bundles.AsProblems(err); len(problems) != 1 || problems[0].Remedy == "" {
		t.Errorf("got %v", err)
	}
}

func TestStopUnderLoad(t *testing.T) {
	dir := t.TempDir()
	big := catalogOf("p")
	big = strings.ReplaceAll(big, `"image":"i"`, `"image":"i","relatedImages":[]`)
	big = strings.ReplaceAll(big, `1.0.0"}}]`, `1.0.0"}},{"type":"big","value":"`+strings.Repeat("x", 1<<20)+`"}]`)
	writeCatalog(t, dir, big)
	f := start(t, Config{Source: source.Dir{Path: dir}, ShutdownTimeout: 100 * time.Millisecond})
	f.waitServing(t)
	watch, err := f.health.Watch(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := watch.Recv(); err != nil || answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Fatalf("watch: %v, %v", answer, err)
	}
	// Open a stream that is larger than the window and that no client reads.
	if _, err := f.ListBundles(t.Context(), &api.ListBundlesRequest{}); err != nil {
		t.Fatal(err)
	}
	f.stop()
	if err := <-f.done; err != nil {
		t.Errorf("Run: %v", err)
	}
	close(f.done)
	if answer, err := watch.Recv(); err != nil || answer.GetStatus() != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("watch after the stop: %v, %v", answer, err)
	}
}

func TestStopWithWatch(t *testing.T) {
	dir := t.TempDir()
	writeCatalog(t, dir, catalogOf("p"))
	f := start(t, Config{Source: source.Dir{Path: dir}, ShutdownTimeout: time.Hour})
	f.waitServing(t)
	watch, err := f.health.Watch(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Recv(); err != nil {
		t.Fatal(err)
	}
	f.stop()
	select {
	case err := <-f.done:
		close(f.done)
		if err != nil {
			t.Errorf("Run: %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("a watch keeps the server from stopping")
	}
}

func TestRecovery(t *testing.T) {
	f := start(t, Config{Source: fakeSource{func(ctx context.Context) (*index.Index, error) {
		return index.Build(ctx, &bundles.Catalog{})
	}}})
	f.waitServing(t)
	around := newCalls(slog.New(slog.DiscardHandler), f.metrics, newAccessLog(f.config.Logger, 0), f.files)
	around.registerMethods(f.grpc.GetServiceInfo())
	_, err := around.unary(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: api.Registry_GetPackage_FullMethodName},
		func(context.Context, any) (any, error) {
			var nothing *index.Index
			return nothing.Stats(), nil
		})
	if status.Code(err) != codes.Internal || !strings.Contains(f.logs.String(), "code=Internal") {
		t.Errorf("got %v, log:\n%s", err, f.logs)
	}
	if got := value(t, f.metrics.panics); got != 1 {
		t.Errorf("%v panics were counted", got)
	}
}

func TestConfig(t *testing.T) {
	logger := slog.New(slog.DiscardHandler)
	cases := map[string]struct {
		config Config
		want   error
	}{
		"NoSource": {Config{Logger: logger}, errNoSource},
		"NoLogger": {Config{Source: source.Dir{}}, errNoLogger},
		"Negative": {Config{Source: source.Dir{}, Logger: logger, ReloadInterval: -1}, errBadTimeout},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := New(t.Context(), tc.config); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
	var listen net.ListenConfig
	taken, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, config := range []Config{
		{Source: source.Dir{}, Logger: logger, Address: taken.Addr().String()},
		{Source: source.Dir{}, Logger: logger, Address: "127.0.0.1:0", MetricsAddress: taken.Addr().String()},
	} {
		if _, err := New(t.Context(), config); err == nil || !strings.Contains(err.Error(), "port") {
			t.Errorf("a taken port: %v", err)
		}
	}
}
