package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/cmd/internal/command/status"
	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/supervisor/explain"
)

const listHelp = `List the catalogs that a namespace can use: its own catalogs and the global ones. The
command 'status' also shows them.

Exit codes:
  0  the command succeeded
  1  the command failed
  2  the namespace does not exist
  3  a permission is missing
  4  the API server cannot be reached`

// lister is the command "catalog list".
type lister struct {
	shared

	all     bool
	program string
}

func newList(name, agent string) *cobra.Command {
	l := &lister{shared: shared{connection: console.Connection{Agent: agent}}, program: name}
	cmd := &cobra.Command{
		Use:               "list [-n NAMESPACE | -A]",
		Short:             "List catalogs",
		Long:              listHelp,
		Example:           "  " + name + " catalog list -A",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return l.run(cmd) },
	}
	l.connection.AddFlags(cmd)
	l.connection.AddNamespaceFlag(cmd, "namespace that uses the catalogs; empty: the namespace of the kubeconfig's context")
	l.connection.AddCatalogNamespaceFlag(cmd, &l.global)
	cmd.Flags().BoolVarP(&l.all, "all-namespaces", "A", false, "list the catalogs of all namespaces")
	l.output.AddFlags(cmd)
	return cmd
}

func (l *lister) run(cmd *cobra.Command) error {
	if err := l.output.Validate(); err != nil {
		return err
	}
	if l.all && cmd.Flags().Changed("namespace") {
		return errors.New("--namespace (-n) and --all-namespaces (-A) exclude each other; give one of them")
	}
	what, err := status.Scope(&l.connection, l.global, !l.all, l.all)
	if err != nil {
		return err
	}
	c, err := l.connection.Client()
	if err != nil {
		return err
	}
	s, err := status.Read(cmd.Context(), c, what)
	if err != nil {
		return err
	}
	var refused error
	for _, unreadable := range s.Unreadable {
		if unreadable.Resource == "catalogsources."+operatorsv1alpha1.GroupName {
			refused = unreadableError(unreadable.Unreadable)
		}
	}
	if refused != nil && len(s.Catalogs) == 0 {
		return refused
	}
	return errors.Join(l.print(cmd.OutOrStdout(), s), refused)
}

// print prints the catalogs that could be read.
func (l *lister) print(out io.Writer, s *status.Status) error {
	if l.output.ForMachines() {
		return l.output.Document(out, map[string]any{"catalogs": s.Catalogs})
	}
	view := status.View{Wide: l.output.Form == console.Wide, Program: l.program, Paint: l.output.Paint(out)}
	return write(out, view.Catalogs(s))
}

// unreadableError returns the error for CatalogSources that could not be listed.
func unreadableError(u explain.Unreadable) error {
	err := fmt.Errorf("listing the CatalogSources: %s", cmp.Or(u.Message, u.Reason))
	switch u.Reason {
	case explain.UnreadableNotInstalled:
		return console.MissingAPI(err)
	case explain.UnreadableForbidden:
		return &console.Coded{Code: console.Forbidden, Err: err}
	default:
		return &console.Coded{Code: console.Unreachable, Err: err}
	}
}
