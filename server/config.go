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

// Source is where the content comes from.
type Source interface {
	// Load returns the content. An error with bundles.Problems says what keeps
	// it from being served.
	Load(ctx context.Context) (*index.Index, error)
	// Fingerprint returns a text that changes with the content.
	Fingerprint() (string, error)
}

// Config says what to serve and how.
type Config struct {
	// Source of the content; required.
	Source Source
	// Address to serve gRPC on, as host:port; port 0 takes a free one.
	Address string
	// MetricsAddress to serve metrics and probes over HTTP on; empty for none.
	MetricsAddress string
	// Listener is used instead of Address when it is set.
	Listener net.Listener
	// ReloadInterval is the time between two looks at the source; zero serves
	// the first content for ever.
	ReloadInterval time.Duration
	// ShutdownTimeout is how long calls under way may take to finish once the
	// server is to stop; 20 s by default.
	ShutdownTimeout time.Duration
	// Limits bound what clients may take; [DefaultLimits] by default.
	Limits Limits
	// TLS says what to encrypt with; nothing by default.
	TLS TLS
	// AccessLogSample is how many calls that succeed there are for each that is
	// logged; 0 logs none of them. Calls that fail are logged.
	AccessLogSample int
	// Tracing sends traces where the environment says so; see [StartTracing].
	Tracing *Tracing
	// OnLoading is called before each load; nil for nothing.
	OnLoading func()
	// OnLoaded is called after each load that succeeds; nil for nothing. Loading
	// takes several times the memory that serving does, and left alone the
	// runtime keeps it for minutes: a program that does nothing else may want to
	// give it back with [runtime/debug.FreeOSMemory].
	OnLoaded func()
	// Logger takes the logs; required.
	Logger *slog.Logger
	// Version and Commit of the program, for the build_info metric.
	Version string
	Commit  string
}

// DefaultShutdownTimeout is below the 30 s that Kubernetes gives a pod.
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
