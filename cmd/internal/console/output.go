package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/cmd/internal/terminal"
)

// The output formats. Human and Wide are for people and may change. JSON and YAML are for programs
// and hold the same document.
const (
	Human = "human"
	Wide  = "wide"
	JSON  = "json"
	YAML  = "yaml"
)

// table is the former name of the format for people.
const table = "table"

// Output is the output format of a command.
type Output struct {
	// Form is one of the formats above or of Also.
	Form string
	// Also are additional formats of one command.
	Also  []string
	color string
}

// AddFlags adds --output and --color, with their completions.
func (o *Output) AddFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.Form, "output", "o", Human, "output format: "+strings.Join(o.forms(), ", "))
	cmd.Flags().StringVar(&o.color, "color", "auto", "colours: auto (on terminals, unless $NO_COLOR is set), always or never")
	Complete(cmd, "output", cobra.FixedCompletions(o.forms(), cobra.ShellCompDirectiveNoFileComp))
	Complete(cmd, "color", cobra.FixedCompletions(colors(), cobra.ShellCompDirectiveNoFileComp))
}

func (o *Output) forms() []string { return append([]string{Human, Wide, JSON, YAML}, o.Also...) }

func colors() []string { return []string{"auto", "always", "never"} }

// Validate returns an error for invalid values.
func (o *Output) Validate() error {
	if o.Form == table {
		o.Form = Human
	}
	if !slices.Contains(o.forms(), o.Form) {
		return fmt.Errorf("--output is %q; it has to be one of %s", o.Form, strings.Join(o.forms(), ", "))
	}
	if !slices.Contains(colors(), o.color) {
		return fmt.Errorf("--color is %q; it has to be one of %s", o.color, strings.Join(colors(), ", "))
	}
	return nil
}

// ForMachines reports whether the format is JSON or YAML.
func (o *Output) ForMachines() bool { return o.Form == JSON || o.Form == YAML }

// Document writes a value as JSON or YAML.
func (o *Output) Document(out io.Writer, value any) error {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	document := []byte(text.String())
	if o.Form == YAML {
		var err error
		if document, err = terminal.YAML(document); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
	}
	if _, err := out.Write(document); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

// WithDocument prints a value in the formats for programs, and returns an error of the command. The other formats show
// only the error.
func (o *Output) WithDocument(out io.Writer, value any, err error) error {
	if !o.ForMachines() {
		return err
	}
	return errors.Join(err, o.Document(out, value))
}

// Paint returns the colors for out: none unless out is a terminal or the flag requires them.
func (o *Output) Paint(out io.Writer) Paint {
	switch o.color {
	case "always":
		return Paint{on: true}
	case "never":
		return Paint{}
	}
	_, plain := os.LookupEnv("NO_COLOR")
	return Paint{on: !plain && os.Getenv("TERM") != "dumb" && terminal.IsTerminal(out)}
}

// Paint colors words or leaves them unchanged. No word may need its color to be understood. Colored
// words must be written to a [terminal.Writer].
type Paint struct{ on bool }

// ClearScreen returns the control sequence that clears a terminal. It must be written to a [terminal.Writer].
func ClearScreen() string { return terminal.Control("\x1b[H\x1b[2J\x1b[3J") }

// Good colors good states.
func (p Paint) Good(text string) string { return p.paint("32", text) }

// Bad colors problems.
func (p Paint) Bad(text string) string { return p.paint("31", text) }

// Waiting colors states that wait for time or for approval.
func (p Paint) Waiting(text string) string { return p.paint("33", text) }

// Faint colors less important text.
func (p Paint) Faint(text string) string { return p.paint("2", text) }

// Bold formats headings.
func (p Paint) Bold(text string) string { return p.paint("1", text) }

func (p Paint) paint(code, text string) string {
	if !p.on || text == "" {
		return text
	}
	return terminal.Control("\x1b["+code+"m") + text + terminal.Control("\x1b[0m")
}
