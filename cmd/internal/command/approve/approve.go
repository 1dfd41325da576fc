// Package approve is the command that approves InstallPlans after showing what they would change.
package approve

import (
	"context"
	"errors"
	"fmt"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/cmd/internal/approval"
	"github.com/chandlery/chandlery/cmd/internal/command/wait"
	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/cmd/internal/plansummary"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

const help = `Show InstallPlans that wait for approval, ask for confirmation, and approve them. Name
the InstallPlans or their Subscriptions. The output shows the versions, their
CustomResourceDefinitions, and the new cluster-wide permissions of their operators. If a
plan changes after the command shows it, the command does not approve the plan.

You can repeat the command. For a plan that does not wait for approval, it prints the
reason.

You need permission to list and patch installplans in the namespace. To name
Subscriptions and to see replaced versions, you also need permission to list
subscriptions and clusterserviceversions. With --dry-run, the output also shows fields
that the API server would drop, and objects of kinds that bundles cannot contain. This
check needs permission to create the objects. If the supervisor has --bundle-kind flags,
set the same flags here.

Exit codes:
  0  every requested plan is approved, or was approved before
  1  the command failed, or you did not confirm
  2  a named object does not exist, or a Subscription has no plan yet; with --wait: a
     plan or version failed, or did not finish in time
  3  a permission is missing
  4  the API server cannot be reached`

// options are the flags of the command.
type options struct {
	connection console.Connection
	output     console.Output
	all        bool
	dryRun     bool
	yes        bool
	wait       bool
	timeout    time.Duration
	program    string
	kinds      plansteps.Kinds
}

// New returns the command "approve" of a program. name is how users call the program, and agent is
// its user agent for API servers.
func New(name, agent string) *cobra.Command {
	o := options{connection: console.Connection{Agent: agent}, program: name}
	cmd := &cobra.Command{
		Use:   "approve [INSTALLPLAN|SUBSCRIPTION]...",
		Short: "Show InstallPlans that wait for approval, and approve them",
		Long:  help,
		Example: "  " + name + " approve argocd -n argocd --dry-run\n" +
			"  " + name + " approve argocd -n argocd --wait\n" +
			"  " + name + " approve --all -n shop --yes",
		ValidArgsFunction: o.connection.CompleteNames(console.InstallPlans(), console.Subscriptions()),
		RunE:              o.run,
	}
	flags := cmd.Flags()
	o.connection.AddFlags(cmd)
	o.connection.AddNamespaceFlag(cmd, "namespace of the objects; empty: the namespace of the kubeconfig's context")
	flags.BoolVar(&o.all, "all", false, "approve all InstallPlans of the namespace that wait for approval")
	flags.BoolVar(&o.dryRun, "dry-run", false, "show the plans, and check your permission to approve them; change nothing")
	flags.Var(&o.kinds, plansteps.FlagKind, "additional kind that bundles may contain, as in the supervisor's --bundle-kind; used by --dry-run; may be repeated")
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation; without a terminal, the command never asks")
	flags.BoolVar(&o.wait, "wait", false, "wait for missing plans, and follow all until their versions are installed or have failed")
	console.AddTimeoutFlag(flags, &o.timeout, 10*time.Minute, "time limit for --wait")
	o.output.AddFlags(cmd)
	return cmd
}

// result is the outcome for a requested InstallPlan.
type result struct {
	plansummary.Summary
	dryRunResult

	// Result is approved, wouldBeApproved or unchanged.
	Result string `json:"result"`
	// Why is the reason why nothing was changed.
	Why string `json:"why,omitempty"`
	// Outcome is installed, failed or unfinished at the end of --wait; empty without it.
	Outcome string `json:"outcome,omitempty"`
}

// The values of Result.
const (
	approved  = "approved"
	dryRun    = "wouldBeApproved"
	unchanged = "unchanged"
)

// The values of Outcome.
const (
	installed  = "installed"
	failed     = "failed"
	unfinished = "unfinished"
)

func (o *options) run(cmd *cobra.Command, names []string) error {
	if err := o.output.Validate(); err != nil {
		return err
	}
	if o.dryRun && o.wait {
		return errors.New("--dry-run and --wait exclude each other: a dry run installs nothing")
	}
	if o.all && len(names) > 0 {
		return errors.New("--all and names of InstallPlans or Subscriptions exclude each other; give one of them")
	}
	namespace, err := o.connection.Namespace()
	if err != nil {
		return err
	}
	c, err := o.connection.CollectingClient()
	if err != nil {
		return err
	}
	return o.approve(cmd, c, namespace, names)
}

func (o *options) approve(cmd *cobra.Command, c client.Client, namespace string, names []string) error {
	w, err := readNamespace(cmd.Context(), c, namespace)
	if err != nil {
		return err
	}
	if len(names) == 0 && !o.all {
		return fmt.Errorf("name InstallPlans or Subscriptions of namespace %s, or give --all; %s", namespace, w.summary())
	}
	if w, err = o.planned(cmd, c, w, names); err != nil {
		return err
	}
	plans, notes, err := w.selectPlans(names, o.all)
	if err != nil {
		return err
	}
	out := printer{output: o.output, out: cmd.OutOrStdout(), namespace: namespace, notes: notes}
	a := approver{Approver: approval.Approver{Client: c, Agent: o.connection.Agent, DryRun: o.dryRun}, kinds: o.kinds}
	results := a.results(cmd.Context(), w, plans)
	if err := out.show(results); err != nil {
		return err
	}
	if err := o.confirm(cmd, plans); err != nil {
		return err
	}
	results, failure := a.approveAll(cmd.Context(), plans, results)
	if err := out.results(results); err != nil {
		return err
	}
	if failure == nil && o.wait {
		f := &waiter{client: c, namespace: namespace, log: cmd.ErrOrStderr(), timeout: o.timeout, program: o.program}
		failure = f.wait(cmd.Context(), plans)
		f.finish(results)
	}
	return o.output.WithDocument(cmd.OutOrStdout(), out.document(results, failure), failure)
}

// planned returns the objects of the namespace with the InstallPlans of the Subscriptions that names select. With --wait, it
// waits for the InstallPlans of new Subscriptions. Otherwise, it returns an error for a Subscription without one.
func (o *options) planned(cmd *cobra.Command, c client.Client, w *namespaceObjects, names []string) (*namespaceObjects, error) {
	if _, _, err := w.selectPlans(names, o.all); err != nil {
		return nil, err
	}
	open := w.unplanned(names)
	if o.wait && len(open) > 0 {
		return o.awaitPlans(cmd, c, w.namespace, names)
	}
	for _, one := range open {
		if name := one.Subscription.Name; one.Plan == nil {
			return nil, &console.Coded{Code: console.Negative, Err: fmt.Errorf("%s %s/%s has no InstallPlan yet; "+
				"repeat the command with --wait, or run '%s wait %s -n %s --for approval' first", operatorsv1alpha1.SubscriptionKind, w.namespace, name, o.program, name, w.namespace)}
		}
	}
	return w, nil
}

// awaitPlans reads the namespace until no Subscription that names select is unplanned.
func (o *options) awaitPlans(cmd *cobra.Command, c client.Client, namespace string, names []string) (*namespaceObjects, error) {
	var last *namespaceObjects
	waiter := console.Waiter{Log: cmd.ErrOrStderr(), Timeout: o.timeout, Aim: "an InstallPlan", Remedy: o.program + " status -n " + namespace}
	err := waiter.Wait(cmd.Context(), func(ctx context.Context) ([]console.WaitState, error) {
		now, err := readNamespace(ctx, c, namespace)
		if err != nil {
			return nil, err
		}
		last = now
		states := []console.WaitState{}
		for _, one := range now.unplanned(names) {
			states = append(states, wait.SubscriptionState(namespace+"/"+one.Subscription.Name, one, wait.Approval, ""))
		}
		return states, nil
	})
	return last, err
}

// readNamespace reads a namespace. Subscriptions and ClusterServiceVersions may be forbidden; they only add details.
func readNamespace(ctx context.Context, c client.Client, namespace string) (*namespaceObjects, error) {
	var plans operatorsv1alpha1.InstallPlanList
	var subscriptions operatorsv1alpha1.SubscriptionList
	var versions operatorsv1alpha1.ClusterServiceVersionList
	for _, one := range []struct {
		list     client.ObjectList
		resource string
		needed   bool
	}{{&plans, "installplans", true}, {&subscriptions, "subscriptions", false}, {&versions, "clusterserviceversions", false}} {
		err := c.List(ctx, one.list, client.InNamespace(namespace))
		if err == nil || !one.needed && apierrors.IsForbidden(err) {
			continue
		}
		return nil, fmt.Errorf("reading the %s of namespace %s: %w", one.resource, namespace, err)
	}
	return &namespaceObjects{namespace: namespace, plans: plans.Items, subscriptions: subscriptions.Items, versions: versions.Items}, nil
}

// confirm asks the user, if there is a terminal and something to approve. It returns an error if the answer is no.
func (o *options) confirm(cmd *cobra.Command, plans []selectedPlan) error {
	count := 0
	for _, c := range plans {
		if c.why == "" {
			count++
		}
	}
	if count == 0 {
		return nil
	}
	what := "it"
	if count > 1 {
		what = fmt.Sprintf("all %d", count)
	}
	return console.Question{Text: "Approve " + what + "?", Refused: "nothing was approved", Yes: o.yes || o.dryRun}.Ask(cmd)
}
