// Package catalog has the commands that add, list and remove the catalogs of a cluster.
package catalog

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/cmd/internal/console"
)

// New returns the command "catalog" of a program. name is how users call the program, and agent is its user agent for
// API servers.
func New(name, agent string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "catalog",
		Short: "Add, list and remove catalogs of the cluster",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAdd(name, agent), newList(name, agent), newRemove(name, agent))
	return cmd
}

// shared are the flags that the commands share.
type shared struct {
	connection console.Connection
	output     console.Output
	global     string
}

// addFlags adds the flags that add and remove share.
func (s *shared) addFlags(cmd *cobra.Command) {
	s.connection.AddFlags(cmd)
	s.connection.AddNamespaceFlag(cmd, "namespace of the catalog; empty: the namespace of global catalogs")
	s.connection.AddCatalogNamespaceFlag(cmd, &s.global)
	s.output.AddFlags(cmd)
}

// outcome is what add or remove did.
type outcome string

// The outcomes.
const (
	outcomePlanned   outcome = "planned"
	outcomeUnchanged outcome = "unchanged"
	outcomeCreated   outcome = "created"
	outcomeReady     outcome = "ready"
	outcomeRemoved   outcome = "removed"
	outcomeFailed    outcome = "failed"
)

// namespace returns the namespace of a catalog.
func (s *shared) namespace(cmd *cobra.Command) (string, error) {
	if cmd.Flags().Changed("namespace") {
		return s.connection.Namespace()
	}
	return s.global, nil
}

func write(out io.Writer, text string) error {
	if _, err := io.WriteString(out, text); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}
