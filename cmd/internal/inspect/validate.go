package inspect

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/cmd/internal/exitcode"
	"github.com/chandlery/chandlery/cmd/internal/flagenv"
)

// validateOptions are the flags of "validate".
type validateOptions struct {
	Program

	output string
	strict bool
}

// Validate returns the command "validate" of a program.
func Validate(p Program) *cobra.Command {
	o := validateOptions{Program: p}
	sources := p.Sources + "\n\n"
	if p.Warnings != "" {
		sources += p.Warnings + "\n\n"
	}
	cmd := &cobra.Command{
		Use:   "validate SOURCE...",
		Short: "Check catalogs and list all problems",
		Long: "Check catalogs and list all problems. Each line shows one problem, with its place, cause and remedy.\n\n" +
			sources +
			"Exit codes:\n" +
			"  0  no catalog has a problem other than warnings\n" +
			"  1  a catalog has a problem\n" +
			"  2  a catalog cannot be read; the command still checks the others",
		Example: "  " + p.Name + " validate ./catalog\n" +
			"  " + p.Name + " validate ./catalogs/* -o json",
		Args: func(cmd *cobra.Command, args []string) error {
			return exitcode.Troubled(Arguments(cmd, args, 1, len(args)))
		},
		RunE: o.run,
	}
	p.Reader.AddFlags(cmd)
	AddOutputFlag(cmd, &o.output, "text", "text", "json", "yaml")
	cmd.Flags().BoolVar(&o.strict, "strict", false, "exit with 1 also for warnings")
	flagenv.Describe(cmd.Flags(), p.EnvPrefix)
	cmd.SetFlagErrorFunc(TroubledFlags)
	return cmd
}

// validation is the result for one catalog.
type validation struct {
	Source string `json:"source"`
	Valid  bool   `json:"valid"`
	// Unreadable is set if the catalog could not be read. The problems state why.
	Unreadable bool      `json:"unreadable,omitempty"`
	Packages   int       `json:"packages"`
	Channels   int       `json:"channels"`
	Bundles    int       `json:"bundles"`
	Problems   []problem `json:"problems"`
}

// Severities of problems.
const (
	severityError   = "error"
	severityWarning = "warning"
)

// problem is a problem in the machine-readable output.
type problem struct {
	Severity string `json:"severity"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Package  string `json:"package,omitempty"`
	Channel  string `json:"channel,omitempty"`
	Bundle   string `json:"bundle,omitempty"`
	Message  string `json:"message"`
	Remedy   string `json:"remedy,omitempty"`

	text string
}

func (o *validateOptions) run(cmd *cobra.Command, args []string) error {
	if err := CheckOutput(cmd, o.output); err != nil {
		return exitcode.Troubled(err)
	}
	validations := o.validateAll(cmd, args)
	if err := cmd.Context().Err(); err != nil {
		return exitcode.Troubled(fmt.Errorf("validating: %w", err))
	}
	if o.output == "text" {
		printValidations(cmd.OutOrStdout(), validations)
	} else if err := PrintValue(cmd.OutOrStdout(), o.output, validations); err != nil {
		return exitcode.Troubled(err)
	}
	switch {
	case slices.ContainsFunc(validations, func(v validation) bool { return v.Unreadable }):
		return &exitcode.Error{Code: exitcode.Trouble}
	case slices.ContainsFunc(validations, func(v validation) bool { return !v.Valid || o.strict && len(v.Problems) > 0 }):
		return exitcode.ErrFound()
	}
	return nil
}

// validateAll reads one catalog after the other. It prints the error of a catalog that could not be read at once.
func (o *validateOptions) validateAll(cmd *cobra.Command, args []string) []validation {
	validations := []validation{}
	for _, argument := range args {
		v := validation{Source: argument, Problems: []problem{}}
		counts, err := o.Reader.Count(cmd.Context(), cmd.ErrOrStderr(), argument)
		if cmd.Context().Err() != nil {
			break
		}
		if err == nil {
			v.Valid, v.Packages, v.Channels, v.Bundles = true, counts.Packages, counts.Channels, counts.Bundles
			for _, p := range counts.Warnings {
				v.Problems = append(v.Problems, newProblem(argument, severityWarning, p))
			}
			validations = append(validations, v)
			continue
		}
		for _, p := range bundles.AsProblems(err) {
			v.Problems = append(v.Problems, newProblem(argument, severityError, p))
		}
		if v.Unreadable = o.unreadable(argument, err); v.Unreadable {
			PrintError(cmd.ErrOrStderr(), o.Name, fmt.Errorf("validating %s: %w", argument, err))
		}
		validations = append(validations, v)
	}
	return validations
}

// unreadable reports whether an error means that a catalog could not be read at all. Other errors
// concern its content.
func (o *validateOptions) unreadable(argument string, err error) bool {
	var problems bundles.Problems
	if !errors.As(err, &problems) {
		return true
	}
	if !slices.ContainsFunc(problems, func(p bundles.Problem) bool { return !p.Unreadable }) {
		return true
	}
	path := o.Reader.Path(argument)
	if path == "" {
		// A problem of the image itself names its reference. A problem of its content names a file.
		return slices.ContainsFunc(problems, func(p bundles.Problem) bool {
			return p.File != "" && strings.HasSuffix(argument, p.File)
		})
	}
	_, err = os.Stat(path)
	return err != nil
}

// located returns a problem with the path of its file, if the argument names a directory.
func located(argument string, p bundles.Problem) bundles.Problem {
	if info, err := os.Stat(argument); p.File != "" && p.File != argument && err == nil && info.IsDir() {
		p.File = filepath.Join(argument, p.File)
	}
	return p
}

// newProblem makes the file of a problem relative to the working directory, so editors find it.
func newProblem(argument, severity string, p bundles.Problem) problem {
	out := problem{Severity: severity, Package: p.Package, Channel: p.Channel, Bundle: p.Bundle, Message: p.Message, Remedy: p.Remedy}
	p = located(argument, p)
	out.text = p.String()
	out.File = p.File
	if colon := strings.LastIndexByte(p.File, ':'); colon >= 0 {
		if _, err := fmt.Sscanf(p.File[colon:], ":%d", &out.Line); err == nil {
			out.File = p.File[:colon]
		}
	}
	return out
}

// printValidations prints the results. Of the catalogs that could not be read it prints only the number.
func printValidations(out io.Writer, validations []validation) {
	problems, invalid, unread := 0, 0, 0
	for _, v := range validations {
		switch {
		case v.Unreadable:
			unread++
		case v.Valid:
			for _, p := range v.Problems {
				fmt.Fprintln(out, "warning: "+p.text)
			}
			fmt.Fprintf(out, "%s: %s, %s, %s, %s\n", v.Source,
				bundles.Count(v.Packages, "package"), bundles.Count(v.Channels, "channel"), bundles.Count(v.Bundles, "bundle"), warnings(len(v.Problems)))
		default:
			invalid++
			problems += len(v.Problems)
			for _, p := range v.Problems {
				fmt.Fprintln(out, p.text)
			}
			fmt.Fprintf(out, "%s: %s\n", v.Source, bundles.Count(len(v.Problems), "problem"))
		}
	}
	if len(validations) == 1 {
		return
	}
	fmt.Fprintf(out, "%s in %d of %s", bundles.Count(problems, "problem"), invalid, bundles.Count(len(validations), "catalog"))
	if unread > 0 {
		fmt.Fprintf(out, ", %d could not be read", unread)
	}
	fmt.Fprintln(out)
}

// warnings describes the number of warnings of a valid catalog.
func warnings(n int) string {
	if n == 0 {
		return "no problems"
	}
	return bundles.Count(n, "warning")
}
