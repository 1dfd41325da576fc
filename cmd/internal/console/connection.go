package console

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // authentication plugins that kubeconfigs may require
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/cmd/internal/access"
	"github.com/chandlery/chandlery/cmd/internal/flaggroup"
	"github.com/chandlery/chandlery/supervisor/api/scheme"
	"github.com/chandlery/chandlery/supervisor/apply/warnings"
)

// clientQPS and clientBurst bound the requests of one process to the API server, per second. The
// fairness of the API server does the rest.
const (
	clientQPS   = 400
	clientBurst = 800
)

// Connection is the connection of a command to a cluster, by the kubeconfig, as in kubectl, or by
// the pod's service account.
type Connection struct {
	kubeconfig string
	overrides  clientcmd.ConfigOverrides
	// Agent is the user agent, which audit logs show.
	Agent string
}

// AddFlags adds kubectl's flags for the cluster and the user, with their completions.
func (c *Connection) AddFlags(cmd *cobra.Command) {
	flaggroup.Add(cmd.Flags(), "connection flags", func(flags *pflag.FlagSet) {
		flags.StringVar(&c.kubeconfig, "kubeconfig", "", "kubeconfig file; default: $KUBECONFIG, ~/.kube/config, or the pod's ServiceAccount")
		flags.StringVar(&c.overrides.CurrentContext, "context", "", "kubeconfig context to use; empty: the current context")
		flags.StringVar(&c.overrides.AuthInfo.Impersonate, "as", "", "user to impersonate")
		flags.StringArrayVar(&c.overrides.AuthInfo.ImpersonateGroups, "as-group", nil, "group to impersonate, together with --as; may be repeated")
		flags.StringVar(&c.overrides.Timeout, "request-timeout", "", "time limit for one request, such as 10s; empty: no limit")
	})
	Complete(cmd, "context", c.completeContexts)
	for _, free := range []string{"as", "as-group", "request-timeout"} {
		Complete(cmd, free, cobra.NoFileCompletions)
	}
}

// AddNamespaceFlag adds --namespace, which overrides the namespace of the context.
func (c *Connection) AddNamespaceFlag(cmd *cobra.Command, usage string) {
	cmd.Flags().StringVarP(&c.overrides.Context.Namespace, "namespace", "n", "", usage)
	Complete(cmd, "namespace", c.CompleteNamespaces)
}

// AddCatalogNamespaceFlag adds the flag for the namespace of global catalogs.
func (c *Connection) AddCatalogNamespaceFlag(cmd *cobra.Command, namespace *string) {
	const name = "global-catalog-namespace"
	cmd.Flags().StringVar(namespace, name, "olm", "namespace whose CatalogSources serve all namespaces; must match the supervisor's flag")
	Complete(cmd, name, c.CompleteNamespaces)
}

// Namespace returns the namespace of --namespace, else of the kubeconfig's context, else of the pod.
func (c *Connection) Namespace() (string, error) {
	if named := c.overrides.Context.Namespace; named != "" {
		return named, nil
	}
	config, rules := c.clientConfig()
	namespace, _, err := config.Namespace()
	if err != nil {
		return "", c.unusable(err, rules)
	}
	return namespace, nil
}

// RESTConfig returns the configuration for the API server.
func (c *Connection) RESTConfig() (*rest.Config, error) {
	config, rules := c.clientConfig()
	cfg, err := config.ClientConfig()
	if err != nil {
		return nil, c.unusable(err, rules)
	}
	cfg.QPS, cfg.Burst = clientQPS, clientBurst
	cfg.UserAgent = c.Agent
	return cfg, nil
}

// Cluster names the cluster of a command. A command that finds nothing often runs in the wrong
// cluster.
type Cluster struct {
	// Server is the URL of the API server.
	Server string `json:"server"`
	// Context is the context of the kubeconfig; empty in a pod.
	Context string `json:"context,omitempty"`
	// Kubeconfig is the file, or the files, of the configuration; empty in a pod.
	Kubeconfig string `json:"kubeconfig,omitempty"`
}

// Cluster returns the cluster that RESTConfig returns the configuration for.
func (c *Connection) Cluster() (Cluster, error) {
	cfg, err := c.RESTConfig()
	if err != nil {
		return Cluster{}, err
	}
	_, rules := c.clientConfig()
	merged, err := rules.Load()
	if err != nil {
		return Cluster{}, c.unusable(err, rules)
	}
	named := Cluster{Server: cfg.Host, Context: cmp.Or(c.overrides.CurrentContext, merged.CurrentContext)}
	if named.Context != "" {
		named.Kubeconfig = merged.Contexts[named.Context].LocationOfOrigin
	}
	return named, nil
}

// Header returns the line that names the cluster above the output of a command.
func (c Cluster) Header() string {
	if c.Context == "" {
		return "Cluster: " + c.Server + " (service account of the pod)\n"
	}
	return "Cluster: " + c.Server + " (context " + c.Context + " of " + c.Kubeconfig + ")\n"
}

// RESTConfig returns the configuration for the API server, for programs whose only setting is a kubeconfig.
func RESTConfig(kubeconfig, agent string) (*rest.Config, error) {
	return (&Connection{kubeconfig: kubeconfig, Agent: agent}).RESTConfig()
}

// Client returns a client for the cluster. Its errors name missing permissions.
func (c *Connection) Client() (client.WithWatch, error) {
	cfg, err := c.RESTConfig()
	if err != nil {
		return nil, err
	}
	return clientOf(cfg)
}

// CollectingClient returns a client for the cluster. It adds the API server's warnings to the
// warnings.Collector of a request's context and does not print them.
func (c *Connection) CollectingClient() (client.WithWatch, error) {
	cfg, err := c.RESTConfig()
	if err != nil {
		return nil, err
	}
	cfg.WarningHandler, cfg.WarningHandlerWithContext = nil, warnings.Handler{}
	return clientOf(cfg)
}

func clientOf(cfg *rest.Config) (client.WithWatch, error) {
	kinds, err := scheme.New()
	if err != nil {
		return nil, err //nolint:wrapcheck // wrapped where it arises
	}
	reached, err := client.NewWithWatch(cfg, client.Options{Scheme: kinds})
	if err != nil {
		return nil, fmt.Errorf("reaching the API server at %s: %w", cfg.Host, err)
	}
	return access.Client(reached), nil
}

func (c *Connection) clientConfig() (clientcmd.ClientConfig, *clientcmd.ClientConfigLoadingRules) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &c.overrides), rules
}
