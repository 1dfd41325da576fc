package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chandlery/chandlery/cmd/internal/flagenv"
	"github.com/chandlery/chandlery/cmd/internal/profiling"
	"github.com/chandlery/chandlery/cmd/internal/program"
	"github.com/chandlery/chandlery/server"
)

// serveOptions are the flags of "registry serve".
type serveOptions struct {
	host           string
	port           string
	metricsAddress string
	// metricsGiven is set if the user has set the address.
	metricsGiven    bool
	terminationLog  string
	shutdownTimeout time.Duration
	reloadInterval  time.Duration
	accessLogSample int
	tls             server.TLS
	tlsPort         string
	source          sourceFlags
	limits          limitFlags
	profiling       profiling.Flags
	logging         program.Logging
}

const flagMetricsAddress = "metrics-address"

func newServeCommand() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve SOURCE",
		Short: "Serve a catalog over gRPC",
		Long: "Serve the catalog in a directory, an index file, an image or a mounted ConfigMap over gRPC.\n\n" +
			"The port opens immediately. Until the catalog is read, calls fail with Unavailable, and health\n" +
			"checks report NOT_SERVING. When the source changes, the server serves the new content if it is\n" +
			"complete and valid.\n\n" + selectionHelp,
		Example: "  registry serve ./catalog\n" +
			"  registry serve ./catalog --tls-cert tls.crt --tls-key tls.key\n" +
			"  registry serve ./catalog --package 'lantern@>=1.2.0' --dependencies\n" +
			"  grpcurl -plaintext localhost:50051 api.Registry/ListPackages",
		Args: oneSource,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.metricsGiven = cmd.Flags().Changed(flagMetricsAddress)
			err := o.run(cmd.Context(), args[0], cmd.ErrOrStderr())
			o.writeTerminationMessage(cmd.ErrOrStderr(), err)
			return err
		},
	}
	flags := cmd.Flags()
	o.addFlags(flags)
	o.addTLSFlags(flags)
	o.source.AddFlags(flags)
	o.source.addSelectionFlags(cmd)
	o.limits.AddFlags(flags)
	o.profiling.AddFlags(flags)
	o.logging.AddFlags(flags)
	o.logging.Complete(cmd)
	flagenv.Describe(flags, envPrefix)
	return cmd
}

func (o *serveOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.host, "host", "", "host name or IP address to listen on; empty: all addresses of this machine")
	flags.StringVarP(&o.port, "port", "p", "50051", "port for gRPC; 0: any free port")
	flags.StringVar(&o.metricsAddress, flagMetricsAddress, ":9090",
		"host:port for /metrics, /healthz and /readyz; \"\" or 0: none; "+
			"if the default port is taken, the server starts without these pages")
	flags.StringVarP(&o.terminationLog, "termination-log", "t", defaultTerminationLog,
		"file for the error message if the server fails; \"\": none")
	flags.DurationVar(&o.shutdownTimeout, "shutdown-timeout", server.DefaultShutdownTimeout,
		"time for running calls to finish when the server stops")
	flags.DurationVar(&o.reloadInterval, "reload-interval", 2*time.Second,
		"time between two checks of the source for changes; 0: never")
	flags.IntVar(&o.accessLogSample, "access-log-sample", 1000,
		"log every Nth successful call, and all failed calls; 0: only failed calls")
}

func (o *serveOptions) addTLSFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.tls.Certificate, "tls-cert", "",
		"file with the server's TLS certificate chain (PEM); the server reloads a changed file")
	flags.StringVar(&o.tls.Key, "tls-key", "", "file with the key (PEM) of the certificate")
	flags.StringVar(&o.tlsPort, "tls-port", "", "second port for gRPC, with TLS; --port then serves plain text; without this flag, --port serves TLS if --tls-cert is set")
	flags.StringVar(&o.tls.ClientCA, "tls-client-ca", "",
		"file with CA certificates (PEM) to verify client certificates; the server refuses clients without a valid certificate")
}

func (o *serveOptions) run(ctx context.Context, argument string, logs io.Writer) error {
	handler, err := o.logging.Handler(logs)
	if err != nil {
		return fmt.Errorf("starting: %w", err)
	}
	logger := slog.New(handler)
	if err := o.check(); err != nil {
		return err
	}
	profiles := o.profiling.Start(ctx, logger)
	defer profiles.Stop(context.WithoutCancel(ctx))
	from, err := o.source.open(argument, logger)
	if err != nil {
		return err
	}
	if o.source.cacheOnly {
		return o.source.fillCache(ctx, from, logger)
	}
	tracing, err := server.StartTracing(ctx, logger, version)
	if err != nil {
		return fmt.Errorf("starting: %w", err)
	}
	return errors.Join(o.serve(ctx, from, logger, server.Config{
		Tracing:   tracing,
		OnLoading: func() { collectOften(true) },
		OnLoaded: func() {
			profiles.Started()
			collectOften(false)
		},
	}), stopTracing(ctx, tracing))
}

// The percentages are the growth of the heap before a garbage collection. Serving uses little
// memory and would otherwise collect often. Building an index uses more for a short time; the
// memory limit then fits a small container. While serving, the limit is the memory in use after
// loading and servingRoom, which many concurrent calls may use.
const (
	loadingGCPercent   = 100
	loadingMemoryLimit = 40 << 20
	servingGCPercent   = 300
	servingRoom        = 20 << 20
)

// collectOften sets the garbage collection for loading or serving, unless the environment sets it.
// After loading it releases the memory, which the Go runtime would keep for minutes.
func collectOften(loading bool) {
	percent, limit := servingGCPercent, int64(math.MaxInt64)
	if loading {
		percent, limit = loadingGCPercent, loadingMemoryLimit
	}
	setGC(percent, limit)
	if loading {
		return
	}
	// The second collection frees the contents of pools.
	runtime.GC()
	debug.FreeOSMemory()
	var atRest runtime.MemStats
	runtime.ReadMemStats(&atRest)
	setGC(percent, int64(atRest.HeapAlloc)+servingRoom) //nolint:gosec // less than there is memory
}

// setGC sets what the environment does not set.
func setGC(percent int, limit int64) {
	if _, decided := os.LookupEnv("GOGC"); !decided {
		debug.SetGCPercent(percent)
	}
	if _, decided := os.LookupEnv("GOMEMLIMIT"); !decided {
		debug.SetMemoryLimit(limit)
	}
}

// serve completes the configuration and runs the server.
func (o *serveOptions) serve(ctx context.Context, from server.Source, logger *slog.Logger, config server.Config) error {
	config.Source = from
	config.Address = net.JoinHostPort(o.host, o.port)
	if o.tlsPort != "" {
		o.tls.Address = net.JoinHostPort(o.host, o.tlsPort)
	}
	config.ReloadInterval, config.ShutdownTimeout = o.reloadInterval, o.shutdownTimeout
	config.Limits, config.TLS, config.AccessLogSample = o.limits.limits(), o.tls, o.accessLogSample
	config.Logger, config.Version, config.Commit = logger, version, commit
	var err error
	if config.MetricsAddress, err = o.freeMetricsAddress(ctx, logger); err != nil {
		return fmt.Errorf("starting: %w", err)
	}
	s, err := server.New(ctx, config)
	if err != nil {
		return fmt.Errorf("starting: %w", err)
	}
	logger.InfoContext(ctx, "Starting", "version", version, "tls", o.tls.Certificate != "")
	if err := s.Run(ctx); err != nil {
		return fmt.Errorf("serving: %w", err)
	}
	logger.InfoContext(ctx, "Stopped")
	return nil
}

// stopTracing sends the last traces, within a short timeout, because the collector may be unreachable.
func stopTracing(ctx context.Context, tracing *server.Tracing) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	return tracing.Stop(ctx)
}

var (
	errOneSource = errors.New("name the source: a directory, an index file or an image")
	errBadPort   = errors.New("--port must be a number from 0 to 65535")
	errTLSPort   = errors.New("--tls-port must be a number from 0 to 65535, other than --port")
	errNegative  = errors.New("must not be negative")
)

// oneSource accepts exactly one argument.
func oneSource(_ *cobra.Command, args []string) error {
	if len(args) == 1 && args[0] != "" {
		return nil
	}
	return errOneSource
}

// check returns an error for invalid values.
func (o *serveOptions) check() error {
	if _, err := strconv.ParseUint(o.port, 10, 16); err != nil {
		return fmt.Errorf("%w, found %q", errBadPort, o.port)
	}
	if _, err := strconv.ParseUint(o.tlsPort, 10, 16); o.tlsPort != "" && (err != nil || o.tlsPort == o.port && o.port != "0") {
		return fmt.Errorf("%w, found %q", errTLSPort, o.tlsPort)
	}
	for name, value := range map[string]time.Duration{
		"shutdown-timeout": o.shutdownTimeout, "reload-interval": o.reloadInterval,
	} {
		if value < 0 {
			return fmt.Errorf("--%s %w, found %s", name, errNegative, value)
		}
	}
	if o.accessLogSample < 0 {
		return fmt.Errorf("--access-log-sample %w, found %d", errNegative, o.accessLogSample)
	}
	if err := o.limits.limits().Validate(); err != nil {
		return fmt.Errorf("--%w", err)
	}
	return nil
}

// enabledAddress returns an address; empty for "0", which disables an endpoint as in other servers.
func enabledAddress(address string) string {
	if address == "0" {
		return ""
	}
	return address
}

// freeMetricsAddress returns the address of the metrics; empty for none. A port in use is an error
// only if the user has set the address, because "opm serve" needs no such port.
func (o *serveOptions) freeMetricsAddress(ctx context.Context, logger *slog.Logger) (string, error) {
	address := enabledAddress(o.metricsAddress)
	if address == "" {
		return "", nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	switch {
	case err == nil:
		// The server opens the port again.
		if err := listener.Close(); err != nil {
			return "", fmt.Errorf("trying the metrics port: %w", err)
		}
		return address, nil
	case o.metricsGiven:
		return "", fmt.Errorf("--%s: %w; name another address, or 0 for none", flagMetricsAddress, err)
	}
	logger.WarnContext(ctx, "Not serving metrics: the port cannot be opened; set --"+flagMetricsAddress+" to another or to 0", "error", err)
	return "", nil
}

// defaultTerminationLog is the file from which Kubernetes reads the reason of a failure.
const defaultTerminationLog = "/dev/termination-log"

// writeTerminationMessage writes the reason of a failure to the termination log. It reports a
// failed write only if the user has set the file: outside a container the default file does not
// exist.
func (o *serveOptions) writeTerminationMessage(logs io.Writer, failure error) {
	if failure == nil || o.terminationLog == "" {
		return
	}
	//nolint:gosec // another user may read the reason
	file, err := os.OpenFile(o.terminationLog, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err == nil {
		printError(file, failure)
		err = file.Close()
	}
	if err != nil && o.terminationLog != defaultTerminationLog {
		printError(logs, fmt.Errorf("writing to --termination-log: %w", err))
	}
}
