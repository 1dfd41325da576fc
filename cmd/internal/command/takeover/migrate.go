package takeover

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/supervisor/migration"
	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

const helpMigrate = `Migrate this cluster from OLM to the supervisors. The command checks for obstacles, waits
until a supervisor has started, takes over, waits until a supervisor leads, and compares
the cluster with its earlier state.

The command compares operator Deployments and their generations, pods and their restarts,
ClusterServiceVersions, Subscriptions, webhooks and APIs. It expects differences in a
namespace if an InstallPlan was in progress there. Versions and APIs that failed before
and work now are listed as recovered.

With --back, the command hands the cluster back to OLM, waits until OLM is ready, and
compares the cluster. -o wide lists the objects of each step, with what is done to them.

--finish needs a supervisor that leads. It lists and removes the objects that only OLM
uses: OLM's Deployments and package server with their Services and NetworkPolicies,
the ConfigMaps and Jobs that unpacked bundles, Helm's record of OLM, and the takeover
record. It keeps namespaces, CustomResourceDefinitions, RBAC, catalogs, operators, and
NetworkPolicies that do not select OLM's pods; with --dry-run, it lists what stays.
Afterwards, you cannot hand the cluster back.

You can interrupt and repeat the command. Each run compares the cluster
with its state at the start of that run. You need the permissions of a cluster
administrator.

Exit codes:
  0  the migration is complete, now or already before, and nothing changed unexpectedly;
     with --dry-run: it is possible
  1  the command failed, or you did not confirm
  2  OLM is not installed; with --back or --finish: there was no takeover; the migration
     is blocked; or something changed unexpectedly
  3  a permission is missing
  4  the API server cannot be reached
  130  you interrupted the command`

// migrateOptions are the flags of the command "migrate".
type migrateOptions struct {
	options

	back, finish bool
	timeout      time.Duration
}

// Report is the result of a migration.
type Report struct {
	// Leader is the supervisor that leads; empty after a handback.
	Leader string `json:"leader,omitempty"`
	// Compared is the number of compared objects, and Differences are those that changed.
	Compared    int                    `json:"compared"`
	Differences []migration.Difference `json:"differences,omitempty"`
}

// unexpected reports whether an unexpected difference exists.
func (r *Report) unexpected() bool {
	for i := range r.Differences {
		if d := &r.Differences[i]; !d.Expected && !d.Recovered {
			return true
		}
	}
	return false
}

// NewMigrate returns the command "migrate".
func NewMigrate(name, agent string) *cobra.Command {
	o := &migrateOptions{options: options{connection: console.Connection{Agent: agent}, program: name}}
	cmd := &cobra.Command{
		Use:     "migrate",
		Short:   "Migrate the cluster from OLM, and check that operators did not change",
		Long:    helpMigrate,
		Example: "  " + name + " migrate --dry-run\n  " + name + " migrate\n  " + name + " migrate --back\n  " + name + " migrate --finish",
		Args:    cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: o.run,
	}
	o.addFlags(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&o.back, "back", false, "hand the cluster back to OLM")
	flags.BoolVar(&o.finish, "finish", false, "remove the objects that only OLM uses")
	console.AddTimeoutFlag(flags, &o.timeout, 5*time.Minute, "time limit for the new manager to become ready, and then for the cluster to stop changing")
	cmd.MarkFlagsMutuallyExclusive("back", "finish")
	return cmd
}

// direction returns the texts and the action of the step that the flags choose.
func (o *migrateOptions) direction() direction {
	switch {
	case o.back:
		return handBack()
	case o.finish:
		return direction{
			question: "Remove OLM?", refused: "nothing was removed", deletes: true,
			nothing: "There is nothing to remove: there is no record of a takeover. If OLM's Deployments exist, run migrate first. If not, OLM was removed.",
			action:  func(mo migration.Options) action { return &migration.Finish{Options: mo} },
		}
	default:
		return takeOver()
	}
}

func (o *migrateOptions) run(cmd *cobra.Command, _ []string) error {
	if err := o.output.Validate(); err != nil {
		return err //nolint:wrapcheck // names the flag
	}
	c, err := o.connection.Client()
	if err != nil {
		return err //nolint:wrapcheck // says where it looked
	}
	ctx, d := cmd.Context(), o.direction()
	mo := migration.Options{
		Config: competing.Config{Client: c, Namespace: o.namespace, ManagerNamespaces: o.managers, Clock: clock.RealClock{}},
		OnStep: o.onStep(cmd.ErrOrStderr()),
	}
	m, v := d.action(mo), &migration.Verification{Options: mo, Timeout: o.timeout}
	plan, err := o.plan(ctx, m, v)
	if err != nil {
		return err
	}
	if err := o.confirmPlan(cmd, &plan, d); err != nil || o.dryRun {
		return err
	}
	if err := o.prepare(ctx, v); err != nil {
		return err
	}
	report, err := o.migrate(ctx, c, m, v, &plan)
	if err != nil {
		return o.stepError(err)
	}
	return o.report(cmd.OutOrStdout(), &report)
}

// confirmPlan prints a plan and asks for confirmation. It returns an error if the plan must not be executed. Programs get
// the plan of a dry run only: otherwise the report is their document.
func (o *migrateOptions) confirmPlan(cmd *cobra.Command, plan *migration.Plan, d direction) error {
	if o.dryRun || !o.output.ForMachines() {
		if err := o.show(cmd.OutOrStdout(), plan, d); err != nil {
			return err
		}
	}
	switch {
	case plan.Verdict == migration.Nothing || plan.Verdict == migration.Blocked:
		return console.Verdict(console.Negative)
	case !o.dryRun && plan.Verdict == migration.Possible:
		return console.Question{Text: d.question, Refused: d.refused, Yes: o.yes, Required: true}.Ask(cmd) //nolint:wrapcheck // says what was not done
	default:
		return nil
	}
}

// plan returns the plan of the step. Supervisors are required, except for a handback.
func (o *migrateOptions) plan(ctx context.Context, m action, v *migration.Verification) (migration.Plan, error) {
	plan, err := m.Plan(ctx)
	if err != nil || o.back || plan.Verdict == migration.Nothing {
		return plan, err //nolint:wrapcheck // says what it reads
	}
	missing, err := v.Supervisors(ctx)
	if err != nil {
		return plan, err //nolint:wrapcheck // says what it reads
	}
	if missing == "" && !o.finish && plan.Verdict == migration.Possible {
		missing, err = v.Outdated(ctx)
		if err != nil {
			return plan, err //nolint:wrapcheck // says what it reads
		}
	}
	if missing != "" {
		plan.Verdict, plan.Steps, plan.Operations, plan.Blockers = migration.Blocked, nil, nil, append(plan.Blockers, missing)
		return plan, nil
	}
	unstarted, err := v.Unstarted(ctx)
	if err != nil {
		return plan, err //nolint:wrapcheck // says what it reads
	}
	if unstarted != "" {
		plan.Risks = append(plan.Risks, unstarted+"; the command waits at most "+o.timeout.String())
	}
	return plan, nil
}

// prepare waits until supervisors can replace OLM: until one has started before a takeover, and until one leads before OLM
// is removed. Otherwise, a wrong image would leave the cluster without a manager.
func (o *migrateOptions) prepare(ctx context.Context, v *migration.Verification) error {
	switch {
	case o.back:
		return nil
	case o.finish:
		v.OnStep("wait until a supervisor leads")
		_, err := v.AwaitSupervisor(ctx)
		return err //nolint:wrapcheck // says what it waited for
	default:
		v.OnStep("wait until a supervisor has started")
		if err := v.AwaitStart(ctx); err != nil {
			return err //nolint:wrapcheck // says what it waited for
		}
		// The plan may be older than the rollout of new settings.
		outdated, err := v.Outdated(ctx)
		if err != nil {
			return err //nolint:wrapcheck // says what it reads
		}
		if outdated != "" {
			return fmt.Errorf("%w: %s", migration.ErrRefused, outdated)
		}
		return nil
	}
}

// migrate runs a step, and compares the cluster with its state before.
func (o *migrateOptions) migrate(ctx context.Context, c client.Reader, m action, v *migration.Verification, plan *migration.Plan) (Report, error) {
	var report Report
	before, err := migration.ReadInventory(ctx, c)
	if err != nil {
		return report, err //nolint:wrapcheck // says what it reads
	}
	inProgress, err := migration.PlansInProgress(ctx, c)
	if err != nil {
		return report, err //nolint:wrapcheck // says what it reads
	}
	if err := m.Run(ctx); err != nil {
		return report, err //nolint:wrapcheck // names the step
	}
	if o.back {
		o.remedy = "the handback is complete; check the pods of OLM"
		v.OnStep("wait until OLM is ready")
		err = v.AwaitOLM(ctx, plan.Started())
	} else {
		v.OnStep("wait until a supervisor leads")
		report.Leader, err = v.AwaitSupervisor(ctx)
	}
	if err != nil {
		return report, err //nolint:wrapcheck // says what it waited for
	}
	v.OnStep("compare the cluster with its state before")
	after, err := v.AwaitInventory(ctx)
	if err != nil {
		return report, err //nolint:wrapcheck // says what it reads
	}
	removed := plan.DeletedVersions()
	before, after = before.Without(removed), after.Without(removed)
	report.Compared, report.Differences = len(before), after.Differences(before, inProgress)
	return report, nil
}

// report prints a report. It returns an error if something unexpected changed.
func (o *migrateOptions) report(out io.Writer, r *Report) error {
	var err error
	if o.output.ForMachines() {
		err = o.output.Document(out, r)
	} else if _, err = io.WriteString(out, r.text(o.output.Paint(out))); err != nil {
		err = fmt.Errorf("printing: %w", err)
	}
	if err == nil && r.unexpected() {
		return console.Verdict(console.Negative)
	}
	return err //nolint:wrapcheck // says what it was about
}

// text returns a report for people.
func (r *Report) text(paint console.Paint) string {
	var b strings.Builder
	if r.Leader != "" {
		fmt.Fprintf(&b, "Supervisor %s leads.\n", r.Leader)
	}
	var expected, recovered, unexpected []string
	for _, d := range r.Differences {
		line := fmt.Sprintf("%s: %s, was %s", d.Object, orAbsent(d.After), orAbsent(d.Before))
		switch {
		case d.Recovered:
			recovered = append(recovered, line)
		case d.Expected:
			expected = append(expected, line)
		default:
			unexpected = append(unexpected, line)
		}
	}
	if len(unexpected) == 0 {
		b.WriteString(paint.Good("Compared "+bundles.Count(r.Compared, "object")+" of operators; nothing unexpected changed.") + "\n")
	}
	section(&b, paint.Bad("Unexpected changes:"), unexpected)
	section(&b, paint.Good("Recovered:"), recovered)
	section(&b, paint.Bold("Changes by InstallPlans that were in progress:"), expected)
	return b.String()
}

func orAbsent(state string) string {
	if state == "" {
		return "absent"
	}
	return state
}
