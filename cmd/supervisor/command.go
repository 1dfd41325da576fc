package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/chandlery/chandlery/cmd/internal/flagenv"
	"github.com/chandlery/chandlery/cmd/internal/program"
	"github.com/chandlery/chandlery/supervisor"
)

// clientQPS and clientBurst bound, per second, what one process asks of the API
// server. The API server's own fairness does the rest.
const (
	clientQPS   = 100
	clientBurst = 200
)

// gcPercent is by how much the heap may grow before garbage is collected, unless
// the environment says so. The process holds much and makes little garbage, so
// that collecting more often than Go does by default costs next to nothing.
const gcPercent = 50

// newCommand gives the command with its sub-commands.
func newCommand() *cobra.Command {
	p := program.Program{
		Name: "supervisor", Short: "Keep the operators of a cluster installed and up to date",
		EnvPrefix: envPrefix, Version: version, Commit: commit,
	}
	return p.Command(newRunCommand(), newPlanCommand(), newHistoryCommand(), newInstallCRDsCommand())
}

func newRunCommand() *cobra.Command {
	options := supervisor.Options{Version: version}
	logging := program.Logging{}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the controllers, or stand by while another process leads",
		Long: `Run the controllers: CatalogSources, Subscriptions, InstallPlans,
ClusterServiceVersions, OperatorGroups, OperatorConditions, Operators and the
OLMConfig of operators.coreos.com.

Start it twice or more: one process leads, the others stand by with full caches
and take over when it stops or fails.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := options.Validate(); err != nil {
				return err //nolint:wrapcheck // names the flags by itself
			}
			handler, err := logging.Handler(os.Stderr)
			if err != nil {
				return err
			}
			logger := logr.FromSlogHandler(program.Quiet(cmd.Context(), handler)).WithValues("identity", options.Identity)
			ctrl.SetLogger(logger)
			klog.SetLogger(logger)
			cfg, err := restConfig(options.Kubeconfig)
			if err != nil {
				return err
			}
			if _, decided := os.LookupEnv("GOGC"); !decided {
				debug.SetGCPercent(gcPercent)
			}
			return supervisor.Run(ctrl.LoggerInto(cmd.Context(), logger), cfg, options) //nolint:wrapcheck // wrapped where it arises
		},
	}
	options.AddFlags(cmd.Flags())
	logging.AddFlags(cmd.Flags())
	flagenv.Describe(cmd.Flags(), envPrefix)
	return cmd
}

func newInstallCRDsCommand() *cobra.Command {
	var (
		kubeconfig string
		timeout    time.Duration
	)
	cmd := &cobra.Command{
		Use:   "install-crds",
		Short: "Install or update the CustomResourceDefinitions of operators.coreos.com",
		Long: `Install or update the CustomResourceDefinitions of operators.coreos.com, and wait
until the API server serves them. It changes nothing else and may be repeated.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			handler := slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})
			ctrl.SetLogger(logr.FromSlogHandler(handler))
			cfg, err := restConfig(kubeconfig)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return supervisor.InstallCRDs(ctx, cfg, cmd.OutOrStdout()) //nolint:wrapcheck // wrapped where it arises
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "path of a kubeconfig file; empty: $KUBECONFIG, then the pod's own account, then ~/.kube/config")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long to wait for the API server to serve them")
	flagenv.Describe(cmd.Flags(), envPrefix)
	return cmd
}

// clientConfig says where the API server is looked for.
func clientConfig(kubeconfig string) (clientcmd.ClientConfig, *clientcmd.ClientConfigLoadingRules) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil), rules
}

// restConfig finds the API server.
func restConfig(kubeconfig string) (*rest.Config, error) {
	config, rules := clientConfig(kubeconfig)
	cfg, err := config.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w%s; set --kubeconfig or $KUBECONFIG", err, missing(rules))
	}
	cfg.QPS, cfg.Burst = clientQPS, clientBurst
	cfg.UserAgent = "chandlery-supervisor"
	return cfg, nil
}

// missing names the files of $KUBECONFIG that are not there: they are passed over
// when they are read. That of --kubeconfig is named by the error itself.
func missing(rules *clientcmd.ClientConfigLoadingRules) string {
	if rules.ExplicitPath != "" || os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		return ""
	}
	var paths []string
	for _, path := range rules.Precedence {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		return ""
	}
	return ", and $" + clientcmd.RecommendedConfigPathEnvVar + " names what is not there: " + strings.Join(paths, ", ")
}
