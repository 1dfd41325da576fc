package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/cmd/internal/terminal"
)

// Question asks a user for confirmation.
type Question struct {
	// Text is the question, such as "Remove it?".
	Text string
	// Refused is the beginning of the error if the user does not confirm, such as "nothing was removed".
	Refused string
	// Yes confirms without the question.
	Yes bool
	// Required is set for commands that remove something, or that replace the lifecycle manager: without a terminal,
	// they need Yes. Other commands continue.
	Required bool
}

// Asks reports whether Ask asks the question, because Yes is unset and a user is at the terminal of a command.
func (q Question) Asks(cmd *cobra.Command) bool {
	return !q.Yes && canAsk(cmd.InOrStdin(), cmd.ErrOrStderr())
}

// Ask asks the question on the error output of a command. It returns an error unless the user confirms:
// [ErrInterrupted] if the context of the command ends first.
func (q Question) Ask(cmd *cobra.Command) error {
	in, log := cmd.InOrStdin(), cmd.ErrOrStderr()
	switch asks := q.Asks(cmd); {
	case q.Yes, !q.Required && !asks:
		return nil
	case !asks:
		return errors.New(q.Refused + ": without a terminal, the command cannot ask for confirmation. Check the output and repeat the command with --yes")
	}
	yes, err := confirm(cmd.Context(), in, log, q.Text)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", q.Refused, err)
	case !yes:
		return errors.New(q.Refused)
	}
	return nil
}

// confirm asks a question on out and reports whether the answer that it reads from in is yes. It returns
// [ErrInterrupted] if the context ends first. A read from a terminal cannot be canceled, so it lasts until the
// program ends.
func confirm(ctx context.Context, in io.Reader, out io.Writer, question string) (bool, error) {
	fmt.Fprintf(out, "%s [y/N] ", question)
	answers := make(chan string, 1)
	go func() {
		answer, _ := bufio.NewReader(in).ReadString('\n') // an incomplete line counts too
		answers <- answer
	}()
	var answer string
	select {
	case <-ctx.Done():
		fmt.Fprintln(out)
		return false, ErrInterrupted
	case answer = <-answers:
	}
	if !strings.HasSuffix(answer, "\n") {
		fmt.Fprintln(out)
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes", nil
}

// canAsk reports whether a user at a terminal reads log and answers on in.
func canAsk(in io.Reader, log io.Writer) bool {
	answers, is := in.(io.Writer)
	return is && terminal.IsTerminal(answers) && terminal.IsTerminal(log)
}
