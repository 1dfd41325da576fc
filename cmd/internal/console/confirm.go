package console

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/chandlery/chandlery/cmd/internal/terminal"
)

// Confirm asks a question on out and reports whether the answer that it reads from in is yes.
func Confirm(in io.Reader, out io.Writer, question string) bool {
	fmt.Fprintf(out, "%s [y/N] ", question)
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		fmt.Fprintln(out)
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// Confirmed reports whether a change may be made: yes is set, there is no terminal, or the user confirms.
func Confirmed(in io.Reader, log io.Writer, yes bool, question string) bool {
	answers, is := in.(io.Writer)
	if yes || !is || !terminal.IsTerminal(answers) || !terminal.IsTerminal(log) {
		return true
	}
	return Confirm(in, log, question)
}
