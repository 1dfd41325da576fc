package inspect

import (
	"errors"
	"fmt"
	"io"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/cmd/internal/exitcode"
	"github.com/chandlery/chandlery/cmd/internal/terminal"
)

// PrintError writes one line for each problem, after the name of the program.
func PrintError(out io.Writer, program string, err error) {
	if exitcode.IsSilent(err) {
		return
	}
	var problems bundles.Problems
	if !errors.As(err, &problems) {
		problems = bundles.AsProblems(err)
	}
	for i := range problems {
		fmt.Fprintf(out, "%s: %s\n", program, terminal.Escape(problems[i].String()))
	}
}
