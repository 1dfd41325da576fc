package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/cmd/internal/flagenv"
	"github.com/chandlery/chandlery/cmd/internal/program"
	"github.com/chandlery/chandlery/server"
	"github.com/chandlery/chandlery/server/source"
)

// serveOptions are the flags of "registry serve".
type serveOptions struct {
	host            string
	port            string
	metricsAddress  string
	terminationLog  string
	shutdownTimeout time.Duration
	reloadInterval  time.Duration
	allowEmpty      bool
	logging         program.Logging
}

func newServeCommand() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve DIR",
		Short: "Serve the catalog in a directory",
		Long: "Serve the catalog in a directory, over gRPC without encryption.\n\n" +
			"Changes of the directory are served as soon as they are complete and free of problems.",
		Example: "  registry serve ./catalog\n" +
			"  grpcurl -plaintext localhost:50051 api.Registry/ListPackages",
		Args: oneDirectory,
		RunE: func(cmd *cobra.Command, args []string) error {
			err := o.run(cmd.Context(), args[0], cmd.ErrOrStderr())
			o.leaveTerminationMessage(err)
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.host, "host", "", "host name or IP address to serve on; empty for all of this machine")
	flags.StringVarP(&o.port, "port", "p", "50051", "port to serve gRPC on; 0 for any free one")
	flags.StringVar(&o.metricsAddress, "metrics-address", ":9090",
		"host:port to serve /metrics, /healthz and /readyz on; \"\" or 0 for none")
	flags.StringVarP(&o.terminationLog, "termination-log", "t", "/dev/termination-log",
		"file to leave the reason in when serving fails; \"\" for none")
	flags.DurationVar(&o.shutdownTimeout, "shutdown-timeout", server.DefaultShutdownTimeout,
		"time that calls under way get to finish when stopping")
	flags.DurationVar(&o.reloadInterval, "reload-interval", 2*time.Second,
		"time between two looks for changes of the directory; 0 for never")
	flags.BoolVar(&o.allowEmpty, "allow-empty", false, "serve a directory without any package")
	o.logging.AddFlags(flags)
	flagenv.Describe(flags, envPrefix)
	return cmd
}

func (o *serveOptions) run(ctx context.Context, dir string, logs io.Writer) error {
	handler, err := o.logging.Handler(logs)
	if err != nil {
		return fmt.Errorf("starting: %w", err)
	}
	logger := slog.New(handler)
	if err := o.check(); err != nil {
		return err
	}
	s, err := server.New(ctx, server.Config{
		Source:         source.Dir{Path: dir, AllowEmpty: o.allowEmpty},
		Address:        net.JoinHostPort(o.host, o.port),
		MetricsAddress: off(o.metricsAddress),
		ReloadInterval: o.reloadInterval, ShutdownTimeout: o.shutdownTimeout,
		OnLoaded: debug.FreeOSMemory,
		Logger:   logger, Version: version, Commit: commit,
	})
	if err != nil {
		return fmt.Errorf("starting: %w", err)
	}
	logger.InfoContext(ctx, "Starting", "version", version, "directory", dir)
	if err := s.Run(ctx); err != nil {
		return fmt.Errorf("serving: %w", err)
	}
	logger.InfoContext(ctx, "Stopped")
	return nil
}

var (
	errBadPort  = errors.New("--port must be a number from 0 to 65535")
	errNegative = errors.New("must not be negative")
)

// check reports flags whose values are of no use.
func (o *serveOptions) check() error {
	if _, err := strconv.ParseUint(o.port, 10, 16); err != nil {
		return fmt.Errorf("%w, found %q", errBadPort, o.port)
	}
	if o.shutdownTimeout < 0 {
		return fmt.Errorf("--shutdown-timeout %w, found %s", errNegative, o.shutdownTimeout)
	}
	if o.reloadInterval < 0 {
		return fmt.Errorf("--reload-interval %w, found %s", errNegative, o.reloadInterval)
	}
	return nil
}

// off lets "0" stand for nothing, as it does for other servers.
func off(address string) string {
	if address == "0" {
		return ""
	}
	return address
}

// leaveTerminationMessage leaves the reason of a failure where Kubernetes
// looks for it. Outside of a container there is no such file to write, which
// is no reason to complain.
func (o *serveOptions) leaveTerminationMessage(failure error) {
	if failure == nil || o.terminationLog == "" {
		return
	}
	file, err := os.OpenFile(o.terminationLog, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return
	}
	printError(file, failure)
	// There is nobody left to tell that the reason could not be written.
	_ = file.Close()
}
