package console

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/cmd/internal/terminal"
)

// The forms of the output. Human and Wide are for people, and may change; JSON and YAML
// are for programs and hold the same document.
const (
	Human = "human"
	Wide  = "wide"
	JSON  = "json"
	YAML  = "yaml"
)

// table is what the form for people was called before there were others.
const table = "table"

// Output is the form of what a command prints.
type Output struct {
	// Form is one of those above, or of Also.
	Form string
	// Also are forms that one command has besides.
	Also  []string
	color string
}

// AddFlags adds --output and --color, and completes their values.
func (o *Output) AddFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.Form, "output", "o", Human, "output format: "+strings.Join(o.forms(), ", "))
	cmd.Flags().StringVar(&o.color, "color", "auto", "colours in the output: auto (on terminals, unless $NO_COLOR is set), always or never")
	Complete(cmd, "output", cobra.FixedCompletions(o.forms(), cobra.ShellCompDirectiveNoFileComp))
	Complete(cmd, "color", cobra.FixedCompletions(colors(), cobra.ShellCompDirectiveNoFileComp))
}

func (o *Output) forms() []string { return append([]string{Human, Wide, JSON, YAML}, o.Also...) }

func colors() []string { return []string{"auto", "always", "never"} }

// Validate reports values that cannot be.
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

// ForMachines says whether a program is to read the output.
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

// Paint returns what colours words that are written to out: nothing but on terminals,
// unless the flag says otherwise.
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

// Paint colours words, or leaves them as they are. Every word means without its colour what
// it means with it. Coloured words have to be written to a [terminal.Writer].
type Paint struct{ on bool }

// ClearScreen returns what moves to the upper left of a terminal and clears what is there. It
// has to be written to a [terminal.Writer].
func ClearScreen() string { return terminal.Control("\x1b[H\x1b[2J\x1b[3J") }

// Good is for what is well.
func (p Paint) Good(text string) string { return p.paint("32", text) }

// Bad is for what is wrong.
func (p Paint) Bad(text string) string { return p.paint("31", text) }

// Waiting is for what waits, for time or for somebody.
func (p Paint) Waiting(text string) string { return p.paint("33", text) }

// Faint is for what matters less.
func (p Paint) Faint(text string) string { return p.paint("2", text) }

// Bold is for headings.
func (p Paint) Bold(text string) string { return p.paint("1", text) }

func (p Paint) paint(code, text string) string {
	if !p.on || text == "" {
		return text
	}
	return terminal.Control("\x1b["+code+"m") + text + terminal.Control("\x1b[0m")
}
