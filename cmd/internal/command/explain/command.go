package explain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/supervisor/explain"
	"github.com/chandlery/chandlery/supervisor/explain/snapshot"
)

const help = `Explain why a Subscription does not progress. The output shows the cause, the objects
between the Subscription and the cause, and the remedy. Without a SUBSCRIPTION, the
command explains each unhealthy Subscription of the namespace. You can also name
catalogsource/NAME, installplan/NAME or csv/NAME.

Read access is enough, for example through a RoleBinding to the ClusterRole view. If you
cannot read an object that may contain the cause, the output names the object and the
missing RBAC rule. If you cannot read the supervisor's Lease, the command trusts healthy
statuses, which may be out of date.

Exit codes:
  0  everything is healthy, in progress or waiting
  1  the command failed
  2  there is a problem, or a named object does not exist
  3  no problem was found, but a relevant object could not be read
  4  the API server cannot be reached`

// kinds maps the types in arguments to kinds.
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
	// supervisors are the namespaces that may hold the Lease.
	supervisors []string
	program     string
}

// New returns the command "explain" of a program. name is how users call the program, and agent is
// its user agent for API servers.
func New(name, agent string) *cobra.Command {
	o := options{connection: console.Connection{Agent: agent}, program: name}
	cmd := &cobra.Command{
		Use:   "explain [SUBSCRIPTION | TYPE/NAME]...",
		Short: "Explain why a Subscription does not progress, and how to fix it",
		Long:  help,
		Example: fmt.Sprintf("  %[1]s explain argocd -n argocd\n"+
			"  %[1]s explain --all-namespaces\n"+
			"  %[1]s explain catalogsource/community -n olm -o yaml", name),
		ValidArgsFunction: o.connection.CompleteNames(console.Subscriptions()),
		RunE:              o.run,
	}
	flags := cmd.Flags()
	o.connection.AddFlags(cmd)
	o.connection.AddNamespaceFlag(cmd, "namespace of the objects; empty: the namespace of the kubeconfig's context")
	o.output.AddFlags(cmd)
	flags.BoolVarP(&o.everywhere, "all-namespaces", "A", false, "explain the unhealthy objects of all namespaces")
	o.connection.AddCatalogNamespaceFlag(cmd, &o.global)
	flags.StringSliceVar(&o.supervisors, "supervisor-namespace", []string{"chandlery-system"}, "namespaces to search for the supervisor's Lease, if you cannot list Leases in all namespaces")
	return cmd
}

func (o *options) run(cmd *cobra.Command, args []string) error {
	if err := o.output.Validate(); err != nil {
		return err //nolint:wrapcheck // the error names the flag
	}
	namespace, err := o.connection.Namespace()
	if err != nil {
		return err //nolint:wrapcheck // the error states the remedy
	}
	subjects, err := o.subjects(namespace, args)
	if err != nil {
		return err
	}
	cluster, err := o.connection.Cluster()
	if err != nil {
		return err //nolint:wrapcheck // says what to do by itself
	}
	if !o.output.ForMachines() {
		_, _ = io.WriteString(cmd.ErrOrStderr(), cluster.Header())
	}
	state, copied, err := o.read(cmd.Context(), namespace, subjects)
	if err != nil {
		return err
	}
	a := answer{Cluster: cluster, named: len(subjects) > 0, namespace: namespace, everywhere: o.everywhere}
	if !a.named {
		subjects = append(terminatingNamespaces(state), subscriptionsOf(state, namespace, o.everywhere)...)
	}
	for _, subject := range subjects {
		a.Explanations = append(a.Explanations, copied.explain(state, subject))
	}
	a.recordUnlisted(state)
	if err := o.print(cmd, &a); err != nil {
		return err
	}
	if code := a.code(); code != console.Fine {
		return console.Verdict(code)
	}
	return nil
}

// subjects returns the objects that the arguments name.
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

// read reads the cluster and finds the subjects that are copied ClusterServiceVersions. It also
// reads the namespaces of their originals.
func (o *options) read(ctx context.Context, namespace string, subjects []explain.Ref) (*explain.ClusterState, copiedVersions, error) {
	config, err := o.connection.RESTConfig()
	if err != nil {
		return nil, nil, err //nolint:wrapcheck // the error states the remedy
	}
	reader, err := snapshot.NewClient(config)
	if err != nil {
		return nil, nil, &console.Coded{Code: console.Unreachable, Err: err}
	}
	copied := findCopiedVersions(ctx, reader, subjects)
	scope := snapshot.Options{GlobalNamespace: o.global, SupervisorNamespaces: append([]string{o.global}, o.supervisors...)}
	if o.everywhere {
		scope.Fallback = namespace
	} else {
		scope.Namespaces = append([]string{namespace}, copied.namespaces()...)
	}
	state, err := snapshot.Read(ctx, reader, scope)
	if unreachable := (*explain.UnreachableError)(nil); errors.As(err, &unreachable) {
		return nil, nil, fmt.Errorf("%s: %w", config.Host, err)
	}
	return state, copied, err //nolint:wrapcheck // says what is missing
}

// terminatingNamespaces returns the namespaces that are being deleted and have no Subscription left.
func terminatingNamespaces(o *explain.ClusterState) []explain.Ref {
	var subjects []explain.Ref
	for i := range o.Terminating {
		name := o.Terminating[i].Name
		if !slices.ContainsFunc(o.Subscriptions, func(sub operatorsv1alpha1.Subscription) bool { return sub.Namespace == name }) {
			subjects = append(subjects, explain.Ref{Kind: explain.KindNamespace, Name: name})
		}
	}
	return subjects
}

// subscriptionsOf returns all Subscriptions in a namespace, or in all namespaces.
func subscriptionsOf(o *explain.ClusterState, namespace string, everywhere bool) []explain.Ref {
	var subjects []explain.Ref
	for i := range o.Subscriptions {
		if sub := &o.Subscriptions[i]; everywhere || sub.Namespace == namespace {
			subjects = append(subjects, explain.Ref{Kind: explain.KindSubscription, Namespace: sub.Namespace, Name: sub.Name})
		}
	}
	return subjects
}
