// Package document lets commands write whole documents, such as catalogs, unchanged.
package document

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/cmd/internal/terminal"
)

// Writer returns the output for a document that must not be changed. A terminal gets filtered text,
// as all text is.
func Writer(cmd *cobra.Command) io.Writer {
	out := cmd.OutOrStdout()
	if terminal.IsTerminal(out) {
		return out
	}
	return terminal.Unfiltered(out)
}
