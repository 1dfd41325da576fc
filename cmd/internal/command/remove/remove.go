// Package remove is the command that removes an operator from a cluster.
package remove

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/cmd/internal/console"
)

const help = `Remove an operator: delete the Subscription and its ClusterServiceVersion. The command
first shows what it deletes and keeps. To remove the supervisor, use 'uninstall'.

Exit codes:
  0  the command succeeded
  1  the command failed
  2  the Subscription does not exist, or objects remain
  3  a permission is missing
  4  the API server cannot be reached`

// options are the flags of the command.
type options struct {
	connection console.Connection
	output     console.Output
	crds       bool
	dryRun     bool
	yes        bool
	timeout    time.Duration
}

// New returns the command "remove" of a program. name is how users call the program, and agent is its user agent for
// API servers.
func New(name, agent string) *cobra.Command {
	o := &options{connection: console.Connection{Agent: agent}}
	cmd := &cobra.Command{
		Use:               "remove SUBSCRIPTION",
		Short:             "Remove an operator",
		Long:              help,
		Example:           "  " + name + " remove argocd -n argocd --dry-run",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: o.connection.CompleteNames(console.Subscriptions()),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	o.connection.AddFlags(cmd)
	o.connection.AddNamespaceFlag(cmd, "namespace of the objects; empty: the namespace of the kubeconfig's context")
	flags.BoolVar(&o.crds, "crds", false, "also delete CustomResourceDefinitions that no other operator uses; the command deletes their custom resources first, while the operator runs")
	flags.BoolVar(&o.dryRun, "dry-run", false, "show the result; change nothing")
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation; required without a terminal")
	console.AddTimeoutFlag(flags, &o.timeout, 5*time.Minute, "time limit for the deletion of each object")
	o.output.AddFlags(cmd)
	return cmd
}

func (o *options) run(cmd *cobra.Command, name string) error {
	if err := o.output.Validate(); err != nil {
		return err
	}
	namespace, err := o.connection.Namespace()
	if err != nil {
		return err
	}
	c, err := o.connection.Client()
	if err != nil {
		return err
	}
	r := &remover{client: c, namespace: namespace, timeout: o.timeout, log: cmd.ErrOrStderr()}
	found, err := r.read(cmd.Context(), name, o.crds)
	if err != nil {
		return err
	}
	p := newPlan(found, o.crds)
	if err := o.show(cmd.OutOrStdout(), &p); err != nil {
		return err
	}
	if o.dryRun {
		return o.finish(cmd.OutOrStdout(), &p, outcomePlanned)
	}
	if err := o.confirm(cmd, &p); err != nil {
		return o.withDocument(cmd.OutOrStdout(), &p, outcomePlanned, err)
	}
	if err := r.remove(cmd.Context(), found, p.Definitions); err != nil {
		return o.withDocument(cmd.OutOrStdout(), &p, outcomeFailed, err)
	}
	return o.finish(cmd.OutOrStdout(), &p, outcomeRemoved)
}

// withDocument prints the document of the machine-readable forms for an error, and returns the error.
func (o *options) withDocument(out io.Writer, p *plan, done outcome, err error) error {
	p.Outcome = done
	return o.output.WithDocument(out, p, err)
}

// finish prints what the command did.
func (o *options) finish(out io.Writer, p *plan, done outcome) error {
	p.Outcome = done
	if o.output.ForMachines() {
		return o.output.Document(out, p)
	}
	text := "Nothing was changed (dry run).\n"
	if done == outcomeRemoved {
		text = "Removed.\n"
	}
	if _, err := io.WriteString(out, text); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

// confirm asks the user at the terminal. It returns an error if there is no terminal or the answer is no.
func (o *options) confirm(cmd *cobra.Command, p *plan) error {
	question := "Remove it?"
	if p.Lost > 0 {
		question = "Remove it, and delete " + count(p.Lost) + "?"
	}
	return console.Question{Text: question, Refused: "nothing was removed", Yes: o.yes, Required: true}.Ask(cmd)
}

// show prints a plan for people. The machine-readable forms print everything at the end.
func (o *options) show(out io.Writer, p *plan) error {
	if o.output.ForMachines() {
		return nil
	}
	paint := o.output.Paint(out)
	var b strings.Builder
	for _, section := range []struct {
		heading string
		lines   []string
	}{{paint.Bold("To remove:"), p.Remove}, {paint.Bold("To keep:"), p.Stays}, {paint.Waiting("Notes:"), p.Notes}} {
		if len(section.lines) == 0 {
			continue
		}
		b.WriteString(section.heading + "\n")
		for _, line := range section.lines {
			b.WriteString(console.Wrap("  - ", "    ", line))
		}
	}
	if p.Lost > 0 {
		b.WriteString(paint.Bad("Data is lost: "+count(p.Lost)) + "\n")
	}
	if _, err := io.WriteString(out, b.String()); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}
