package console

import (
	"bufio"
	"errors"
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
	return yes || !canAsk(in, log) || Confirm(in, log, question)
}

// RequireConfirmation returns an error unless yes is set, or the user confirms at a terminal. The error begins with
// refused. Commands use it that remove something, or that replace the lifecycle manager.
func RequireConfirmation(in io.Reader, log io.Writer, yes bool, question, refused string) error {
	switch {
	case yes:
		return nil
	case !canAsk(in, log):
		return errors.New(refused + ": without a terminal, the command cannot ask for confirmation. Check the output and repeat the command with --yes")
	case !Confirm(in, log, question):
		return errors.New(refused)
	}
	return nil
}

// canAsk reports whether a user at a terminal reads log and answers on in.
func canAsk(in io.Reader, log io.Writer) bool {
	answers, is := in.(io.Writer)
	return is && terminal.IsTerminal(answers) && terminal.IsTerminal(log)
}
