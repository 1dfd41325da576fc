// Package uninstall is the command that removes the supervisor from a cluster and, on request,
// everything that it manages.
package uninstall

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/cmd/internal/console"
)

const help = `Remove the Deployment and the RBAC of the supervisor. Also remove its namespace, unless
the namespace contains other objects of any kind. The command keeps catalogs,
Subscriptions, operators and the CustomResourceDefinitions of operators.coreos.com. A
supervisor that you install later manages them again. If the only supervisor is in
another namespace than --supervisor-namespace, the command refuses.

With --everything, the command first removes all operators and catalogs. If a supervisor
is ready, the supervisor cleans up the operators. Otherwise, the command removes the
supervisor's finalizers from their objects. Then the command removes the
CustomResourceDefinitions of operators.coreos.com. It removes the ClusterRoles for
users, the namespace "operators" and the namespace of the global catalogs only if they
have the label app.kubernetes.io/part-of=chandlery. CustomResourceDefinitions of
operators and their custom resources stay. If OLM is installed, the command refuses
--everything, because OLM uses the same kinds. It also refuses --everything while a
supervisor outside --supervisor-namespace is installed or leads.

The command lists the objects that it removes and keeps, and asks for confirmation. You
can interrupt and repeat it. You need the permissions of a cluster administrator.

Exit codes:
  0  the removal is complete; with --dry-run: it is possible
  1  the command failed, or you did not confirm
  2  there is nothing to remove, or the removal is blocked; the output shows why
  3  a permission is missing
  4  the API server cannot be reached`

// defaultNamespace is the namespace of supervisors in a documented installation.
const defaultNamespace = "chandlery-system"

// removeOperator is the remedy for users who want to remove an operator, for the name of the program and a Subscription.
const removeOperator = "to remove the operator of a Subscription: %s remove %s"

// options are the flags of the command.
type options struct {
	connection       console.Connection
	output           console.Output
	namespace        string
	catalogNamespace string
	everything       bool
	dryRun           bool
	yes              bool
	timeout          time.Duration
}

// New returns the command "uninstall" of a program. name is how users call the program, and agent
// is its user agent for API servers.
func New(name, agent string) *cobra.Command {
	o := &options{connection: console.Connection{Agent: agent}}
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove the supervisor and, with --everything, all operators",
		Long:  help,
		Example: "  " + name + " uninstall --dry-run\n" +
			"  " + name + " uninstall --yes\n" +
			"  " + name + " uninstall --everything",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("uninstall removes the supervisor, and takes no arguments; "+removeOperator, name, args[0])
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              o.run,
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		unknown, is := errors.AsType[*pflag.NotExistError](err)
		if is && (unknown.GetSpecifiedName() == "namespace" || unknown.GetSpecifiedShortnames() == "n") {
			err = fmt.Errorf("%w; uninstall removes the supervisor; "+removeOperator, err, name, "SUBSCRIPTION -n NAMESPACE")
		}
		return cmd.Root().FlagErrorFunc()(cmd, err)
	})
	flags := cmd.Flags()
	o.connection.AddFlags(cmd)
	o.connection.AddCatalogNamespaceFlag(cmd, &o.catalogNamespace)
	flags.StringVar(&o.namespace, "supervisor-namespace", defaultNamespace, "namespace of the supervisors")
	flags.BoolVar(&o.everything, "everything", false, "also remove all operators and catalogs, and the CustomResourceDefinitions of operators.coreos.com")
	flags.BoolVar(&o.dryRun, "dry-run", false, "list the objects to remove; change nothing")
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation; required without a terminal")
	console.AddTimeoutFlag(flags, &o.timeout, 5*time.Minute, "time limit for the removal of all operators, and for the deletion of each other object")
	o.output.AddFlags(cmd)
	return cmd
}

func (o *options) run(cmd *cobra.Command, _ []string) error {
	if err := o.output.Validate(); err != nil {
		return err //nolint:wrapcheck // names the flag
	}
	if reasons := validation.IsDNS1123Label(o.namespace); len(reasons) > 0 {
		return fmt.Errorf("--supervisor-namespace is %q: %s", o.namespace, strings.Join(reasons, ", "))
	}
	c, resources, err := o.clients()
	if err != nil {
		return err
	}
	reader := inventoryReader{client: c, resources: resources, namespace: o.namespace, catalogNamespace: o.catalogNamespace}
	inventory, err := reader.read(cmd.Context())
	if err != nil {
		return err
	}
	p := NewPlan(inventory, o.everything)
	if err := o.show(cmd.OutOrStdout(), &p); err != nil {
		return err
	}
	if len(p.Blockers) > 0 || len(p.Remove) == 0 {
		return console.Verdict(console.Negative)
	}
	if o.dryRun {
		return nil
	}
	if err := o.confirm(cmd); err != nil {
		return err
	}
	r := &remover{client: c, namespace: o.namespace, timeout: o.timeout, report: func(step string) {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s%s ...\n", strings.ToUpper(step[:1]), step[1:])
	}}
	if err := r.remove(cmd.Context(), &p); err != nil {
		return fmt.Errorf("%w; run the command again to continue", err)
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "Removed.")
	return nil
}

// clients returns the clients for the objects and for the resources of the cluster.
func (o *options) clients() (client.Client, resourceLister, error) {
	c, err := o.connection.Client()
	if err != nil {
		return nil, nil, err //nolint:wrapcheck // names where it looked
	}
	config, err := o.connection.RESTConfig()
	if err != nil {
		return nil, nil, err //nolint:wrapcheck // names where it looked
	}
	resources, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("making a client for the resources of %s: %w", config.Host, err)
	}
	return c, resources, nil
}

// confirm asks the user at the terminal. It returns an error if there is no terminal or the answer is no.
func (o *options) confirm(cmd *cobra.Command) error {
	question := "Remove it?"
	if o.everything {
		question = "Remove everything?"
	}
	return console.Question{Text: question, Refused: "nothing was removed", Yes: o.yes, Required: true}.Ask(cmd)
}

// show prints a plan.
func (o *options) show(out io.Writer, p *Plan) error {
	if o.output.ForMachines() {
		return o.output.Document(out, p) //nolint:wrapcheck // names what failed
	}
	paint := o.output.Paint(out)
	var b strings.Builder
	section(&b, paint.Bad("Obstacles:"), p.Blockers)
	if len(p.Remove) == 0 && len(p.Blockers) == 0 {
		b.WriteString("There is nothing to remove.\n")
	}
	if len(p.Blockers) == 0 {
		removed := make([]string, 0, len(p.Remove))
		for _, object := range p.Remove {
			removed = append(removed, object.String())
		}
		section(&b, paint.Bold("To remove:"), removed)
		section(&b, paint.Bad("Also deleted:"), p.Lost)
		section(&b, paint.Bold("To keep:"), p.Stays)
		section(&b, paint.Waiting("Notes:"), p.Notes)
	}
	if _, err := io.WriteString(out, b.String()); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

// section prints a heading with lines below it, if there are any.
func section(b *strings.Builder, heading string, lines []string) {
	if len(lines) == 0 {
		return
	}
	b.WriteString(heading + "\n")
	for _, line := range lines {
		b.WriteString(console.Wrap("  - ", "    ", line))
	}
}
