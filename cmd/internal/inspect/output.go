package inspect

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/cmd/internal/terminal"
)

// AddOutputFlag adds the flag for the output format.
func AddOutputFlag(cmd *cobra.Command, to *string, standard string, forms ...string) {
	cmd.Flags().StringVarP(to, "output", "o", standard, "output format: "+strings.Join(forms, ", "))
	cmd.Annotations = map[string]string{"forms": strings.Join(forms, " ")}
	complete := cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("output", complete); err != nil {
		panic(err) //nolint:forbidigo // the flag is added a line above
	}
}

// ErrBadOutput means that --output is not one of a command's formats.
var ErrBadOutput = errors.New("invalid value of --output")

// CheckOutput returns an error for a format that the command does not have.
func CheckOutput(cmd *cobra.Command, form string) error {
	forms := strings.Fields(cmd.Annotations["forms"])
	if slices.Contains(forms, form) {
		return nil
	}
	return fmt.Errorf("%w: it must be %s, found %q", ErrBadOutput, strings.Join(forms, ", "), form)
}

// PrintValue writes a value as JSON or YAML.
func PrintValue(out io.Writer, form string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	text = append(text, '\n')
	if err == nil && form == "yaml" {
		text, err = terminal.YAML(text)
	}
	if err != nil {
		return fmt.Errorf("encoding as %s: %w", form, err)
	}
	if _, err := out.Write(text); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}
