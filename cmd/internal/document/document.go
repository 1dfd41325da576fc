// Package document lets commands write documents of a program's own, such as catalogs, as they are.
package document

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/cmd/internal/terminal"
)

// Writer returns where a command writes a document that must not be changed. On its way to a
// terminal it is filtered as all text is.
func Writer(cmd *cobra.Command) io.Writer {
	out := cmd.OutOrStdout()
	if terminal.IsTerminal(out) {
		return out
	}
	return terminal.Unfiltered(out)
}
