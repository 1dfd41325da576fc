// Package status is the command that shows the state of the catalogs and operators of a cluster on one screen.
package status

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/cmd/internal/progress"
	"github.com/chandlery/chandlery/cmd/internal/terminal"
	"github.com/chandlery/chandlery/supervisor/explain/snapshot"
	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

// leastInterval is the shortest interval of --watch.
const leastInterval = time.Second

const help = `Show the state of a cluster on one screen: the leading supervisor, catalogs,
Subscriptions, pending approvals, and problems with their remedies.

Without -n, the command shows all namespaces, or the namespace of the kubeconfig's
context if you cannot read all. Read access is enough. The section NOT READ lists the
objects that the command could not read, with the missing RBAC rules.

Exit codes:
  0  there is no problem, even if InstallPlans wait for approval
  1  the command failed
  2  there is a problem, or the namespace does not exist
  3  no problem was found, but a relevant object could not be read
  4  the API server cannot be reached`

// options are the flags of the command.
type options struct {
	connection console.Connection
	output     console.Output
	all        bool
	global     string
	watch      bool
	interval   time.Duration
	program    string
}

// New returns the command "status" of a program. name is how users call the program, and agent is
// its user agent for API servers.
func New(name, agent string) *cobra.Command {
	o := options{connection: console.Connection{Agent: agent}, program: name}
	cmd := &cobra.Command{
		Use:   "status [-n NAMESPACE | -A]",
		Short: "Show the state of catalogs and operators, and remedies for problems",
		Long:  help,
		Example: "  " + name + " status\n" +
			"  " + name + " status -n shop --watch\n" +
			"  " + name + " status -o json | jq -r '.findings[].cause'",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	flags := cmd.Flags()
	o.connection.AddFlags(cmd)
	o.connection.AddNamespaceFlag(cmd, "namespace to show, with the catalogs that it uses; empty: all namespaces")
	flags.BoolVarP(&o.all, "all-namespaces", "A", false, "show all namespaces; do not fall back to the namespace of the kubeconfig's context")
	o.connection.AddCatalogNamespaceFlag(cmd, &o.global)
	flags.BoolVarP(&o.watch, "watch", "w", false, "refresh the output until you interrupt the command")
	flags.DurationVar(&o.interval, "interval", 5*time.Second, "time between two refreshes with --watch")
	o.output.AddFlags(cmd)
	return cmd
}

func (o *options) run(cmd *cobra.Command) error {
	if err := o.output.Validate(); err != nil {
		return err //nolint:wrapcheck // names the flag
	}
	named := cmd.Flags().Changed("namespace")
	if named && o.all {
		return errors.New("--namespace (-n) and --all-namespaces (-A) exclude each other; give one of them")
	}
	if o.watch && o.interval < leastInterval {
		return fmt.Errorf("--interval is %s; it has to be %s or more", o.interval, leastInterval)
	}
	what, err := Scope(&o.connection, o.global, named, o.all)
	if err != nil {
		return err
	}
	cluster, err := o.connection.Cluster()
	if err != nil {
		return err //nolint:wrapcheck // says where it looked
	}
	reader, err := o.connection.Client()
	if err != nil {
		return err //nolint:wrapcheck // says where it looked
	}
	if o.watch {
		return o.follow(cmd, reader, cluster, what)
	}
	return o.once(cmd, reader, cluster, what)
}

// once prints the status and returns its verdict.
func (o *options) once(cmd *cobra.Command, reader client.Client, cluster console.Cluster, what snapshot.Options) error {
	if !o.output.ForMachines() {
		_, _ = io.WriteString(cmd.ErrOrStderr(), cluster.Header())
	}
	done := progress.Start(cmd.ErrOrStderr(), o.output.ForMachines(), "looking at the cluster")
	s, err := Read(cmd.Context(), reader, what)
	done()
	if err != nil {
		return err
	}
	s.Cluster = cluster
	if err := o.print(cmd.OutOrStdout(), "", s); err != nil {
		return err
	}
	return s.Verdict.exit()
}

// Scope returns what to read: the named namespace or all namespaces. Unless all is set, the
// namespace of the kubeconfig is the fallback for users who may not read all.
func Scope(connection *console.Connection, global string, named, all bool) (snapshot.Options, error) {
	what := snapshot.Options{GlobalNamespace: global, SupervisorNamespaces: []string{"chandlery-system", global, "default"}}
	if all {
		return what, nil
	}
	namespace, err := connection.Namespace()
	if err != nil {
		return what, err //nolint:wrapcheck // names the flag
	}
	if named {
		what.Namespaces = []string{namespace}
	} else {
		what.Fallback = namespace
	}
	return what, nil
}

// Read returns the status of a cluster.
func Read(ctx context.Context, reader client.Client, what snapshot.Options) (*Status, error) {
	what.Access = competing.NewAccessReviewer(reader, competing.VerbOLM, clock.RealClock{})
	observed, err := snapshot.Read(ctx, reader, what)
	if err != nil {
		return nil, err //nolint:wrapcheck // says what is missing
	}
	s := Of(observed)
	if len(what.Namespaces) == 0 && len(observed.Namespaces) > 0 {
		s.SetFallback(what.Fallback)
	}
	return &s, nil
}

// text returns the output for a status.
func (o *options) text(out io.Writer, s *Status) (string, error) {
	var text strings.Builder
	if o.output.ForMachines() {
		err := o.output.Document(&text, s)
		return text.String(), err //nolint:wrapcheck // says what it was doing
	}
	return View{Wide: o.output.Form == console.Wide, Program: o.program, Paint: o.output.Paint(out)}.Text(s), nil
}

func (o *options) print(out io.Writer, before string, s *Status) error {
	text, err := o.text(out, s)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, before+text); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

// before returns what precedes a status of follow: the separator, or the clearing of a terminal, and the header.
func (o *options) before(out io.Writer, separator string, cluster console.Cluster) string {
	switch {
	case o.output.ForMachines():
		return separator
	case terminal.IsTerminal(out):
		return console.ClearScreen() + cluster.Header()
	default:
		return separator + cluster.Header()
	}
}

// follow prints the status at each interval. A terminal is cleared before each status.
func (o *options) follow(cmd *cobra.Command, reader client.Client, cluster console.Cluster, what snapshot.Options) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	ticker := clock.RealClock{}.NewTicker(o.interval)
	defer ticker.Stop()
	before := ""
	for {
		s, err := Read(ctx, reader, what)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "%v; retrying\n", err)
		} else {
			s.Cluster = cluster
			if err := o.print(out, o.before(out, before, cluster), s); err != nil {
				return err
			}
			before = map[string]string{console.YAML: "---\n", console.Human: "\n", console.Wide: "\n"}[o.output.Form]
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}
