package main

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
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/cmd/internal/flagenv"
	"github.com/chandlery/chandlery/cmd/supervisor/timeline"
	"github.com/chandlery/chandlery/supervisor"
)

// historyOptions are the flags of "supervisor history".
type historyOptions struct {
	namespace  string
	output     string
	kubeconfig string
	watch      bool
}

// historyForms are the forms of the output.
var historyForms = []string{"table", "json", "yaml"}

const historyHelp = `Print what the InstallPlans of Subscriptions went through: every phase with its
time, how long it lasted and how it was seen, then how things stand now and what
can be done. Without a SUBSCRIPTION it tells of all of the namespace.

The supervisor keeps this ledger in an annotation of the Subscription,
chandlery.dev/transitions; it holds the newest 64 transitions. LIVE ones were shown
by the Subscription while they were so, those seen AFTERWARDS when the plan had
already gone on.

--watch goes on and prints each transition, and each change of the state or of a
condition, until it is interrupted. With -o json or yaml it prints a document for
each transition, beginning with those that the ledger holds.

The rights to get, list and watch subscriptions in the namespace are enough; with
the right to list installplans it says, too, which versions a plan installs.`

func newHistoryCommand() *cobra.Command {
	var o historyOptions
	cmd := &cobra.Command{
		Use:   "history [SUBSCRIPTION]...",
		Short: "Show what the InstallPlans of a Subscription went through",
		Long:  historyHelp,
		Example: "  supervisor history argocd -n argocd\n" +
			"  supervisor history argocd -n argocd --watch\n" +
			"  supervisor history -n shop -o json",
		// The names of Subscriptions would have to be asked of the cluster.
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              o.run,
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.namespace, "namespace", "n", "", "namespace of the Subscriptions; empty: that of the kubeconfig's context")
	flags.StringVarP(&o.output, "output", "o", "table", "form of the output: "+strings.Join(historyForms, ", "))
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "path of a kubeconfig file; empty: $KUBECONFIG, then the pod's own account, then ~/.kube/config")
	flags.BoolVarP(&o.watch, "watch", "w", false, "go on, and print what changes")
	for flag, complete := range map[string]cobra.CompletionFunc{
		"output":    cobra.FixedCompletions(historyForms, cobra.ShellCompDirectiveNoFileComp),
		"namespace": cobra.NoFileCompletions,
	} {
		if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
			panic(err) //nolint:forbidigo // the flag has just been added
		}
	}
	flagenv.Describe(flags, envPrefix)
	return cmd
}

func (o *historyOptions) run(cmd *cobra.Command, names []string) error {
	if !slices.Contains(historyForms, o.output) {
		return fmt.Errorf("--output is %q; it has to be one of %s", o.output, strings.Join(historyForms, ", "))
	}
	h, err := o.historian(names)
	if err != nil {
		return err
	}
	h.out, h.log = cmd.OutOrStdout(), cmd.ErrOrStderr()
	found, err := h.read(cmd.Context())
	if err != nil {
		return err
	}
	if o.watch {
		return h.follow(cmd.Context(), found)
	}
	if err := h.print(found); err != nil {
		return err
	}
	return unreadable(found)
}

// historian reads Subscriptions and tells what they went through.
type historian struct {
	client    client.WithWatch
	namespace string
	names     []string
	form      string
	zone      *time.Location
	clock     clock.PassiveClock
	out, log  io.Writer
}

// historian reaches the cluster.
func (o *historyOptions) historian(names []string) (*historian, error) {
	namespace := o.namespace
	if namespace == "" {
		config, _ := clientConfig(o.kubeconfig)
		var err error
		if namespace, _, err = config.Namespace(); err != nil {
			return nil, fmt.Errorf("finding the namespace: %w; set --namespace", err)
		}
	}
	cfg, err := restConfig(o.kubeconfig)
	if err != nil {
		return nil, err
	}
	scheme, err := supervisor.NewScheme()
	if err != nil {
		return nil, err //nolint:wrapcheck // wrapped where it arises
	}
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reaching the API server at %s: %w", cfg.Host, err)
	}
	return &historian{
		client: c, namespace: namespace, names: names, form: o.output,
		zone: time.Local, clock: clock.RealClock{}, //nolint:gosmopolitan // a person reads it here
	}, nil
}

// read reads the Subscriptions that are asked for, ordered by name.
func (h *historian) read(ctx context.Context) ([]timeline.Timeline, error) {
	var list operatorsv1alpha1.SubscriptionList
	if err := h.list(ctx, &list); err != nil {
		return nil, err
	}
	if missing := h.missing(list.Items); len(missing) > 0 {
		return nil, h.notFound(missing, list.Items)
	}
	plans, err := h.installPlans(ctx)
	if err != nil {
		return nil, err
	}
	var found []timeline.Timeline
	for i := range list.Items {
		if h.wants(list.Items[i].Name) {
			found = append(found, timeline.Of(&list.Items[i], plans, h.clock.Now()))
		}
	}
	slices.SortFunc(found, func(a, b timeline.Timeline) int { return strings.Compare(a.Subscription, b.Subscription) })
	return found, nil
}

// list reads the Subscriptions of the namespace; where only those that are asked for
// may be read, these.
func (h *historian) list(ctx context.Context, list *operatorsv1alpha1.SubscriptionList) error {
	err := h.client.List(ctx, list, client.InNamespace(h.namespace))
	if !apierrors.IsForbidden(err) || len(h.names) == 0 {
		return h.explain("list", err)
	}
	for _, name := range h.names {
		var one operatorsv1alpha1.Subscription
		err := h.client.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: name}, &one)
		if client.IgnoreNotFound(err) != nil {
			return h.explain("get", err)
		}
		if err == nil {
			list.Items = append(list.Items, one)
		}
	}
	return nil
}

// explain says what keeps from reading Subscriptions, and what to do.
func (h *historian) explain(verb string, err error) error {
	remedy := ""
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		remedy = fmt.Sprintf("; the right to %s subscriptions.%s in namespace %s is missing", verb, operatorsv1alpha1.GroupName, h.namespace)
	case apimeta.IsNoMatchError(err):
		remedy = "; is the supervisor installed? 'supervisor install-crds' installs the kinds"
	}
	return fmt.Errorf("reading the Subscriptions of namespace %s: %w%s", h.namespace, err, remedy)
}

func (h *historian) wants(name string) bool {
	return len(h.names) == 0 || slices.Contains(h.names, name)
}

// missing are the Subscriptions that are asked for and not there.
func (h *historian) missing(there []operatorsv1alpha1.Subscription) []string {
	return slices.DeleteFunc(slices.Clone(h.names), func(name string) bool {
		return slices.ContainsFunc(there, func(sub operatorsv1alpha1.Subscription) bool { return sub.Name == name })
	})
}

func (h *historian) notFound(missing []string, there []operatorsv1alpha1.Subscription) error {
	names := make([]string, 0, len(there))
	for i := range there {
		names = append(names, there[i].Name)
	}
	has := "no Subscription that can be seen; --namespace (-n) names another"
	if len(names) > 0 {
		has = strings.Join(names, ", ")
	}
	return fmt.Errorf("namespace %s has no Subscription %s; it has %s", h.namespace, strings.Join(missing, ", "), has)
}

// installPlans reads the InstallPlans of the namespace: whoever may not is not told what they
// install.
func (h *historian) installPlans(ctx context.Context) ([]operatorsv1alpha1.InstallPlan, error) {
	var list operatorsv1alpha1.InstallPlanList
	err := h.client.List(ctx, &list, client.InNamespace(h.namespace))
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("reading the InstallPlans of namespace %s: %w", h.namespace, err)
	}
	return list.Items, nil
}

// unreadable is the error of ledgers that cannot be read.
func unreadable(found []timeline.Timeline) error {
	var problems []error
	for i := range found {
		if found[i].Problem != "" {
			problems = append(problems, errors.New(found[i].Problem))
		}
	}
	return errors.Join(problems...)
}
