package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"golang.org/x/time/rate"
	"google.golang.org/grpc/stats"
)

// Tracing sends a span for each call to a collector.
type Tracing struct {
	provider *sdktrace.TracerProvider
	handler  stats.Handler
}

// The variables that enable tracing and select the protocol. The exporters and the SDK read the
// other variables: the endpoint, its certificates and headers, the sampler, the limits and the
// attributes of the resource.
const (
	envDisabled       = "OTEL_SDK_DISABLED"
	envExporter       = "OTEL_TRACES_EXPORTER"
	envEndpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	envTracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	envProtocol       = "OTEL_EXPORTER_OTLP_PROTOCOL"
	envTracesProtocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
)

const (
	protocolHTTP = "http/protobuf"
	protocolGRPC = "grpc"
)

var (
	errExporter = errors.New(envExporter + " must be otlp or none")
	errProtocol = errors.New(envProtocol + " must be " + protocolHTTP + " or " + protocolGRPC)
)

// StartTracing starts to send traces if the standard variables of OpenTelemetry enable it: if
// OTEL_TRACES_EXPORTER is otlp, or if an endpoint is set and the exporter is not none. Otherwise it
// returns nil, and tracing costs nothing.
func StartTracing(ctx context.Context, logger *slog.Logger, version string) (*Tracing, error) {
	wanted, err := tracingWanted()
	if err != nil || !wanted {
		return nil, err
	}
	client, err := tracesClient()
	if err != nil {
		return nil, err
	}
	// Without a collector there would be an error every few seconds.
	seldom := rate.Sometimes{First: 1, Interval: time.Minute}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		seldom.Do(func() { logger.WarnContext(ctx, "Cannot send traces", "error", err) })
	}))
	exporter, err := otlptrace.New(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("starting to send traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "registry"), attribute.String("service.version", version),
	), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("describing this program to the collector of traces: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	return &Tracing{provider: provider, handler: otelgrpc.NewServerHandler(
		otelgrpc.WithTracerProvider(provider),
		otelgrpc.WithPropagators(propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})),
		otelgrpc.WithFilter(traced),
	)}, nil
}

// Stop sends the pending spans. It may be called on nil.
func (t *Tracing) Stop(ctx context.Context) error {
	if t == nil {
		return nil
	}
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("sending the last traces: %w", err)
	}
	return nil
}

func tracingWanted() (bool, error) {
	if strings.EqualFold(os.Getenv(envDisabled), "true") {
		return false, nil
	}
	switch exporter := os.Getenv(envExporter); exporter {
	case "none":
		return false, nil
	case "otlp":
		return true, nil
	case "":
		return cmp.Or(os.Getenv(envTracesEndpoint), os.Getenv(envEndpoint)) != "", nil
	default:
		return false, fmt.Errorf("%w, found %q", errExporter, exporter)
	}
}

// tracesClient returns a client for the protocol that the environment selects.
func tracesClient() (otlptrace.Client, error) {
	switch protocol := cmp.Or(os.Getenv(envTracesProtocol), os.Getenv(envProtocol), protocolHTTP); protocol {
	case protocolHTTP:
		return otlptracehttp.NewClient(), nil
	case protocolGRPC:
		return otlptracegrpc.NewClient(), nil
	default:
		return nil, fmt.Errorf("%w, found %q", errProtocol, protocol)
	}
}

// traced reports whether a call is traced. Health checks, which come every few seconds, and
// reflection calls are not.
func traced(info *stats.RPCTagInfo) bool {
	return !strings.HasPrefix(info.FullMethodName, "/grpc.")
}
