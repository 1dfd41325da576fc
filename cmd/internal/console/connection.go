package console

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/pflag"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // what kubeconfigs of people may ask for
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/scheme"
)

// clientQPS and clientBurst bound, per second, what one process asks of the API server.
// The API server's own fairness does the rest.
const (
	clientQPS   = 100
	clientBurst = 200
)

// Connection is how a command reaches a cluster: by the kubeconfig, as kubectl does, or
// by the pod's own account.
type Connection struct {
	kubeconfig string
	overrides  clientcmd.ConfigOverrides
	// Agent is the user agent that audit logs show.
	Agent string
}

// AddFlags adds the flags by which kubectl, too, is told which cluster is meant and as
// whom to ask.
func (c *Connection) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.kubeconfig, "kubeconfig", "", "path of a kubeconfig file; empty: $KUBECONFIG, then the pod's own account, then ~/.kube/config")
	flags.StringVar(&c.overrides.CurrentContext, "context", "", "context of the kubeconfig to use; empty: its current one")
	flags.StringVar(&c.overrides.AuthInfo.Impersonate, "as", "", "user to ask as, where one may impersonate it")
	flags.StringArrayVar(&c.overrides.AuthInfo.ImpersonateGroups, "as-group", nil, "group to ask as, together with --as; may be repeated")
	flags.StringVar(&c.overrides.Timeout, "request-timeout", "", "how long one request may take, as 10s; empty: as long as it takes")
}

// AddNamespaceFlag adds --namespace, which overrides the namespace of the context.
func (c *Connection) AddNamespaceFlag(flags *pflag.FlagSet, usage string) {
	flags.StringVarP(&c.overrides.Context.Namespace, "namespace", "n", "", usage)
}

// Namespace is the one that is meant: of --namespace, else of the kubeconfig's context,
// else of the pod.
func (c *Connection) Namespace() (string, error) {
	if named := c.overrides.Context.Namespace; named != "" {
		return named, nil
	}
	config, _ := c.clientConfig()
	namespace, _, err := config.Namespace()
	if err != nil {
		return "", fmt.Errorf("finding the namespace: %w; set --namespace", err)
	}
	return namespace, nil
}

// RESTConfig finds the API server.
func (c *Connection) RESTConfig() (*rest.Config, error) {
	config, rules := c.clientConfig()
	cfg, err := config.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w%s; set --kubeconfig or $KUBECONFIG", err, missing(rules))
	}
	cfg.QPS, cfg.Burst = clientQPS, clientBurst
	cfg.UserAgent = c.Agent
	return cfg, nil
}

// RESTConfig finds the API server for a program that asks for no more than a kubeconfig.
func RESTConfig(kubeconfig, agent string) (*rest.Config, error) {
	return (&Connection{kubeconfig: kubeconfig, Agent: agent}).RESTConfig()
}

// Client reaches the cluster.
func (c *Connection) Client() (client.WithWatch, error) {
	cfg, err := c.RESTConfig()
	if err != nil {
		return nil, err
	}
	kinds, err := scheme.New()
	if err != nil {
		return nil, err //nolint:wrapcheck // wrapped where it arises
	}
	reached, err := client.NewWithWatch(cfg, client.Options{Scheme: kinds})
	if err != nil {
		return nil, fmt.Errorf("reaching the API server at %s: %w", cfg.Host, err)
	}
	return reached, nil
}

func (c *Connection) clientConfig() (clientcmd.ClientConfig, *clientcmd.ClientConfigLoadingRules) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &c.overrides), rules
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
