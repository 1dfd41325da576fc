package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"google.golang.org/grpc/grpclog"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/cmd/internal/command/all"
	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/cmd/internal/flagenv"
	"github.com/chandlery/chandlery/cmd/internal/profiling"
	"github.com/chandlery/chandlery/cmd/internal/program"
	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// agent is the user agent for API servers.
const agent = "chandlery-supervisor"

// gcPercent is the growth of the heap before a garbage collection, unless the environment sets it.
// The process holds much memory and allocates little, so collecting more often than Go's default
// costs almost nothing.
const gcPercent = 50

// newCommand returns the root command with its sub-commands.
func newCommand() *cobra.Command {
	p := program.Program{
		Name: "supervisor", Short: "Keep the operators of a cluster installed and up to date",
		EnvPrefix: envPrefix, Version: version, Commit: commit,
	}
	shared := program.DescribedOn("commands-kubectl-chandlery.md", "kubectl chandlery", all.Commands(p.Name, envPrefix, agent))
	return p.Command(append(shared, newRunCommand(), newInstallCRDsCommand(), newRBACCommand())...)
}

func newRunCommand() *cobra.Command {
	options := supervisor.Options{Version: version}
	logging := program.Logging{}
	profiles := profiling.Flags{}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the controllers, or stand by while another process leads",
		Long: `Run the controllers of CatalogSources, Subscriptions, InstallPlans,
ClusterServiceVersions, OperatorGroups, OperatorConditions, Operators and the
OLMConfig of operators.coreos.com.

Start two or more processes. One process leads. The others stand by with full
caches, and one of them takes over when the leader stops or fails.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := options.Validate(); err != nil {
				return err //nolint:wrapcheck // the error names the flags
			}
			handler, err := logging.Handler(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			logger := logr.FromSlogHandler(program.Quiet(cmd.Context(), handler, supervisor.ErrLeaseTaken)).WithValues("identity", options.Identity)
			ctrl.SetLogger(logger)
			klog.SetLogger(logger)
			// A library of API servers makes gRPC log each failed attempt to connect. The status of a CatalogSource shows the error.
			grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
			cfg, err := console.RESTConfig(options.Kubeconfig, agent)
			if err != nil {
				return err
			}
			if _, decided := os.LookupEnv("GOGC"); !decided {
				debug.SetGCPercent(gcPercent)
			}
			defer profiles.Start(cmd.Context(), slog.New(handler)).Stop(context.WithoutCancel(cmd.Context()))
			return supervisor.Run(ctrl.LoggerInto(cmd.Context(), logger), cfg, options) //nolint:wrapcheck // wrapped where it arises
		},
	}
	options.AddFlags(cmd.Flags())
	profiles.AddAddressFlag(cmd.Flags(), "")
	logging.AddFlags(cmd.Flags())
	flagenv.Describe(cmd.Flags(), envPrefix)
	return cmd
}

func newRBACCommand() *cobra.Command {
	var kinds plansteps.Kinds
	account := types.NamespacedName{}
	cmd := &cobra.Command{
		Use:   "rbac --bundle-kind=GROUP/KIND ...",
		Short: "Print the permissions that the supervisor needs for additional kinds in bundles",
		Long: `Print a ClusterRole and a ClusterRoleBinding with the permissions that the
supervisor needs for additional kinds in bundles. Pass every --bundle-kind flag of
'supervisor run' in one call. When you apply the output with kubectl, it replaces the
permissions of earlier calls. Like controller-gen, the command derives each resource
name from its kind, as the lower-case English plural. If a CustomResourceDefinition
has another resource name, correct the output.`,
		Example: `  supervisor rbac --bundle-kind=shop.example/Widget --bundle-kind=shop.example/Policy:cluster | kubectl apply -f -`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := validateAccount(account); err != nil {
				return err
			}
			for i, o := range supervisor.BundleKindPermissions(kinds, account) {
				text, err := yaml.Marshal(o)
				if err != nil {
					return fmt.Errorf("encoding %s: %w", o.GetName(), err)
				}
				if i > 0 {
					text = append([]byte("---\n"), text...)
				}
				if _, err := cmd.OutOrStdout().Write(text); err != nil {
					return fmt.Errorf("printing the permissions: %w", err)
				}
			}
			return nil
		},
	}
	cmd.Flags().Var(&kinds, plansteps.FlagKind, "kind, as GROUP/KIND, or GROUP/KIND:cluster for a cluster-scoped kind; repeat the flag for every kind that you pass to 'supervisor run'")
	cmd.Flags().StringVar(&account.Namespace, "namespace", "chandlery-system", "namespace of the supervisor")
	cmd.Flags().StringVar(&account.Name, "service-account", "chandlery-supervisor", "ServiceAccount of the supervisor")
	// $SUPERVISOR_NAMESPACE sets the namespace that 'supervisor status' reads. It must not grant permissions to another account.
	flagenv.Exclude(cmd.Flags(), "namespace", "service-account")
	flagenv.Describe(cmd.Flags(), envPrefix)
	_ = cmd.MarkFlagRequired(plansteps.FlagKind) // it fails only for an undefined flag
	return cmd
}

// validateAccount returns an error if a service account cannot have such a namespace or name.
func validateAccount(account types.NamespacedName) error {
	if reasons := validation.ValidateNamespaceName(account.Namespace, false); len(reasons) > 0 {
		return fmt.Errorf("invalid --namespace %q: %s; set it to the namespace of the supervisor", account.Namespace, strings.Join(reasons, ", "))
	}
	if reasons := validation.ValidateServiceAccountName(account.Name, false); len(reasons) > 0 {
		return fmt.Errorf("invalid --service-account %q: %s; set it to the service account of the supervisor", account.Name, strings.Join(reasons, ", "))
	}
	return nil
}

func newInstallCRDsCommand() *cobra.Command {
	var (
		kubeconfig string
		timeout    time.Duration
		force      bool
	)
	cmd := &cobra.Command{
		Use:   "install-crds",
		Short: "Install or update the CustomResourceDefinitions of operators.coreos.com",
		Long: `Install or update the CustomResourceDefinitions of operators.coreos.com, and wait
until the API server serves them. The command changes nothing else. You can repeat
it. If another field manager, such as OLM, owns conflicting fields, the command
fails and does not change the definition.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			handler := slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn})
			logger := logr.FromSlogHandler(handler)
			ctrl.SetLogger(logger)
			klog.SetLogger(logger)
			cfg, err := console.RESTConfig(kubeconfig, agent)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			var options []client.ApplyOption
			if force {
				options = append(options, client.ForceOwnership)
			}
			return supervisor.InstallCRDs(ctx, cfg, cmd.OutOrStdout(), options...) //nolint:wrapcheck // wrapped where it arises
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig file; default: $KUBECONFIG, ~/.kube/config, or the pod's ServiceAccount")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "time limit for the API server to serve the definitions")
	cmd.Flags().BoolVar(&force, "force-conflicts", false, "change definitions even if another field manager owns conflicting fields")
	flagenv.Describe(cmd.Flags(), envPrefix)
	return cmd
}
