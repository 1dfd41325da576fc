package server

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/server/source"
)

// collector receives traces over HTTP.
type collector struct {
	mu    sync.Mutex
	spans map[string]string
	about string
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var request coltracepb.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range request.GetResourceSpans() {
		c.about = resource.GetResource().String()
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				c.spans[span.GetName()] = string(span.GetTraceId())
			}
		}
	}
}

func TestTracing(t *testing.T) {
	received := &collector{spans: map[string]string{}}
	web := httptest.NewServer(received)
	defer web.Close()
	t.Setenv(envEndpoint, web.URL)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	tracing, err := StartTracing(t.Context(), slog.New(slog.DiscardHandler), "v1")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	writeCatalog(t, dir, catalogOf("p"))
	f := start(t, Config{Source: source.Dir{Path: dir}, Tracing: tracing})
	f.waitServing(t)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent", "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01")
	if _, err := f.GetPackage(ctx, &api.GetPackageRequest{Name: "p"}); err != nil {
		t.Fatal(err)
	}
	f.stop()
	if err := <-f.done; err != nil {
		t.Error(err)
	}
	close(f.done)
	if err := tracing.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	received.mu.Lock()
	defer received.mu.Unlock()
	if got := received.spans["api.Registry/GetPackage"]; got != "\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef" {
		t.Errorf("the call's trace is %x; got spans %q", got, received.spans)
	}
	for name := range received.spans {
		if strings.Contains(name, "health") {
			t.Errorf("a question for health is traced: %s", name)
		}
	}
	for _, want := range []string{"registry", "v1", "deployment.environment.name"} {
		if !strings.Contains(received.about, want) {
			t.Errorf("the program describes itself as %s, without %s", received.about, want)
		}
	}
}

func TestTracingWanted(t *testing.T) {
	cases := map[string]struct {
		reason string
		env    map[string]string
		wanted bool
		fails  string
	}{
		"Nothing":       {reason: "without a word there are no traces"},
		"Endpoint":      {reason: "an endpoint is enough", env: map[string]string{envEndpoint: "http://127.0.0.1:1"}, wanted: true},
		"GRPC":          {reason: "gRPC is a protocol", env: map[string]string{envTracesEndpoint: "http://127.0.0.1:1", envProtocol: "grpc"}, wanted: true},
		"Exporter":      {reason: "there is a standard endpoint", env: map[string]string{envExporter: "otlp"}, wanted: true},
		"None":          {reason: "none is none", env: map[string]string{envExporter: "none", envEndpoint: "http://127.0.0.1:1"}},
		"Disabled":      {reason: "the SDK can be switched off", env: map[string]string{envDisabled: "true", envEndpoint: "http://127.0.0.1:1"}},
		"OtherExporter": {reason: "unknown exporters are named", env: map[string]string{envExporter: "zipkin"}, fails: `"zipkin"`},
		"OtherProtocol": {reason: "so are unknown protocols", env: map[string]string{envExporter: "otlp", envProtocol: "smoke"}, fails: `"smoke"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, name := range []string{envDisabled, envExporter, envEndpoint, envTracesEndpoint, envProtocol, envTracesProtocol} {
				t.Setenv(name, tc.env[name])
			}
			tracing, err := StartTracing(t.Context(), slog.New(slog.DiscardHandler), "v1")
			if (err != nil) != (tc.fails != "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Fatalf("%s: got %v", tc.reason, err)
			}
			if (tracing != nil) != tc.wanted {
				t.Errorf("%s: tracing is %v", tc.reason, tracing)
			}
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Second)
			defer cancel()
			if err := tracing.Stop(ctx); err != nil {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}
