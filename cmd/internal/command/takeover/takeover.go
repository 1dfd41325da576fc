// Package takeover has the commands that take a cluster over from OLM and hand it back.
package takeover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/supervisor/migration"
	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

const help = `Take over from the OLM that runs in this cluster. The command scales OLM's Deployments
to 0 and does not delete them. The supervisors then manage the installed operators
in their current state. No operator pod restarts. Before it scales OLM's Deployments,
the command records their replicas. After OLM's pods are deleted, it records the objects
that supervisors may replace. The records are ConfigMaps in the namespace of the
supervisors. The handback command restores replica counts and objects from the records.

You can interrupt and repeat the command. Supervisors that run with
--takeover do the same automatically.

You need the permissions of a cluster administrator.

Exit codes:
  0  the takeover is complete; with --dry-run: it is possible
  1  the command failed, or you did not confirm
  2  there is nothing to take over, or the takeover is blocked; the output shows why
  3  a permission is missing
  4  the API server cannot be reached
  130  you interrupted the command`

const helpBack = `Hand this cluster back to the OLM that managed it before the takeover. The command
scales the supervisors to 0. It restores the objects that the supervisors changed or
deleted, and deletes the objects with which they replaced OLM's. Then it restores the
replica counts of OLM's Deployments. While OLM starts, the command removes the
supervisors' labels and annotations from other objects. It waits up to a minute until
OLM's catalog pods are ready, and then deletes the catalog replicas of the supervisors.
Operators keep their current versions.

You can interrupt and repeat the command.

Exit codes:
  0  the handback is complete; with --dry-run: it is possible
  1  the command failed, or you did not confirm
  2  there is nothing to hand back, or the handback is blocked; the output shows why
  3  a permission is missing
  4  the API server cannot be reached
  130  you interrupted the command`

// defaultNamespace is the namespace of supervisors in a documented installation.
const defaultNamespace = "chandlery-system"

// options are the flags of both commands.
type options struct {
	connection console.Connection
	output     console.Output
	namespace  string
	managers   []string
	dryRun     bool
	yes        bool
	program    string
	// step is the text of the latest step, and remedy says how to continue after it; empty if the command is to be repeated.
	step, remedy string
}

// New returns the command "takeover" of a program. name is how users call the program, and agent is
// its user agent for API servers.
func New(name, agent string) *cobra.Command {
	return newCommand(name, agent, &cobra.Command{
		Use:     "takeover",
		Short:   "Take over from the OLM that runs in the cluster",
		Long:    help,
		Example: "  " + name + " takeover --dry-run\n  " + name + " takeover --yes",
	}, takeOver())
}

// NewHandBack returns the command "handback".
func NewHandBack(name, agent string) *cobra.Command {
	return newCommand(name, agent, &cobra.Command{
		Use:     "handback",
		Short:   "Hand the cluster back to the OLM that managed it before the takeover",
		Long:    helpBack,
		Example: "  " + name + " handback --dry-run\n  " + name + " handback --yes",
	}, handBack())
}

// action is a takeover or a handback.
type action interface {
	Plan(ctx context.Context) (migration.Plan, error)
	Run(ctx context.Context) error
}

// direction holds the differences between the two commands.
type direction struct {
	question, refused, nothing, done, next string
	// deletes is true if the plan only deletes objects. Their names are always printed, since they decide the answer.
	deletes bool

	action func(migration.Options) action
}

// takeOver returns what a takeover says and does.
func takeOver() direction {
	return direction{
		question: "Take over?", refused: "nothing was taken over",
		nothing: "There is nothing to take over: no OLM was found in this cluster.",
		done:    "The takeover is complete; there is nothing left to do.",
		action:  func(o migration.Options) action { return &migration.Takeover{Options: o, Again: true} },
		next:    "Taken over. Make sure that supervisors run in namespace %s; supervisors that waited lead within seconds. To check the cluster, run: PROGRAM status. To go back, run: PROGRAM handback",
	}
}

// handBack returns what a handback says and does.
func handBack() direction {
	return direction{
		question: "Hand back?", refused: "nothing was handed back",
		nothing: "There is nothing to hand back: no namespace has the record of a takeover, and no Deployment of OLM has the label of a takeover. If an earlier run was interrupted, it had made all changes. To start an OLM that was stopped manually, run in its namespace: kubectl scale deployment olm-operator catalog-operator --replicas=1",
		action:  func(o migration.Options) action { return &migration.Handback{Options: o} },
		next:    "Handed back. OLM's Deployments have their replicas again. Supervisors wait while OLM runs; uninstall them from namespace %s, or leave them at 0 replicas",
	}
}

func newCommand(name, agent string, cmd *cobra.Command, d direction) *cobra.Command {
	o := &options{connection: console.Connection{Agent: agent}, program: name}
	cmd.Args, cmd.ValidArgsFunction = cobra.NoArgs, cobra.NoFileCompletions
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return o.run(cmd, d) }
	o.addFlags(cmd)
	return cmd
}

func (o *options) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	o.connection.AddFlags(cmd)
	flags.StringVar(&o.namespace, "supervisor-namespace", defaultNamespace, "namespace of the supervisors and of the takeover record")
	flags.StringSliceVar(&o.managers, "manager-namespaces", nil, "namespaces in which each Deployment that resembles OLM counts as OLM; in other namespaces, only one whose ServiceAccount has cluster-wide permission to write the status of ClusterServiceVersions or InstallPlans")
	flags.BoolVar(&o.dryRun, "dry-run", false, "show the steps; change nothing")
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation; required without a terminal")
	o.output.AddFlags(cmd)
}

// onStep returns a function that prints the text of each step.
func (o *options) onStep(log io.Writer) func(step string) {
	return func(step string) {
		o.step = step
		fmt.Fprintf(log, "%s ...\n", capital(step))
	}
}

// stepError returns the error of the latest step with the way to continue. After an interruption, it names only the step.
func (o *options) stepError(err error) error {
	if errors.Is(err, context.Canceled) {
		err = fmt.Errorf("%w at the step '%s'", console.ErrInterrupted, o.step)
	}
	return fmt.Errorf("%w; %s", err, cmp.Or(o.remedy, "progress is recorded; run the command again to continue"))
}

func (o *options) run(cmd *cobra.Command, d direction) error {
	if err := o.output.Validate(); err != nil {
		return err //nolint:wrapcheck // names the flag
	}
	c, err := o.connection.Client()
	if err != nil {
		return err //nolint:wrapcheck // says where it looked
	}
	m := d.action(migration.Options{
		Config: competing.Config{Client: c, Namespace: o.namespace, ManagerNamespaces: o.managers, Clock: clock.RealClock{}},
		OnStep: o.onStep(cmd.ErrOrStderr()),
	})
	plan, err := m.Plan(cmd.Context())
	if err != nil {
		return err
	}
	if err := o.show(cmd.OutOrStdout(), &plan, d); err != nil {
		return err
	}
	switch {
	case plan.Verdict == migration.Nothing || plan.Verdict == migration.Blocked:
		return console.Verdict(console.Negative)
	case plan.Verdict == migration.Done || o.dryRun:
		return nil
	}
	if err := (console.Question{Text: d.question, Refused: d.refused, Yes: o.yes, Required: true}).Ask(cmd); err != nil {
		return err //nolint:wrapcheck // says what was not done
	}
	if err := m.Run(cmd.Context()); err != nil {
		return o.stepError(err)
	}
	fmt.Fprint(cmd.ErrOrStderr(), console.Wrap("", "", strings.ReplaceAll(fmt.Sprintf(d.next, o.namespace), "PROGRAM", o.program)))
	return nil
}
