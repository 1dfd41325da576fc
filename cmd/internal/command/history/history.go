// Package history is the command that shows the transitions of the InstallPlans of Subscriptions.
package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/cmd/internal/command/history/timeline"
	"github.com/chandlery/chandlery/cmd/internal/console"
)

// options are the flags of the command.
type options struct {
	connection console.Connection
	output     console.Output
	watch      bool
	program    string
}

const help = `Print the history of a Subscription: each phase of its InstallPlans, with time and
duration. Then print the current state and the possible next actions. Without a
SUBSCRIPTION, the command prints the history of each Subscription of the namespace.

The annotation chandlery.dev/transitions stores the newest 64 transitions. In the column
SEEN, "live" means that the supervisor recorded a phase before the next phase began. With
"afterwards", it recorded the phase later.

With --watch, the command also prints new transitions, and changes of the state and of
conditions. With -o json or yaml, it prints one document for each transition.

You need permission to get, list and watch subscriptions in the namespace. With
permission to list installplans, the output also shows the versions of each plan.

Exit codes:
  0  the history was printed
  1  the command failed, or an annotation cannot be parsed
  3  a permission is missing
  4  the API server cannot be reached`

// New returns the command "history" of a program. name is how users call the program, and agent is
// its user agent for API servers.
func New(name, agent string) *cobra.Command {
	o := options{connection: console.Connection{Agent: agent}, program: name}
	cmd := &cobra.Command{
		Use:   "history [SUBSCRIPTION]...",
		Short: "Show the InstallPlan history of a Subscription",
		Long:  help,
		Example: "  " + name + " history argocd -n argocd\n" +
			"  " + name + " history argocd -n argocd --watch\n" +
			"  " + name + " history -n shop -o json",
		ValidArgsFunction: o.connection.CompleteNames(console.Subscriptions()),
		RunE:              o.run,
	}
	flags := cmd.Flags()
	o.connection.AddFlags(cmd)
	o.connection.AddNamespaceFlag(cmd, "namespace of the objects; empty: the namespace of the kubeconfig's context")
	o.output.AddFlags(cmd)
	flags.BoolVarP(&o.watch, "watch", "w", false, "keep running, and print changes")
	return cmd
}

func (o *options) run(cmd *cobra.Command, names []string) error {
	if err := o.output.Validate(); err != nil {
		return err //nolint:wrapcheck // names the flag
	}
	r, err := o.runner(names)
	if err != nil {
		return err
	}
	r.out, r.log = cmd.OutOrStdout(), cmd.ErrOrStderr()
	found, err := r.read(cmd.Context())
	if err != nil {
		return err
	}
	if o.watch {
		return r.watchChanges(cmd.Context(), found)
	}
	if err := r.print(found); err != nil {
		return err
	}
	return unreadable(found)
}

// runner reads Subscriptions and returns their timelines.
type runner struct {
	client    client.WithWatch
	namespace string
	names     []string
	output    *console.Output
	program   string
	zone      *time.Location
	clock     clock.PassiveClock
	out, log  io.Writer
}

// runner returns a runner that is connected to the cluster.
func (o *options) runner(names []string) (*runner, error) {
	namespace, err := o.connection.Namespace()
	if err != nil {
		return nil, err //nolint:wrapcheck // names the flag
	}
	c, err := o.connection.Client()
	if err != nil {
		return nil, err //nolint:wrapcheck // says where it looked
	}
	return &runner{
		client: c, namespace: namespace, names: names, output: &o.output, program: o.program,
		zone: time.Local, clock: clock.RealClock{}, //nolint:gosmopolitan // a person reads it here
	}, nil
}

// read reads the requested Subscriptions, sorted by name.
func (r *runner) read(ctx context.Context) ([]timeline.Timeline, error) {
	var list operatorsv1alpha1.SubscriptionList
	if err := r.list(ctx, &list); err != nil {
		return nil, err
	}
	if missing := r.missing(list.Items); len(missing) > 0 {
		return nil, r.notFound(missing, list.Items)
	}
	plans, err := r.installPlans(ctx)
	if err != nil {
		return nil, err
	}
	var found []timeline.Timeline
	for i := range list.Items {
		if r.isRequested(list.Items[i].Name) {
			found = append(found, timeline.Of(&list.Items[i], plans, r.program, r.clock.Now()))
		}
	}
	slices.SortFunc(found, func(a, b timeline.Timeline) int { return strings.Compare(a.Subscription, b.Subscription) })
	return found, nil
}

// list reads the Subscriptions of the namespace. If the user may not list them, it reads the named ones.
func (r *runner) list(ctx context.Context, list *operatorsv1alpha1.SubscriptionList) error {
	err := r.client.List(ctx, list, client.InNamespace(r.namespace))
	if !apierrors.IsForbidden(err) || len(r.names) == 0 {
		return r.readError(err)
	}
	for _, name := range r.names {
		var one operatorsv1alpha1.Subscription
		err := r.client.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, &one)
		if client.IgnoreNotFound(err) != nil {
			return r.readError(err)
		}
		if err == nil {
			list.Items = append(list.Items, one)
		}
	}
	return nil
}

// readError returns the error for Subscriptions that cannot be read; nil without an error.
func (r *runner) readError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("reading the Subscriptions of namespace %s: %w", r.namespace, err)
}

func (r *runner) isRequested(name string) bool {
	return len(r.names) == 0 || slices.Contains(r.names, name)
}

// missing returns the requested Subscriptions that do not exist.
func (r *runner) missing(existing []operatorsv1alpha1.Subscription) []string {
	return slices.DeleteFunc(slices.Clone(r.names), func(name string) bool {
		return slices.ContainsFunc(existing, func(sub operatorsv1alpha1.Subscription) bool { return sub.Name == name })
	})
}

func (r *runner) notFound(missing []string, existing []operatorsv1alpha1.Subscription) error {
	names := make([]string, 0, len(existing))
	for i := range existing {
		names = append(names, existing[i].Name)
	}
	has := "no visible Subscription; --namespace (-n) names another"
	if len(names) > 0 {
		has = strings.Join(names, ", ")
	}
	return fmt.Errorf("namespace %s has no Subscription %s; it has %s", r.namespace, strings.Join(missing, ", "), has)
}

// installPlans reads the InstallPlans of the namespace. It returns none if the user may not read
// them; then the output lacks what they install.
func (r *runner) installPlans(ctx context.Context) ([]operatorsv1alpha1.InstallPlan, error) {
	var list operatorsv1alpha1.InstallPlanList
	err := r.client.List(ctx, &list, client.InNamespace(r.namespace))
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("reading the InstallPlans of namespace %s: %w", r.namespace, err)
	}
	return list.Items, nil
}

// unreadable returns the errors of transition logs that cannot be parsed.
func unreadable(found []timeline.Timeline) error {
	var problems []error
	for i := range found {
		if found[i].Problem != "" {
			problems = append(problems, errors.New(found[i].Problem))
		}
	}
	return errors.Join(problems...)
}
