package install

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/cmd/internal/access"
	"github.com/chandlery/chandlery/cmd/internal/approval"
	"github.com/chandlery/chandlery/cmd/internal/command/wait"
	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/scheme"
	"github.com/chandlery/chandlery/supervisor/dryrun"
	"github.com/chandlery/chandlery/supervisor/dryrun/inputs"
)

const upgradeHelp = `Upgrade an operator, and wait until the upgrade is complete. The command first shows
the steps, and then approves their InstallPlans.

Exit codes:
  0  the version is installed, or there is no newer one
  1  the command failed
  2  the upgrade is impossible, failed, or did not finish in time
  3  a permission is missing
  4  the API server cannot be reached`

// upgradeOptions are the flags of the command "upgrade".
type upgradeOptions struct {
	connection console.Connection
	output     console.Output
	global     string
	channel    string
	version    string
	dryRun     bool
	yes        bool
	timeout    time.Duration
	program    string
}

// NewUpgrade returns the command "upgrade" of a program. name is how users call the program, and agent is its user agent for
// API servers.
func NewUpgrade(name, agent string) *cobra.Command {
	o := &upgradeOptions{connection: console.Connection{Agent: agent}, program: name}
	cmd := &cobra.Command{
		Use:               "upgrade SUBSCRIPTION",
		Short:             "Upgrade an operator, and wait until the upgrade is complete",
		Long:              upgradeHelp,
		Example:           "  " + name + " upgrade argocd -n argocd --channel beta",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: o.connection.CompleteNames(console.Subscriptions()),
		RunE:              o.run,
	}
	flags := cmd.Flags()
	o.connection.AddFlags(cmd)
	o.connection.AddNamespaceFlag(cmd, "namespace of the objects; empty: the namespace of the kubeconfig's context")
	o.connection.AddCatalogNamespaceFlag(cmd, &o.global)
	flags.StringVar(&o.channel, "channel", "", "new channel")
	flags.StringVar(&o.version, "version", "", "version to stop at, as a number or ClusterServiceVersion; the Subscription must have installPlanApproval: Manual; empty: the newest")
	flags.BoolVar(&o.dryRun, "dry-run", false, "show the result; change nothing")
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation; without a terminal, the command never asks")
	console.AddTimeoutFlag(flags, &o.timeout, 10*time.Minute, "time limit")
	for _, free := range []string{"channel", "version"} {
		console.Complete(cmd, free, cobra.NoFileCompletions)
	}
	o.output.AddFlags(cmd)
	return cmd
}

// upgradeReport is the output of the command "upgrade".
type upgradeReport struct {
	Namespace    string `json:"namespace"`
	Subscription string `json:"subscription"`
	// From is the installed ClusterServiceVersion, and To is the last one of the upgrade.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Plan is what the Subscriptions of the namespace install.
	Plan *dryrun.Result `json:"plan"`
	// Problem is why the upgrade is impossible or failed.
	Problem string `json:"problem,omitempty"`
	// Outcome is what the command did: blocked, planned, unchanged, changed, upgraded or failed.
	Outcome string `json:"outcome"`
}

func (o *upgradeOptions) run(cmd *cobra.Command, args []string) error {
	if err := o.output.Validate(); err != nil {
		return err
	}
	r := &upgradeReport{Subscription: args[0]}
	c, found, err := o.prepare(cmd, r)
	if err != nil {
		r.Outcome = string(outcomeOf(err))
		return o.withDocument(cmd.OutOrStdout(), r, err)
	}
	return o.upgrade(cmd, c, found, r.Plan)
}

// prepare reads the Subscription of a report, and sets its plan.
func (o *upgradeOptions) prepare(cmd *cobra.Command, r *upgradeReport) (client.Client, *wait.Objects, error) {
	var err error
	if r.Namespace, err = o.connection.Namespace(); err != nil {
		return nil, nil, err
	}
	c, err := o.connection.Client()
	if err != nil {
		return nil, nil, err
	}
	found, err := wait.Reader{Client: c, Namespace: r.Namespace}.Subscription(cmd.Context(), r.Subscription)
	if err != nil {
		return nil, nil, err
	}
	if found.Subscription == nil || found.Subscription.Spec == nil {
		return nil, nil, negative("Subscription %s/%s does not exist; check the name and --namespace", r.Namespace, r.Subscription)
	}
	if err := o.validate(found); err != nil {
		return nil, nil, err
	}
	r.Plan, err = o.predict(cmd, found.Subscription)
	return c, found, err
}

// validate returns an error for flags that do not fit the Subscription.
func (o *upgradeOptions) validate(found *wait.Objects) error {
	sub := found.Subscription
	stays := isInstalled(found, o.version) && !o.changesChannel(sub)
	if o.version != "" && !stays && sub.GetInstallPlanApproval() != operatorsv1alpha1.ApprovalManual {
		return negative("--version needs the approval Manual, and spec.installPlanApproval of Subscription %s/%s is Automatic; set it to Manual, or hold the version with the annotation %s",
			sub.Namespace, sub.Name, api.AnnotationPin)
	}
	return nil
}

// changesChannel reports whether the command changes the channel of a Subscription.
func (o *upgradeOptions) changesChannel(sub *operatorsv1alpha1.Subscription) bool {
	return o.channel != "" && o.channel != sub.Spec.Channel
}

// wanted returns the Subscription with the new channel, without status.
func (o *upgradeOptions) wanted(sub *operatorsv1alpha1.Subscription) *operatorsv1alpha1.Subscription {
	wanted := &operatorsv1alpha1.Subscription{
		TypeMeta:   metav1.TypeMeta{APIVersion: operatorsv1alpha1.SchemeGroupVersion.String(), Kind: operatorsv1alpha1.SubscriptionKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: sub.Namespace, Name: sub.Name},
		Spec:       sub.Spec.DeepCopy(),
	}
	if o.channel != "" {
		wanted.Spec.Channel = o.channel
	}
	return wanted
}

func (o *upgradeOptions) predict(cmd *cobra.Command, sub *operatorsv1alpha1.Subscription) (*dryrun.Result, error) {
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
	p := predictor{cluster: cluster, global: o.global, log: cmd.ErrOrStderr()}
	return p.predictUpgrade(cmd.Context(), o.wanted(sub), sub.Status.InstalledCSV)
}

// upgrade shows the steps and, after the confirmation, makes them.
func (o *upgradeOptions) upgrade(cmd *cobra.Command, c client.Client, found *wait.Objects, res *dryrun.Result) error {
	sub := found.Subscription
	changes := o.changesChannel(sub)
	objects := *found
	if changes {
		// The InstallPlan that waits for approval belongs to the old channel.
		objects.Plan = nil
	}
	way, unreachable := pathTo(res, &objects, o.version)
	endPlan(res, sub.Name, way)
	if changes {
		adviseChannel(res, sub.Name)
	}
	r := upgradeReport{
		Namespace: sub.Namespace, Subscription: sub.Name, From: sub.Status.InstalledCSV, To: way.to, Plan: res, Problem: problemOf(res, sub.Name),
	}
	if unreachable == nil || r.explains() {
		if err := o.show(cmd.OutOrStdout(), &r); err != nil {
			return err
		}
	}
	if unreachable != nil && r.Problem == "" {
		r.Outcome = blocked
		return o.withDocument(cmd.OutOrStdout(), &r, unreachable)
	}
	if r.Outcome = o.outcome(&r, changes); r.Outcome != "" {
		return o.finish(cmd.OutOrStdout(), &r)
	}
	var err error
	if changes {
		err = checkApproval(cmd.Context(), c, res, sub)
	}
	if r.Outcome = blocked; err == nil {
		r.Outcome, err = o.confirmAndApply(cmd, c, found, way)
	}
	if err != nil {
		return o.withDocument(cmd.OutOrStdout(), &r, err)
	}
	return o.finish(cmd.OutOrStdout(), &r)
}

// confirmAndApply makes the steps of a path after the confirmation, and returns the outcome.
func (o *upgradeOptions) confirmAndApply(cmd *cobra.Command, c client.Client, found *wait.Objects, way path) (outcome string, err error) {
	if err := (console.Question{Text: "Upgrade it?", Refused: "nothing was changed", Yes: o.yes}).Ask(cmd); err != nil {
		return planned, err //nolint:wrapcheck // states what was refused
	}
	return o.apply(cmd, c, found, way)
}

// withDocument prints the document of the machine-readable forms for an error, and returns the error.
func (o *upgradeOptions) withDocument(out io.Writer, r *upgradeReport, err error) error {
	r.Problem = cmp.Or(r.Problem, console.Problem(err))
	return o.output.WithDocument(out, r, err)
}

// explains reports whether the plan states why the Subscription does not get a version.
func (r *upgradeReport) explains() bool {
	return r.Problem != "" || slices.ContainsFunc(r.Plan.HeldBack, func(held dryrun.Refusal) bool { return held.Subscription == r.Subscription })
}

// show prints the steps and the last version for people.
func (o *upgradeOptions) show(out io.Writer, r *upgradeReport) error {
	if o.output.ForMachines() {
		return nil
	}
	if err := r.Plan.Table(out); err != nil || r.To == "" {
		return err
	}
	return write(out, fmt.Sprintf("\nUpgrade of Subscription %s/%s from %s to %s\n", r.Namespace, r.Subscription, cmp.Or(r.From, "nothing"), r.To))
}

// The outcomes of the command.
const (
	blocked   = "blocked"
	planned   = "planned"
	unchanged = "unchanged"
	changed   = "changed"
	upgraded  = "upgraded"
	failed    = "failed"
)

// outcome returns the outcome if there is nothing to do; empty otherwise.
func (o *upgradeOptions) outcome(r *upgradeReport, changes bool) string {
	switch {
	case r.Problem != "":
		return blocked
	case o.dryRun:
		return planned
	case r.To == "" && !changes:
		return unchanged
	default:
		return ""
	}
}

// apply changes the channel, approves InstallPlans and waits for the last version.
func (o *upgradeOptions) apply(cmd *cobra.Command, c client.Client, found *wait.Objects, to path) (string, error) {
	sub := found.Subscription
	f := follower{
		Client: c, Namespace: sub.Namespace, Agent: o.connection.Agent, Log: cmd.ErrOrStderr(), Timeout: o.timeout, Program: o.program,
	}
	if o.changesChannel(sub) {
		f.Replaced = replacedPlan(found.Plan, to.plans)
		next := sub.DeepCopy()
		next.Spec = o.wanted(sub).Spec
		patch := client.MergeFromWithOptions(sub, client.MergeFromWithOptimisticLock{})
		if err := c.Patch(cmd.Context(), next, patch, client.FieldOwner(o.connection.Agent)); err != nil {
			return failed, fmt.Errorf("setting spec.channel of Subscription %s/%s: %w", sub.Namespace, sub.Name, err)
		}
	}
	if to.to == "" {
		return changed, nil
	}
	if err := f.follow(cmd.Context(), sub.Name, to.to, to.plans); err != nil {
		return failed, o.withChange(sub, err)
	}
	return upgraded, nil
}

// withChange adds a changed channel to an error, and how to continue.
func (o *upgradeOptions) withChange(sub *operatorsv1alpha1.Subscription, err error) error {
	if !o.changesChannel(sub) {
		return err
	}
	return fmt.Errorf("%w; spec.channel of Subscription %s/%s is now %q: repeat the command to continue", err, sub.Namespace, sub.Name, o.channel)
}

// checkApproval returns an error if the plan has InstallPlans of a Subscription to approve, and the user may not approve
// them. Without an answer of the API server, the command tries the approval.
func checkApproval(ctx context.Context, c client.Writer, res *dryrun.Result, sub *operatorsv1alpha1.Subscription) error {
	if !slices.ContainsFunc(res.Steps, func(s dryrun.Step) bool {
		return s.Approval == dryrun.Manual && slices.Contains(s.Subscriptions, sub.Name)
	}) {
		return nil
	}
	rule := approval.Rule(sub.Namespace)
	if allowed, err := access.Allowed(ctx, c, rule); err != nil || allowed {
		return nil //nolint:nilerr // the approval has an error of its own
	}
	err := fmt.Errorf("nothing was changed: you lack permission to approve the InstallPlans of namespace %s", sub.Namespace)
	return &console.Coded{Code: console.Forbidden, Err: &access.MissingError{Rule: rule, Err: err}}
}

// adviseChannel replaces the remedy for the requested channel, which the package lacks, by one for the flag.
func adviseChannel(res *dryrun.Result, subscription string) {
	for i := range res.Refusals {
		if r := &res.Refusals[i]; r.Subscription == subscription && len(r.Channels) > 0 {
			r.Remedy = "set --channel to one of " + strings.Join(r.Channels, ", ")
		}
	}
}

// path is the way to a version.
type path struct {
	// plans are the InstallPlans up to the last version.
	plans []versionSet
	// to is the last ClusterServiceVersion; empty if there is nothing to install.
	to string
	// last is the number of the last InstallPlan of the dry run that belongs to the path to a requested version; the
	// maximum if the path has no such end.
	last int
}

// endPlan removes from a plan what a Subscription gets after the end of a path to a requested version, and why it does not
// get more.
func endPlan(res *dryrun.Result, subscription string, way path) {
	if way.last == math.MaxInt {
		return
	}
	later := map[int]bool{}
	for i := range res.Steps {
		if s := &res.Steps[i]; s.Plan > way.last && slices.Contains(s.Subscriptions, subscription) {
			later[s.Plan] = true
		}
	}
	res.Steps = slices.DeleteFunc(res.Steps, func(s dryrun.Step) bool { return later[s.Plan] })
	ofSubscription := func(r dryrun.Refusal) bool { return r.Subscription == subscription }
	res.Refusals, res.HeldBack = slices.DeleteFunc(res.Refusals, ofSubscription), slices.DeleteFunc(res.HeldBack, ofSubscription)
}

// pathTo returns the way to a version, given as a number or a name; to the newest if it is empty.
func pathTo(res *dryrun.Result, found *wait.Objects, version string) (path, error) {
	if isInstalled(found, version) {
		return path{}, nil
	}
	p := path{last: math.MaxInt}
	var known []string
	matches := func(bundle, number string) bool {
		p.to, known = bundle, append(known, number)
		return version != "" && (version == bundle || strings.TrimPrefix(version, "v") == number)
	}
	if found.Pending() {
		p.plans = append(p.plans, slices.Sorted(slices.Values(found.Plan.Spec.ClusterServiceVersionNames)))
	}
	for _, one := range res.UnderWay {
		if one.Subscription == found.Subscription.Name && matches(one.Bundle, one.Version) {
			p.last = 0
			return p, nil
		}
	}
	for i := range res.Steps {
		step := &res.Steps[i]
		if !slices.Contains(step.Subscriptions, found.Subscription.Name) {
			continue
		}
		p.plans = append(p.plans, planVersions(res, step.Plan))
		if matches(step.Bundle, step.Version) {
			p.last = step.Plan
			return p, nil
		}
	}
	if version == "" {
		return p, nil
	}
	return path{last: math.MaxInt}, negative("Subscription %s/%s has no upgrade to version %q; %s",
		found.Subscription.Namespace, found.Subscription.Name, version, versionRemedy(known))
}

// versionRemedy returns what to do about a version that cannot be reached, given those that can.
func versionRemedy(known []string) string {
	if len(known) == 0 {
		return "no upgrade is available"
	}
	return "set --version to one of: " + strings.Join(known, ", ")
}

// isInstalled reports whether a version, given as a number or a name, is the installed one.
func isInstalled(found *wait.Objects, version string) bool {
	if version == "" {
		return false
	}
	return version == found.Subscription.Status.InstalledCSV ||
		found.Installed != nil && strings.TrimPrefix(version, "v") == found.Installed.Spec.Version.String()
}

// finish prints the outcome, and returns the verdict.
func (o *upgradeOptions) finish(out io.Writer, r *upgradeReport) error {
	name := r.Namespace + "/" + r.Subscription
	text := map[string]string{
		planned:   "Nothing was changed (dry run).",
		unchanged: "Subscription " + name + " has the newest version that can be installed.",
		changed:   "Subscription " + name + " is on channel " + o.channel + " now. Nothing is to be installed from it.",
		upgraded:  "Subscription " + name + " has " + r.To + " installed.",
	}[r.Outcome]
	if r.Outcome == unchanged && o.version != "" {
		text = "Subscription " + name + " has " + r.From + " installed already."
	}
	var err error
	switch {
	case o.output.ForMachines():
		err = o.output.Document(out, r)
	case text != "":
		_, err = io.WriteString(out, "\n"+text+"\n")
	}
	if err == nil && r.Outcome == blocked {
		return console.Verdict(console.Negative)
	}
	return err
}
