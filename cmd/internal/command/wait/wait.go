// Package wait is the command that waits until Subscriptions are installed and catalogs are ready.
package wait

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/cmd/internal/console"
)

const help = `Wait until Subscriptions reach a state, or catalogs are ready. The command ends early if
a plan or version fails, or a catalog is invalid. A changed Subscription keeps its old
status for some seconds. Set --version to ignore the old status.

Exit codes:
  0  all objects have the state
  1  the command failed
  2  an object failed, does not exist, or did not reach the state in time
  3  a permission is missing
  4  the API server cannot be reached`

// options are the flags of the command.
type options struct {
	connection console.Connection
	output     console.Output
	goal       string
	version    string
	timeout    time.Duration
	program    string
}

// New returns the command "wait" of a program. name is how users call the program, and agent is its
// user agent for API servers.
func New(name, agent string) *cobra.Command {
	o := options{connection: console.Connection{Agent: agent}, program: name}
	cmd := &cobra.Command{
		Use:               "wait (SUBSCRIPTION | catalogsource/NAME)...",
		Short:             "Wait until Subscriptions are installed or catalogs are ready",
		Long:              help,
		Example:           "  " + name + " wait argocd -n argocd --timeout 5m",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: o.connection.CompleteNames(console.Subscriptions()),
		RunE:              o.run,
	}
	flags := cmd.Flags()
	o.connection.AddFlags(cmd)
	o.connection.AddNamespaceFlag(cmd, "namespace of the objects; empty: the namespace of the kubeconfig's context")
	flags.StringVar(&o.goal, "for", string(Installed), "state: installed (any version), latest (state AtLatestKnown), or approval (a plan waits for it)")
	flags.StringVar(&o.version, "version", "", "version, as a number or ClusterServiceVersion; empty: any")
	console.AddTimeoutFlag(flags, &o.timeout, 10*time.Minute, "time limit")
	console.Complete(cmd, "for", cobra.FixedCompletions(goals(), cobra.ShellCompDirectiveNoFileComp))
	console.Complete(cmd, "version", cobra.NoFileCompletions)
	o.output.AddFlags(cmd)
	return cmd
}

// object is an object that the command waits for.
type object struct {
	catalog bool
	name    string
}

func (o *options) run(cmd *cobra.Command, args []string) error {
	if err := o.output.Validate(); err != nil {
		return err
	}
	last, failure := o.wait(cmd, args)
	r := report{Objects: append([]Result{}, last...), Problem: console.Problem(failure)}
	return o.output.WithDocument(cmd.OutOrStdout(), &r, failure)
}

// report is the document of the command.
type report struct {
	Objects []Result `json:"objects"`
	// Problem is why the command failed.
	Problem string `json:"problem,omitempty"`
}

// wait waits for the objects that the arguments name, and returns their last states.
func (o *options) wait(cmd *cobra.Command, args []string) (last []Result, err error) {
	objects, err := parseObjects(args)
	if err != nil {
		return nil, err
	}
	if err := o.validate(objects); err != nil {
		return nil, err
	}
	namespace, err := o.connection.Namespace()
	if err != nil {
		return nil, err
	}
	c, err := o.connection.Client()
	if err != nil {
		return nil, err
	}
	r := Reader{Client: c, Namespace: namespace}
	w := console.Waiter{Log: cmd.ErrOrStderr(), Timeout: o.timeout, Aim: o.aim(objects), Remedy: o.program + " status -n " + namespace}
	err = w.Wait(cmd.Context(), func(ctx context.Context) ([]console.WaitState, error) {
		now, err := o.read(ctx, r, objects)
		if err == nil {
			last = now
		}
		return states(now), err
	})
	return last, err
}

// parseObjects returns the objects that the arguments name.
func parseObjects(args []string) ([]object, error) {
	objects := make([]object, 0, len(args))
	for _, arg := range args {
		kind, name, typed := strings.Cut(arg, "/")
		if !typed {
			kind, name = "subscription", arg
		}
		// kubectl writes types with their group: subscription.operators.coreos.com/NAME.
		kind, _, _ = strings.Cut(strings.ToLower(kind), ".")
		subscription := slices.Contains([]string{"subscription", "subscriptions", "sub"}, kind)
		catalog := slices.Contains([]string{"catalog", "catalogsource", "catalogsources", "catsrc"}, kind)
		if name == "" || !subscription && !catalog {
			return nil, fmt.Errorf("argument %q names no object; write NAME for a Subscription, or catalogsource/NAME", arg)
		}
		objects = append(objects, object{catalog: catalog, name: name})
	}
	return objects, nil
}

// validate returns an error for flags that are invalid for the objects.
func (o *options) validate(objects []object) error {
	if !slices.Contains(goals(), o.goal) {
		return fmt.Errorf("--for is %q; it has to be one of %s", o.goal, strings.Join(goals(), ", "))
	}
	catalogs := slices.ContainsFunc(objects, func(one object) bool { return one.catalog })
	if (o.version != "" || o.goal != string(Installed)) && catalogs {
		return errors.New("--for and --version apply to Subscriptions only; wait for catalogs in a call of their own")
	}
	if o.version != "" && o.goal == string(Approval) {
		return errors.New("--version and --for=approval exclude each other: nothing is installed before the approval")
	}
	return nil
}

// aim returns the awaited result.
func (o *options) aim(objects []object) string {
	switch {
	case slices.ContainsFunc(objects, func(one object) bool { return one.catalog }):
		return "the catalogs to be ready"
	case o.goal == string(Approval):
		return "an InstallPlan to approve"
	case o.goal == string(Latest):
		return "the latest version"
	default:
		return "the installation"
	}
}

// Result is the state of an object, with details.
type Result struct {
	console.WaitState

	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Installed is the installed ClusterServiceVersion of a Subscription.
	Installed string `json:"installed,omitempty"`
	// InstallPlan is the InstallPlan that the Subscription refers to.
	InstallPlan string `json:"installPlan,omitempty"`
}

func states(results []Result) []console.WaitState {
	all := make([]console.WaitState, 0, len(results))
	for _, r := range results {
		all = append(all, r.WaitState)
	}
	return all
}

// read reads the state of each object.
func (o *options) read(ctx context.Context, r Reader, objects []object) ([]Result, error) {
	results := make([]Result, 0, len(objects))
	for _, one := range objects {
		result := Result{Namespace: r.Namespace, Name: one.name}
		if one.catalog {
			source, err := r.Catalog(ctx, one.name)
			if err != nil {
				return nil, err
			}
			result.WaitState = CatalogState(r.Namespace+"/"+one.name, source)
		} else {
			found, err := r.Subscription(ctx, one.name)
			if err != nil {
				return nil, err
			}
			result.WaitState = SubscriptionState(r.Namespace+"/"+one.name, found, Goal(o.goal), o.version)
			result.Installed, result.InstallPlan = found.names()
		}
		results = append(results, result)
	}
	return results, nil
}
