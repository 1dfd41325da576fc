package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/chandlery/chandlery/bundles/index"
)

// Source is the origin of the content.
type Source interface {
	// Load returns the content. The error holds bundles.Problems if the content cannot be served.
	Load(ctx context.Context) (*index.Index, error)
	// Fingerprint returns a text that changes when the content changes.
	Fingerprint() (string, error)
}

// Config configures a [Server].
type Config struct {
	// Source of the content; required.
	Source Source
	// Address to serve gRPC on, as host:port; port 0 takes a free one.
	Address string
	// MetricsAddress to serve metrics and probes over HTTP on; empty for none.
	MetricsAddress string
	// Listener is used instead of Address when it is set.
	Listener net.Listener
	// ReloadInterval is the time between two checks of the source. Zero never reloads.
	ReloadInterval time.Duration
	// ShutdownTimeout is how long calls in progress may take after the server begins to stop; 20 s by default.
	ShutdownTimeout time.Duration
	// Limits bound what clients may use; [DefaultLimits] by default.
	Limits Limits
	// TLS configures encryption; none by default.
	TLS TLS
	// AccessLogSample is the number of successful calls for each logged one; 0 logs none. Failed
	// calls are logged in any case.
	AccessLogSample int
	// Tracing sends traces; nil for none. See [StartTracing].
	Tracing *Tracing
	// OnLoading is called before each load; nil for nothing.
	OnLoading func()
	// OnLoaded is called after each load that succeeds; nil for nothing. A load takes several times
	// the memory of serving, which the Go runtime releases only after minutes. A program may
	// release it with [runtime/debug.FreeOSMemory].
	OnLoaded func()
	// Logger receives the logs; required.
	Logger *slog.Logger
	// Version and Commit of the program, for the build_info metric.
	Version string
	Commit  string
}

// DefaultShutdownTimeout is below the 30 s that Kubernetes grants a pod.
const DefaultShutdownTimeout = 20 * time.Second

var (
	errNoSource   = errors.New("the configuration has no source")
	errNoLogger   = errors.New("the configuration has no logger")
	errBadTimeout = errors.New("intervals and timeouts must not be negative")
)

func (c Config) withDefaults() (Config, error) {
	switch {
	case c.Source == nil:
		return c, errNoSource
	case c.Logger == nil:
		return c, errNoLogger
	case c.ReloadInterval < 0 || c.ShutdownTimeout < 0 || c.TLS.Interval < 0:
		return c, errBadTimeout
	}
	c.ShutdownTimeout = cmp.Or(c.ShutdownTimeout, DefaultShutdownTimeout)
	c.TLS.Interval = cmp.Or(c.TLS.Interval, defaultTLSInterval)
	c.Limits = cmp.Or(c.Limits, DefaultLimits())
	if err := c.TLS.validate(); err != nil {
		return c, err
	}
	return c, c.Limits.Validate()
}
