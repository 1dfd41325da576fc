// Command controlplane is all components of a control plane in one program, which the linker builds once:
//
//	controlplane etcd|kube-apiserver|kube-controller-manager|kube-scheduler|kwok FLAGS…
//
// Each process runs one component, as its own program would. By the name kubectl, the program is kubectl.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	_ "time/tzdata" // time zones of CronJobs

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // credentials of a kubeconfig
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of client-go
	_ "k8s.io/component-base/metrics/prometheus/version"  // metric of the version
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	"sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"

	"github.com/chandlery/chandlery/test/controlplane/binaries/controllermanager"
)

func main() {
	if filepath.Base(os.Args[0]) == "kubectl" {
		runKubectl()

		return
	}

	components := map[string]func() int{
		"etcd":                    runEtcd,
		"kube-apiserver":          kubernetes(apiserver.NewAPIServerCommand),
		"kube-controller-manager": kubernetes(controllermanager.NewCommand),
		"kube-scheduler":          kubernetes(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
		"kwok":                    runKwok,
	}

	if len(os.Args) < 2 || components[os.Args[1]] == nil {
		fmt.Fprintf(os.Stderr, "no component in %q: the first argument must be the name of a component\n", strings.Join(os.Args, " "))
		os.Exit(2)
	}

	name := os.Args[1]
	os.Args = append([]string{name}, os.Args[2:]...)

	os.Exit(components[name]())
}

// kubernetes returns a function that runs a component of Kubernetes. Commands are created only when they run,
// because they register flags and feature gates of the process.
func kubernetes(newCommand func() *cobra.Command) func() int {
	return func() int { return cli.Run(newCommand()) }
}

// runKubectl ends the process if the command fails.
func runKubectl() {
	// The number of -v also counts while the command is created. Its error appears when the command reads it.
	_, _ = logs.GlogSetter(kubectl.GetLogVerbosity(os.Args))

	err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand())
	if err != nil {
		util.CheckErr(err)
	}
}

func runEtcd() int {
	etcdmain.Main(os.Args)

	return 0
}

func runKwok() int {
	// Components of Kubernetes add --version and others to the flags of the process.
	pflag.CommandLine = pflag.NewFlagSet("kwok", pflag.ExitOnError)

	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}

	ctx, logger := log.InitFlags(signals.SetupSignalContext(), flags)

	ctx, err := config.InitFlags(ctx, flags)
	if err != nil {
		logger.Error("Read the settings", "err", err)

		return 1
	}

	command := kwok.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(flags)

	err = command.ExecuteContext(ctx)
	if err != nil {
		logger.Error("Run kwok", "err", err)

		return 1
	}

	return 0
}
