// Package discover is the command that shows whether APIs and the operators behind them are in a cluster.
package discover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/cmd/internal/progress"
	"github.com/chandlery/chandlery/supervisor/discovery"
)

const help = `Report whether APIs are in the cluster, whether you can read them, and whether an
operator reconciles them. Name an API as in kubectl: servicemonitors, ServiceMonitor,
servicemonitors.monitoring.coreos.com or ServiceMonitor.v1.monitoring.coreos.com. The
command looks up a name without dots first in its default list, then in the core group.

Without arguments, the command checks its default list: the kinds of
operators.coreos.com, and the APIs that the supervisor uses if the cluster has them.

--deployment, --selector, --lease and --owned identify the operator of the given APIs.
Each Deployment, Lease or ClusterServiceVersion that these flags select must be healthy.

Exit codes:
  0  Installed: the API can be used
  1  the command failed
  2  NotInstalled: the cluster does not have the API
  3  Forbidden: you lack permission to read the API, or to check whether it exists;
     --role prints the missing RBAC rules
  4  Unreachable: the check failed, or the API does not work
  5  Degraded: nothing reconciles the API

The worst result sets the exit code. From worst to best: 4, 3, 2, 5, 0. A missing
optional API changes the exit code only if you name the API.`

// parallel is the number of concurrent requests for APIs.
const parallel = 8

// options are the flags of the command.
type options struct {
	connection          console.Connection
	output              console.Output
	namespace           string
	supervisorNamespace string
	deployment, lease   string
	selector            string
	owned, role         bool
	program             string
}

// New returns the command "discover" of a program. name is how users call the program, and agent is
// its user agent for API servers.
func New(name, agent string) *cobra.Command {
	o := options{connection: console.Connection{Agent: agent}, program: name}
	cmd := &cobra.Command{
		Use:   "discover [RESOURCE|KIND[.VERSION][.GROUP]]...",
		Short: "Report whether APIs are installed, readable and reconciled",
		Long:  help,
		Example: "  " + name + " discover\n" +
			"  " + name + " discover servicemonitors.monitoring.coreos.com --selector app.kubernetes.io/name=prometheus-operator\n" +
			"  " + name + " discover Widget.v1.example.com --as alice --role | kubectl apply -f -\n" +
			"  " + name + " discover subscriptions -n shop -o json",
		ValidArgsFunction: complete,
		RunE:              o.run,
	}
	flags := cmd.Flags()
	o.connection.AddFlags(cmd)
	flags.StringVarP(&o.namespace, "namespace", "n", "", "namespace in which to check read access to the APIs; empty: all namespaces")
	flags.StringVar(&o.supervisorNamespace, "supervisor-namespace", "", "namespace of the supervisor's Lease, which shows whether the kinds of operators.coreos.com are reconciled; empty: any namespace")
	flags.StringVar(&o.deployment, "deployment", "", "Deployment that reconciles the given APIs, as NAMESPACE/NAME")
	flags.StringVar(&o.selector, "selector", "", "labels of the Deployments that reconcile the given APIs")
	flags.StringVar(&o.lease, "lease", "", "Lease that the operator of the given APIs holds, as NAMESPACE/NAME")
	flags.BoolVar(&o.owned, "owned", false, "require that a ClusterServiceVersion owns the given APIs")
	flags.BoolVar(&o.role, "role", false, "print only the missing RBAC rules, as YAML for kubectl apply")
	console.Complete(cmd, "namespace", o.connection.CompleteNamespaces)
	o.output.AddFlags(cmd)
	return cmd
}

func complete(_ *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var names []cobra.Completion
	for _, one := range known("") {
		names = append(names, one.Resource+"."+one.Group)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (o *options) run(cmd *cobra.Command, args []string) error {
	if err := o.output.Validate(); err != nil {
		return err //nolint:wrapcheck // names the flag
	}
	targets, err := o.targets(args)
	if err != nil {
		return err
	}
	cfg, err := o.connection.RESTConfig()
	if err != nil {
		return err //nolint:wrapcheck // says where it looked
	}
	cluster, err := o.connection.Cluster()
	if err != nil {
		return err //nolint:wrapcheck // says where it looked
	}
	if !o.output.ForMachines() {
		_, _ = io.WriteString(cmd.ErrOrStderr(), cluster.Header())
	}
	finder, err := discovery.New(cfg, discovery.Options{RequestTimeout: cfg.Timeout})
	if err != nil {
		return err //nolint:wrapcheck // says what it prepared
	}
	done := progress.Start(cmd.ErrOrStderr(), o.output.ForMachines() || o.role, "asking the API server")
	err = o.setOperators(cmd.Context(), targets)
	var found []checkResult
	if err == nil {
		found, err = check(cmd.Context(), finder, targets)
	}
	done()
	if err != nil {
		return err
	}
	if err := o.print(cmd.OutOrStdout(), cmd.ErrOrStderr(), cluster, found); err != nil {
		return err
	}
	if code := exitCode(found); code != console.Fine {
		return console.Verdict(code)
	}
	return nil
}

// targets returns the APIs to check.
func (o *options) targets(args []string) ([]requestedAPI, error) {
	all := known(o.namespace)
	ref, err := o.operatorRef()
	if err != nil {
		return nil, err
	}
	if len(args) == 0 {
		if ref != (discovery.OperatorRef{}) {
			return nil, errors.New("--deployment, --selector, --lease and --owned need an API as argument")
		}
		return all, nil
	}
	targets := make([]requestedAPI, 0, len(args))
	for _, argument := range args {
		one, err := parse(argument, all)
		if err != nil {
			return nil, err
		}
		if ref != (discovery.OperatorRef{}) {
			one.Operator, one.managed = ref, false
		}
		if one.Namespace == "" && (one.Kind == "" || one.Resource == "") {
			one.Namespace = o.namespace
		}
		targets = append(targets, one)
	}
	return targets, nil
}

// setOperators sets the operator of the APIs that a lifecycle manager reconciles.
func (o *options) setOperators(ctx context.Context, targets []requestedAPI) error {
	if !slices.ContainsFunc(targets, func(w requestedAPI) bool { return w.managed }) {
		return nil
	}
	c, err := o.connection.Client()
	if err != nil {
		return err //nolint:wrapcheck // says what it prepared
	}
	ref := manager(ctx, c, o.supervisorNamespace)
	for i := range targets {
		if targets[i].managed {
			targets[i].Operator = ref
		}
	}
	return nil
}

func (o *options) operatorRef() (discovery.OperatorRef, error) {
	deployment, err := namespaced("deployment", o.deployment)
	if err != nil {
		return discovery.OperatorRef{}, err
	}
	lease, err := namespaced("lease", o.lease)
	if err != nil {
		return discovery.OperatorRef{}, err
	}
	if deployment.Name != "" && o.selector != "" {
		return discovery.OperatorRef{}, errors.New("--deployment and --selector exclude each other; set one of them")
	}
	return discovery.OperatorRef{Owned: o.owned, Deployment: deployment, Selector: o.selector, Lease: lease}, nil
}

// checkResult is the result for one API.
type checkResult struct {
	requestedAPI

	result discovery.Result
}

// check checks all APIs.
func check(ctx context.Context, finder *discovery.Finder, targets []requestedAPI) ([]checkResult, error) {
	found := make([]checkResult, len(targets))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, target := range targets {
		group.Go(func() error {
			result, err := finder.Find(ctx, discovery.Auto, target.Target)
			found[i] = checkResult{target, result}
			return err //nolint:wrapcheck // names the API
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("checking APIs: %w", err)
	}
	return found, nil
}

// outcomeCodes lists the outcomes, worst first, with their exit codes.
var outcomeCodes = []struct {
	outcome discovery.Outcome
	code    console.Code
}{
	{discovery.Unreachable, console.Unreachable},
	{discovery.Forbidden, console.Forbidden},
	{discovery.NotInstalled, console.Negative},
	{discovery.Degraded, console.Degraded},
}

// exitCode returns the exit code of the worst result.
func exitCode(found []checkResult) console.Code {
	for _, rank := range outcomeCodes {
		for i := range found {
			f := &found[i]
			if f.result.Outcome == rank.outcome && !f.isMissingOptional() {
				return rank.code
			}
		}
	}
	return console.Fine
}
