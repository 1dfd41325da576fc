// Command member is a supervisor like cmd/supervisor, without a rate limit for the API server. The
// test changes as many InstallPlans in two minutes as many clusters do in a year.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/chandlery/chandlery/supervisor"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "member:", err)
		os.Exit(1) //nolint:gocritic // the process ends, and its signal handling with it
	}
}

// run runs a supervisor with the flags of cmd/supervisor's command run.
func run(ctx context.Context, args []string, log io.Writer) error {
	var o supervisor.Options
	flags := pflag.NewFlagSet("member", pflag.ContinueOnError)
	o.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("reading the flags: %w", err)
	}
	if err := o.Validate(); err != nil {
		return err
	}
	logger := logr.FromSlogHandler(slog.NewTextHandler(log, nil)).WithValues("identity", o.Identity)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	cfg, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return fmt.Errorf("reading --kubeconfig: %w", err)
	}
	cfg.QPS = -1
	return supervisor.Run(ctrl.LoggerInto(ctx, logger), cfg, o)
}
