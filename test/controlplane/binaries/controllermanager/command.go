// Package controllermanager is kube-controller-manager with the controllers that a cluster without real nodes needs:
// workloads, endpoints, namespaces, service accounts, quotas, node health and garbage collection. All of them are
// Kubernetes' own. Among the others, those of volumes and the garbage collection of pods import the kubelet and
// volume drivers, which take a minute to compile.
package controllermanager

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/server"
)

// options are the flags of the command. They are named as those of kube-controller-manager.
type options struct {
	kubeconfig, rootCAFile, serviceAccountKeyFile string
	// nodeMonitorPeriod is the time between two checks of nodes, and nodeMonitorGracePeriod the time without a
	// heartbeat after which a node is NotReady.
	nodeMonitorPeriod, nodeMonitorGracePeriod time.Duration
	// qps and burst limit the requests of each controller.
	qps   float32
	burst int
	// controllers are "*" and, with a leading minus sign, the names of controllers that do not run.
	controllers []string
}

func (o *options) register(flags *pflag.FlagSet) {
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "path of the kubeconfig")
	flags.StringVar(&o.rootCAFile, "root-ca-file", "", "path of the certificates that each namespace receives for the API server")
	flags.StringVar(&o.serviceAccountKeyFile, "service-account-private-key-file", "", "path of the key that signs tokens in Secrets")
	flags.DurationVar(&o.nodeMonitorPeriod, "node-monitor-period", 5*time.Second, "time between two checks of the nodes")
	flags.DurationVar(&o.nodeMonitorGracePeriod, "node-monitor-grace-period", 50*time.Second, "time without a heartbeat after which a node is NotReady")
	flags.Float32Var(&o.qps, "kube-api-qps", 20, "requests of each controller per second")
	flags.IntVar(&o.burst, "kube-api-burst", 30, "requests of each controller at once")
	flags.StringSliceVar(&o.controllers, "controllers", []string{"*"}, "* for all controllers, then -NAME for each that does not run")
}

// NewCommand returns the command kube-controller-manager. It ends with a signal.
func NewCommand() *cobra.Command {
	var o options

	command := &cobra.Command{
		Use:   "kube-controller-manager",
		Short: "The controllers of Kubernetes that a cluster without real nodes needs",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			// The usage is printed only for errors in flags.
			command.SilenceUsage = true

			ctx := server.SetupSignalContext()

			m, err := newManager(ctx, o)
			if err != nil {
				return err
			}

			return m.run(ctx)
		},
	}
	o.register(command.Flags())

	return command
}
