// Package install has the commands that install and upgrade operators.
package install

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
	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/cmd/internal/catalogquery"
	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/cmd/internal/progress"
	"github.com/chandlery/chandlery/supervisor/api/scheme"
	"github.com/chandlery/chandlery/supervisor/dryrun"
	"github.com/chandlery/chandlery/supervisor/dryrun/inputs"
)

const help = `Install an operator: create a Subscription, and its namespace and OperatorGroup if they
are missing. The command first shows these objects and the planned installations. It
creates nothing if the package cannot be installed. With --wait, it approves the first
InstallPlan, even if --approval is Manual.

Exit codes:
  0  the objects exist; with --wait: a version is installed
  1  the command failed
  2  the package cannot be installed, or was not installed in time
  3  a permission is missing
  4  the API server cannot be reached`

// options are the flags of the command.
type options struct {
	connection console.Connection
	output     console.Output
	request    request
	approval   string
	global     string
	dryRun     bool
	yes        bool
	wait       bool
	timeout    time.Duration
}

// New returns the command "install" of a program. name is how users call the program, and agent is its user agent for
// API servers.
func New(name, agent string) *cobra.Command {
	o := &options{connection: console.Connection{Agent: agent}, request: request{program: name}}
	cmd := &cobra.Command{
		Use:               "install PACKAGE",
		Short:             "Install an operator, with its namespace and OperatorGroup",
		Long:              help,
		Example:           "  " + name + " install argocd-operator -n argocd --version 0.8.0 --approval Manual --wait",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              o.run,
	}
	flags := cmd.Flags()
	o.connection.AddFlags(cmd)
	o.connection.AddNamespaceFlag(cmd, "namespace of the objects; empty: the namespace of the kubeconfig's context")
	o.connection.AddCatalogNamespaceFlag(cmd, &o.global)
	flags.StringVar(&o.request.catalog, "catalog", "", "catalog, as [NAMESPACE/]NAME; required if several catalogs have the package, or one cannot be read")
	flags.StringVar(&o.request.channel, "channel", "", "channel; empty: the default")
	flags.StringVar(&o.request.version, "version", "", "first version to install, as a number or ClusterServiceVersion; empty: the newest")
	flags.StringVar(&o.approval, "approval", "", "Automatic or Manual; empty: Automatic for a new Subscription")
	flags.StringSliceVar(&o.request.targets, "target-namespaces", nil, "namespaces that a new OperatorGroup selects; empty: all namespaces if the operator supports them, else the namespace of the OperatorGroup")
	flags.BoolVar(&o.dryRun, "dry-run", false, "show the result; change nothing")
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation; without a terminal, the command never asks")
	flags.BoolVar(&o.wait, "wait", false, "wait until a version is installed")
	console.AddTimeoutFlag(flags, &o.timeout, 10*time.Minute, "time limit for --wait")
	console.Complete(cmd, "approval", cobra.FixedCompletions([]string{"Automatic", "Manual"}, cobra.ShellCompDirectiveNoFileComp))
	global := func(*cobra.Command) (string, error) { return o.global, nil }
	console.Complete(cmd, "catalog", console.CompleteNamesIn(&o.connection, global, console.CatalogSources()))
	for _, free := range []string{"channel", "version"} {
		console.Complete(cmd, free, cobra.NoFileCompletions)
	}
	console.Complete(cmd, "target-namespaces", o.connection.CompleteNamespaces)
	o.output.AddFlags(cmd)
	return cmd
}

func (o *options) run(cmd *cobra.Command, args []string) error {
	if err := o.output.Validate(); err != nil {
		return err
	}
	s, p, err := o.prepare(cmd, args[0])
	if err != nil {
		return o.withDocument(cmd.OutOrStdout(), &plan{Create: []client.Object{}}, outcomeOf(err), err)
	}
	return o.execute(cmd, s, p)
}

// prepare checks the flags, and returns the plan with its planner.
func (o *options) prepare(cmd *cobra.Command, pkg string) (*planner, *plan, error) {
	if err := o.validate(pkg); err != nil {
		return nil, nil, err
	}
	s, err := o.connect(cmd)
	if err != nil {
		return nil, nil, err
	}
	p, err := s.plan(cmd.Context())
	return s, p, err
}

// execute shows a plan and, unless it is a dry run, executes it.
func (o *options) execute(cmd *cobra.Command, s *planner, p *plan) error {
	if err := o.show(cmd.OutOrStdout(), p); err != nil {
		return err
	}
	question := console.Question{Text: "Install it?", Refused: "nothing was installed", Yes: o.yes}
	switch {
	case p.Problem != "":
		return console.Verdict(console.Negative)
	case o.dryRun:
		return o.finish(cmd.OutOrStdout(), p, outcomePlanned)
	case p.uncertain != nil && !question.Asks(cmd):
		return o.withDocument(cmd.OutOrStdout(), p, outcomeBlocked, p.uncertain)
	case len(p.Create) > 0 || o.wait && len(p.Plan.Steps) > 0:
		if err := question.Ask(cmd); err != nil {
			return o.withDocument(cmd.OutOrStdout(), p, outcomePlanned, err)
		}
	}
	return o.install(cmd, s, p)
}

// install creates the missing objects and, with --wait, waits for the installation.
func (o *options) install(cmd *cobra.Command, s *planner, p *plan) error {
	if err := s.create(cmd.Context(), o.connection.Agent, p); err != nil {
		return o.withDocument(cmd.OutOrStdout(), p, outcomeFailed, err)
	}
	if !o.wait {
		return o.finish(cmd.OutOrStdout(), p, outcomeCreated)
	}
	f := follower{
		Client: s.client, Namespace: o.request.namespace, Agent: o.connection.Agent, Log: cmd.ErrOrStderr(), Timeout: o.timeout, Program: o.request.program,
	}
	if err := f.follow(cmd.Context(), p.Subscription, "", first(plansOf(p.Plan, p.Subscription))); err != nil {
		return o.withDocument(cmd.OutOrStdout(), p, outcomeFailed, err)
	}
	return o.finish(cmd.OutOrStdout(), p, outcomeInstalled)
}

func first(plans []versionSet) []versionSet { return plans[:min(1, len(plans))] }

// validate checks the flags and completes the request.
func (o *options) validate(pkg string) error {
	if reasons := validation.IsDNS1123Subdomain(pkg); len(reasons) > 0 {
		return fmt.Errorf("argument %q is not a valid package name: %s; '%s search' lists packages", pkg, strings.Join(reasons, ", "), o.request.program)
	}
	if o.dryRun && o.wait {
		return errors.New("--dry-run and --wait exclude each other: a dry run installs nothing")
	}
	approvals := []string{"", string(operatorsv1alpha1.ApprovalAutomatic), string(operatorsv1alpha1.ApprovalManual)}
	if !slices.Contains(approvals, o.approval) {
		return fmt.Errorf("--approval is %q; it has to be Automatic or Manual", o.approval)
	}
	namespace, err := o.connection.Namespace()
	if err != nil {
		return err
	}
	if reasons := validation.IsDNS1123Label(namespace); len(reasons) > 0 {
		return fmt.Errorf("--namespace is %q: %s", namespace, strings.Join(reasons, ", "))
	}
	if err := validateTargets(o.request.targets); err != nil {
		return err
	}
	o.request.pkg, o.request.namespace, o.request.approval = pkg, namespace, operatorsv1alpha1.Approval(o.approval)
	return nil
}

// validateTargets returns an error for target namespaces that cannot exist or occur twice.
func validateTargets(targets []string) error {
	for i, target := range targets {
		if reasons := validation.IsDNS1123Label(target); len(reasons) > 0 {
			return fmt.Errorf("--target-namespaces has %q, which is not a valid namespace name: %s", target, strings.Join(reasons, ", "))
		}
		if slices.Contains(targets[:i], target) {
			return fmt.Errorf("--target-namespaces has %q twice; write it once", target)
		}
	}
	return nil
}

// connect returns a planner that is connected to the cluster.
func (o *options) connect(cmd *cobra.Command) (*planner, error) {
	cfg, err := o.connection.RESTConfig()
	if err != nil {
		return nil, err
	}
	kinds, err := scheme.New()
	if err != nil {
		return nil, err
	}
	cluster, err := inputs.NewCluster(cfg, kinds)
	if err != nil {
		return nil, err
	}
	c, err := o.connection.Client()
	if err != nil {
		return nil, err
	}
	return &planner{client: c, cluster: cluster, request: &o.request, global: o.global, log: cmd.ErrOrStderr()}, nil
}

// planner plans an installation.
type planner struct {
	client  client.Client
	cluster *inputs.Cluster
	request *request
	global  string
	log     io.Writer
}

// plan is what the command does.
type plan struct {
	// Create are the missing objects.
	Create []client.Object `json:"create"`
	// Subscription is the name of the Subscription.
	Subscription string `json:"subscription"`
	// Plan is what the Subscriptions of the namespace install.
	Plan *dryrun.Result `json:"plan"`
	// Problem is why the package cannot be installed, or why the command failed.
	Problem string `json:"problem,omitempty"`
	// Outcome is what the command did.
	Outcome outcome `json:"outcome"`
	// chosen is what the command installs, with the install modes of its first bundle, which are empty if unknown.
	chosen choice
	modes  []operatorsv1alpha1.InstallMode
	// uncertain is the error for a new Subscription whose catalog may not be the only one with the package.
	uncertain error
}

// plan reads the namespace and the catalogs, and returns what the command would do.
func (s *planner) plan(ctx context.Context) (*plan, error) {
	found, err := readInventory(ctx, s.client, s.request)
	if err != nil {
		return nil, err
	}
	sources, notes, err := s.cluster.Catalogs(ctx, s.request.namespace, s.global)
	if console.CodeOf(err) == console.Forbidden {
		return s.planFromManifests(ctx, found, err)
	}
	if err != nil {
		return nil, err
	}
	done := progress.Start(s.log, false, "Reading "+inputs.DescribeCatalogs(sources))
	contents := s.cluster.Contents(ctx, sources)
	done()
	selected := catalogquery.Select(sources, s.request.catalog)
	chosen, err := choose(s.request, packageOffers(s.request, selected, contents))
	if console.CodeOf(err) == console.Forbidden {
		return s.planFromManifests(ctx, found, err)
	}
	if err != nil {
		addSimilarNames(err, selected, contents)
		return nil, err
	}
	var modes []operatorsv1alpha1.InstallMode
	if len(found.groups) == 0 {
		if modes, err = s.modes(ctx, sources, chosen); err != nil {
			return nil, err
		}
	}
	p := &plan{Outcome: outcomeBlocked, chosen: chosen, modes: modes}
	if p.Create, p.Subscription, err = missing(s.request, chosen, found, modes); err != nil {
		return nil, err
	}
	dryRun := predictor{cluster: s.cluster, global: s.global, log: s.log, contents: contents}
	if p.Plan, err = dryRun.predict(ctx, s.request.namespace, applied(p.Create)); err != nil {
		return nil, err
	}
	if !found.exists {
		p.Plan.Blocked = "" // the namespace is created
	}
	p.Plan.Notes = append(p.Plan.Notes, notes...)
	if p.uncertain = chosen.uncertain(p.Create); p.uncertain != nil {
		p.Plan.Notes = append(p.Plan.Notes, p.uncertain.Error())
	}
	p.Problem = s.request.problemOf(p)
	return p, nil
}

// problemOf returns why the Subscription of a plan would not be installed; empty if it would. With manual approval, the
// command installs the first version, and a problem of a later one is no problem yet.
func (r *request) problemOf(p *plan) string {
	if p.Plan.Blocked == "" && r.approval == operatorsv1alpha1.ApprovalManual && len(plansOf(p.Plan, p.Subscription)) > 0 {
		return ""
	}
	return problemOf(p.Plan, p.Subscription)
}

// applied returns the objects that a dry run takes into account.
func applied(objects []client.Object) []client.Object {
	return slices.DeleteFunc(slices.Clone(objects), func(o client.Object) bool { return o.GetNamespace() == "" })
}

// modes returns the install modes of the chosen bundle.
func (s *planner) modes(ctx context.Context, sources []*operatorsv1alpha1.CatalogSource, c choice) ([]operatorsv1alpha1.InstallMode, error) {
	source := catalogquery.Select(sources, c.catalog.String())
	answer := catalogquery.Each(ctx, s.cluster, source, func(ctx context.Context, conn *grpc.ClientConn) ([]operatorsv1alpha1.InstallMode, error) {
		return catalogquery.InstallModes(ctx, conn, c.entry)
	})[0]
	return answer.Value, answer.Err
}
