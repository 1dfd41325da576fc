package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/supervisor/explain"
	"github.com/chandlery/chandlery/supervisor/explain/snapshot"
)

const help = `Say why a Subscription is not progressing: the cause first, then the way that leads
to it, from the Subscription over catalog, InstallPlan and ClusterServiceVersion to
the Deployment and its pods, then what to do.

Without a SUBSCRIPTION it explains all of the namespace that are not well. It also
explains catalogsource/NAME, installplan/NAME and csv/NAME.

The right to read is enough: the role view of the namespace will do. What may not be
read is named, with the rule that is missing, where the cause may be there. Of what
has come to rest statuses are believed without a look at the supervisor's Lease.

Exit codes:
  0  all is well or on its way, or waits: for time, or to be approved
  1  the command failed
  2  something is wrong, or does not exist
  3  nothing wrong is seen, while something that matters could not be seen
  4  the API server cannot be reached`

// kinds are what may come before the slash of an argument.
var kinds = map[string]string{
	"subscription": explain.KindSubscription, "subscriptions": explain.KindSubscription, "sub": explain.KindSubscription,
	"catalogsource": explain.KindCatalogSource, "catalogsources": explain.KindCatalogSource, "catsrc": explain.KindCatalogSource,
	"installplan": explain.KindInstallPlan, "installplans": explain.KindInstallPlan, "ip": explain.KindInstallPlan,
	"clusterserviceversion": explain.KindVersion, "clusterserviceversions": explain.KindVersion,
	"csv": explain.KindVersion, "csvs": explain.KindVersion,
}

// options are the flags of the command.
type options struct {
	connection console.Connection
	output     console.Output
	everywhere bool
	global     string
	// supervisors are the namespaces where the Lease may be.
	supervisors []string
	program     string
}

// New gives the command "explain" of a program that is called by name and tells API
// servers its agent.
func New(name, agent string) *cobra.Command {
	o := options{connection: console.Connection{Agent: agent}, program: name}
	cmd := &cobra.Command{
		Use:   "explain [SUBSCRIPTION | TYPE/NAME]...",
		Short: "Say why a Subscription is not progressing, and what to do",
		Long:  help,
		Example: fmt.Sprintf("  %[1]s explain argocd -n argocd\n"+
			"  %[1]s explain --all-namespaces\n"+
			"  %[1]s explain catalogsource/community -n olm -o yaml", name),
		ValidArgsFunction: o.connection.CompleteNames(console.Subscriptions()),
		RunE:              o.run,
	}
	flags := cmd.Flags()
	o.connection.AddFlags(cmd)
	o.connection.AddNamespaceFlag(cmd, "namespace to look at; empty: that of the kubeconfig's context")
	o.output.AddFlags(cmd)
	flags.BoolVarP(&o.everywhere, "all-namespaces", "A", false, "explain what is not well in any namespace")
	o.connection.AddCatalogNamespaceFlag(cmd, &o.global)
	flags.StringSliceVar(&o.supervisors, "supervisor-namespace", []string{"chandlery-system"}, "namespaces, separated by commas, where the Lease of the supervisor is looked for by those who may not look everywhere")
	return cmd
}

func (o *options) run(cmd *cobra.Command, args []string) error {
	if err := o.output.Validate(); err != nil {
		return err //nolint:wrapcheck // names the flag by itself
	}
	namespace, err := o.connection.Namespace()
	if err != nil {
		return err //nolint:wrapcheck // says what to do by itself
	}
	subjects, err := o.subjects(namespace, args)
	if err != nil {
		return err
	}
	observation, replicas, err := o.observe(cmd.Context(), namespace, subjects)
	if err != nil {
		return err
	}
	a := answer{named: len(subjects) > 0, namespace: namespace, everywhere: o.everywhere}
	if !a.named {
		subjects = append(goingOf(observation), subscriptionsOf(observation, namespace, o.everywhere)...)
	}
	for _, subject := range subjects {
		a.Explanations = append(a.Explanations, replicas.explain(observation, subject))
	}
	a.listing(observation)
	if err := o.print(cmd, &a); err != nil {
		return err
	}
	if code := a.code(); code != console.Fine {
		return console.Verdict(code)
	}
	return nil
}

// subjects are what the arguments name.
func (o *options) subjects(namespace string, args []string) ([]explain.Ref, error) {
	if o.everywhere && len(args) > 0 {
		return nil, errors.New("--all-namespaces explains everything that is not well; name a namespace with -n to explain " + strings.Join(args, ", "))
	}
	subjects := make([]explain.Ref, 0, len(args))
	for _, arg := range args {
		subject := explain.Ref{Kind: explain.KindSubscription, Namespace: namespace, Name: arg}
		if word, name, typed := strings.Cut(arg, "/"); typed {
			// kubectl writes types with their group: subscription.operators.coreos.com/NAME.
			word, _, _ = strings.Cut(strings.ToLower(word), ".")
			subject.Kind, subject.Name = kinds[word], name
		}
		if subject.Kind == "" || subject.Name == "" {
			return nil, fmt.Errorf("%q cannot be explained; write NAME for a Subscription, or subscription/, catalogsource/, installplan/ or csv/ before another name", arg)
		}
		subjects = append(subjects, subject)
	}
	return subjects, nil
}

// observe reads what there is, and finds out which subjects are copies: where their
// originals are is looked at, too.
func (o *options) observe(ctx context.Context, namespace string, subjects []explain.Ref) (*explain.Observation, copies, error) {
	config, err := o.connection.RESTConfig()
	if err != nil {
		return nil, nil, err //nolint:wrapcheck // says what to do by itself
	}
	reader, err := snapshot.NewClient(config)
	if err != nil {
		return nil, nil, &console.Coded{Code: console.Unreachable, Err: err}
	}
	replicas := originals(ctx, reader, subjects)
	scope := snapshot.Options{GlobalNamespace: o.global, SupervisorNamespaces: append([]string{o.global}, o.supervisors...)}
	if o.everywhere {
		scope.Fallback = namespace
	} else {
		scope.Namespaces = append([]string{namespace}, replicas.namespaces()...)
	}
	observation, err := snapshot.Take(ctx, reader, scope)
	if unreachable := (*snapshot.UnreachableError)(nil); errors.As(err, &unreachable) {
		return nil, nil, fmt.Errorf("%s: %w", config.Host, err)
	}
	return observation, replicas, err //nolint:wrapcheck // says what is missing
}

// goingOf are the namespaces that are being deleted and have no Subscription left that
// would tell of it.
func goingOf(o *explain.Observation) []explain.Ref {
	var subjects []explain.Ref
	for i := range o.Terminating {
		name := o.Terminating[i].Name
		if !slices.ContainsFunc(o.Subscriptions, func(sub operatorsv1alpha1.Subscription) bool { return sub.Namespace == name }) {
			subjects = append(subjects, explain.Ref{Kind: explain.KindNamespace, Name: name})
		}
	}
	return subjects
}

// subscriptionsOf are all Subscriptions that were found in a namespace, or anywhere.
func subscriptionsOf(o *explain.Observation, namespace string, everywhere bool) []explain.Ref {
	var subjects []explain.Ref
	for i := range o.Subscriptions {
		if sub := &o.Subscriptions[i]; everywhere || sub.Namespace == namespace {
			subjects = append(subjects, explain.Ref{Kind: explain.KindSubscription, Namespace: sub.Namespace, Name: sub.Name})
		}
	}
	return subjects
}
