package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/cmd/internal/flagenv"
)

// validateOptions are the flags of "registry validate".
type validateOptions struct {
	reading reading
	output  string
}

func newValidateCommand() *cobra.Command {
	var o validateOptions
	cmd := &cobra.Command{
		Use:   "validate SOURCE...",
		Short: "Check catalogs and name everything that is wrong with them",
		Long: "Check catalogs and name everything that is wrong with them: each problem on a line with file and line,\n" +
			"what is wrong and what to do about it.\n\n" + sourceHelp + "\n\n" +
			"The exit code is 0 when no catalog has a problem, 1 when one has, and 2 when a catalog could not be judged.",
		Example: "  registry validate ./catalog\n" +
			"  registry validate ./catalogs/* -o json",
		Args: func(cmd *cobra.Command, args []string) error {
			return trouble(sources(cmd, args, 1, len(args)))
		},
		RunE: o.run,
	}
	o.reading.addFlags(cmd)
	addOutputFlag(cmd, &o.output, "text", "text", "json", "yaml")
	flagenv.Describe(cmd.Flags(), envPrefix)
	cmd.SetFlagErrorFunc(troubleWithFlags)
	return cmd
}

// judged is the verdict on one catalog.
type judged struct {
	Source   string    `json:"source"`
	Valid    bool      `json:"valid"`
	Packages int       `json:"packages"`
	Channels int       `json:"channels"`
	Bundles  int       `json:"bundles"`
	Problems []problem `json:"problems"`
}

// problem is a problem as programs read it.
type problem struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Package string `json:"package,omitempty"`
	Channel string `json:"channel,omitempty"`
	Bundle  string `json:"bundle,omitempty"`
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`

	text string
}

func (o *validateOptions) run(cmd *cobra.Command, args []string) error {
	if err := checkOutput(cmd, o.output); err != nil {
		return trouble(err)
	}
	verdicts, found := []judged{}, false
	for _, argument := range args {
		v, err := o.judge(cmd.Context(), cmd.ErrOrStderr(), argument)
		if err != nil {
			return trouble(fmt.Errorf("validating %s: %w", argument, err))
		}
		found = found || !v.Valid
		verdicts = append(verdicts, v)
	}
	var err error
	if o.output == "text" {
		printVerdicts(cmd.OutOrStdout(), verdicts)
	} else {
		err = printValue(cmd.OutOrStdout(), o.output, verdicts)
	}
	if err == nil && found {
		return errFound()
	}
	return trouble(err)
}

// judge reads one catalog. The error is about what is no matter of its content.
func (o *validateOptions) judge(ctx context.Context, progress io.Writer, argument string) (judged, error) {
	if _, err := os.Stat(argument); err != nil && !strings.Contains(argument, ":") {
		return judged{}, fmt.Errorf("reading it: %w", err)
	}
	x, err := o.reading.index(ctx, progress, argument)
	v := judged{Source: argument, Valid: err == nil, Problems: []problem{}}
	var problems bundles.Problems
	switch {
	case err == nil:
		stats := x.Stats()
		v.Packages, v.Channels, v.Bundles = stats.Packages, stats.Channels, stats.Bundles
		return v, nil
	case ctx.Err() != nil || !errors.As(err, &problems):
		return judged{}, err
	}
	for _, p := range problems {
		v.Problems = append(v.Problems, newProblem(argument, p))
	}
	return v, nil
}

// newProblem names the file of a problem as it is seen from where the program
// runs, so that editors find it.
func newProblem(argument string, p bundles.Problem) problem {
	out := problem{Package: p.Package, Channel: p.Channel, Bundle: p.Bundle, Message: p.Message, Remedy: p.Remedy}
	if p.File != "" && p.File != argument {
		if info, err := os.Stat(argument); err == nil && info.IsDir() {
			p.File = filepath.Join(argument, p.File)
		}
	}
	out.text = p.String()
	out.File = p.File
	if colon := strings.LastIndexByte(p.File, ':'); colon >= 0 {
		if _, err := fmt.Sscanf(p.File[colon:], ":%d", &out.Line); err == nil {
			out.File = p.File[:colon]
		}
	}
	return out
}

func printVerdicts(out io.Writer, verdicts []judged) {
	problems, invalid := 0, 0
	for _, v := range verdicts {
		for _, p := range v.Problems {
			fmt.Fprintln(out, p.text)
		}
		problems += len(v.Problems)
		if !v.Valid {
			invalid++
			fmt.Fprintf(out, "%s: %s\n", v.Source, count(len(v.Problems), "problem"))
			continue
		}
		fmt.Fprintf(out, "%s: %d packages, %d channels, %d bundles, no problems\n", v.Source, v.Packages, v.Channels, v.Bundles)
	}
	if len(verdicts) > 1 {
		fmt.Fprintf(out, "%s in %d of %d catalogs\n", count(problems, "problem"), invalid, len(verdicts))
	}
}

// count returns a number and what it counts.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
