// Package approve is the command that approves InstallPlans after showing what they would change.
package approve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/cmd/internal/proposal"
	"github.com/chandlery/chandlery/cmd/internal/terminal"
)

const help = `Approve InstallPlans that wait. Name an InstallPlan, or a Subscription that it serves.
The command first shows what each plan would install: the versions, their
CustomResourceDefinitions, and the new rights of their operators in the whole cluster.
On a terminal it then asks for confirmation. A plan that changes after it was shown is
not approved.

You can repeat the command. It reports a plan that does not wait, and changes nothing.

You need the rights to list and patch installplans in the namespace. With the right to
list subscriptions you can name a Subscription. With the right to list
clusterserviceversions the output also names the versions that are replaced. With
--dry-run the output also names the fields that the cluster does not know and would
drop, in objects that you may create.

Exit codes: 0 when every requested plan is approved, or was already; 1 when the command
failed, or the answer was no; 2 when a plan or version failed or was not done in time
(--wait); 3 when the right to approve is missing; 4 when the API server cannot be
reached.`

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
}

// New returns the command "approve" of a program. name is how users call the program, and agent is
// its user agent for API servers.
func New(name, agent string) *cobra.Command {
	o := options{connection: console.Connection{Agent: agent}, program: name}
	cmd := &cobra.Command{
		Use:   "approve [INSTALLPLAN|SUBSCRIPTION]...",
		Short: "Show what waiting InstallPlans change, and approve them",
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
	flags.BoolVar(&o.dryRun, "dry-run", false, "show what would be approved, and check with the API server that you may approve it; change nothing")
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation; without a terminal the command proceeds without asking")
	flags.BoolVar(&o.wait, "wait", false, "follow the plans until their versions are installed or have failed")
	flags.DurationVar(&o.timeout, "timeout", 10*time.Minute, "time limit for --wait")
	o.output.AddFlags(cmd)
	return cmd
}

// result is the outcome for a requested InstallPlan.
type result struct {
	proposal.Proposal
	rehearsal

	// Result is approved, wouldBeApproved or unchanged.
	Result string `json:"result"`
	// Why is the reason why nothing was changed.
	Why string `json:"why,omitempty"`
}

// The values of Result.
const (
	approved  = "approved"
	dryRun    = "wouldBeApproved"
	unchanged = "unchanged"
)

// approver approves plans.
type approver struct {
	*options

	client    client.Client
	namespace string
	in        io.Reader
	out, log  io.Writer
}

func (o *options) run(cmd *cobra.Command, names []string) error {
	if err := o.output.Validate(); err != nil {
		return err //nolint:wrapcheck // names the flag
	}
	if o.dryRun && o.wait {
		return errors.New("--dry-run and --wait exclude each other: what is not approved is not installed")
	}
	namespace, err := o.connection.Namespace()
	if err != nil {
		return err //nolint:wrapcheck // names the flag
	}
	c, err := o.connection.CollectingClient()
	if err != nil {
		return err //nolint:wrapcheck // says where it looked
	}
	a := &approver{options: o, client: c, namespace: namespace, in: cmd.InOrStdin(), out: cmd.OutOrStdout(), log: cmd.ErrOrStderr()}
	return a.approve(cmd.Context(), names)
}

func (a *approver) approve(ctx context.Context, names []string) error {
	w, err := a.read(ctx)
	if err != nil {
		return err
	}
	if len(names) == 0 && !a.all {
		return fmt.Errorf("name InstallPlans or Subscriptions of namespace %s, or give --all; %s", a.namespace, w.has())
	}
	choices, notes, err := w.choose(names, a.all)
	if err != nil {
		return err
	}
	results := a.results(ctx, w, choices)
	if err := a.show(results, notes); err != nil {
		return err
	}
	if !a.confirmed(choices) {
		return errors.New("nothing was approved")
	}
	failure := a.approveAll(ctx, choices, results)
	if err := a.tell(results, notes); err != nil {
		return err
	}
	if failure == nil && a.wait {
		failure = a.follow(ctx, choices)
	}
	return failure
}

// results returns what each InstallPlan would change.
func (a *approver) results(ctx context.Context, w *world, choices []choice) []result {
	results := make([]result, 0, len(choices))
	for _, c := range choices {
		one := result{Proposal: proposal.Of(c.plan, w.versions), Result: unchanged, Why: c.why}
		if a.dryRun && c.why == "" {
			one.rehearsal = rehearse(ctx, a.client, c.plan)
		}
		results = append(results, one)
	}
	return results
}

// read reads the namespace. Subscriptions and ClusterServiceVersions may be forbidden; they only add details.
func (a *approver) read(ctx context.Context) (*world, error) {
	var plans operatorsv1alpha1.InstallPlanList
	var subscriptions operatorsv1alpha1.SubscriptionList
	var versions operatorsv1alpha1.ClusterServiceVersionList
	for _, one := range []struct {
		list     client.ObjectList
		resource string
		needed   bool
	}{{&plans, "installplans", true}, {&subscriptions, "subscriptions", false}, {&versions, "clusterserviceversions", false}} {
		err := a.client.List(ctx, one.list, client.InNamespace(a.namespace))
		if err == nil || !one.needed && apierrors.IsForbidden(err) {
			continue
		}
		err = fmt.Errorf("reading the %s of namespace %s: %w", one.resource, a.namespace, err)
		if apierrors.IsForbidden(err) {
			err = fmt.Errorf("%w; %s", err, missingRule(one.resource, "list"))
		}
		return nil, err
	}
	return &world{namespace: a.namespace, plans: plans.Items, subscriptions: subscriptions.Items, versions: versions.Items}, nil
}

func missingRule(resource, verb string) string {
	return fmt.Sprintf("the missing rule: {apiGroups: [%s], resources: [%s], verbs: [%s]}", operatorsv1alpha1.GroupName, resource, verb)
}

// confirmed asks the user, if there is a terminal and something to approve.
func (a *approver) confirmed(choices []choice) bool {
	count := 0
	for _, c := range choices {
		if c.why == "" {
			count++
		}
	}
	if count == 0 || a.yes || a.dryRun || !terminal.IsTerminal(a.log) || !isTerminal(a.in) {
		return true
	}
	what := "it"
	if count > 1 {
		what = fmt.Sprintf("all %d", count)
	}
	return console.Confirm(a.in, a.log, "Approve "+what+"?")
}

func isTerminal(in io.Reader) bool {
	out, is := in.(io.Writer)
	return is && terminal.IsTerminal(out)
}

// approveAll approves the waiting InstallPlans and records the results. One failure does not stop the others.
func (a *approver) approveAll(ctx context.Context, choices []choice, results []result) error {
	var failures []error
	for i, c := range choices {
		if c.why != "" {
			continue
		}
		if err := a.approveOne(ctx, c.plan, &results[i]); err != nil {
			failures = append(failures, err)
			results[i].Why = err.Error()
		}
	}
	return errors.Join(failures...)
}

// maxTries bounds the attempts to approve an InstallPlan to which other clients write.
const maxTries = 5

// approveOne approves an InstallPlan as it was shown.
func (a *approver) approveOne(ctx context.Context, p *operatorsv1alpha1.InstallPlan, shown *result) error {
	version := p.ResourceVersion
	for range maxTries {
		err := a.patch(ctx, p, version)
		if err == nil {
			shown.Result, shown.Approved = approved, true
			if a.dryRun {
				shown.Result, shown.Approved = dryRun, false
			}
			return nil
		}
		if !apierrors.IsConflict(err) {
			return a.explain(p, err)
		}
		var now operatorsv1alpha1.InstallPlan
		if err := a.client.Get(ctx, client.ObjectKeyFromObject(p), &now); err != nil {
			return a.explain(p, err)
		}
		switch {
		case now.UID != p.UID || contentOf(&now) != contentOf(p):
			return fmt.Errorf("InstallPlan %s/%s has changed since it was shown, and was not approved; look at it again", p.Namespace, p.Name)
		case settled(&now) != "":
			shown.Why = settled(&now)
			return nil
		}
		version = now.ResourceVersion
	}
	return fmt.Errorf("InstallPlan %s/%s is written to so often that it could not be approved in %d tries; try again", p.Namespace, p.Name, maxTries)
}

// contentOf returns what the user decides on: the versions and the planned objects.
func contentOf(p *operatorsv1alpha1.InstallPlan) string {
	steps := make([]operatorsv1alpha1.StepResource, 0, len(p.Status.Plan))
	for _, step := range p.Status.Plan {
		if step != nil {
			steps = append(steps, step.Resource)
		}
	}
	text, err := json.Marshal([]any{p.Spec.ClusterServiceVersionNames, steps})
	if err != nil {
		panic(err) //nolint:forbidigo // texts always marshal
	}
	return string(text)
}

// patch approves an InstallPlan if it still has a resource version.
func (a *approver) patch(ctx context.Context, p *operatorsv1alpha1.InstallPlan, version string) error {
	text, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": version, "uid": p.UID},
		"spec":     map[string]any{"approved": true},
	})
	if err != nil {
		return fmt.Errorf("encoding the patch: %w", err)
	}
	options := []client.PatchOption{client.FieldOwner(a.connection.Agent)}
	if a.dryRun {
		options = append(options, client.DryRunAll)
	}
	return a.client.Patch(ctx, p.DeepCopy(), client.RawPatch(types.MergePatchType, text), options...) //nolint:wrapcheck // explain says what it is about
}

// explain returns the error for an InstallPlan that could not be approved, with a remedy.
func (*approver) explain(p *operatorsv1alpha1.InstallPlan, err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("approving InstallPlan %s/%s: %w; %s", p.Namespace, p.Name, err, missingRule("installplans", "patch"))
	case apierrors.IsNotFound(err):
		return fmt.Errorf("InstallPlan %s/%s was deleted before it could be approved", p.Namespace, p.Name)
	default:
		return fmt.Errorf("approving InstallPlan %s/%s: %w", p.Namespace, p.Name, err)
	}
}
