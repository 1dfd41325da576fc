package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/index"
	"github.com/chandlery/chandlery/cmd/internal/flagenv"
	"github.com/chandlery/chandlery/cmd/internal/program"
	"github.com/chandlery/chandlery/cmd/internal/progress"
)

// buildOptions are the flags of "registry build".
type buildOptions struct {
	output  string
	quiet   bool
	source  sourceFlags
	logging program.Logging
}

func newBuildCommand() *cobra.Command {
	var o buildOptions
	cmd := &cobra.Command{
		Use:   "build SOURCE --output FILE",
		Short: "Build the index file of a catalog, for a fast start",
		Long: "Build the index file of the catalog in a directory, an image or a mounted ConfigMap.\n\n" +
			"The file is reproducible: the same catalog results in the same bytes. The command replaces an\n" +
			"existing file only if the catalog has no problems and the new file is complete.\n\n" + selectionHelp,
		Example: "  registry build ./catalog -o catalog.index\n" +
			"  registry build oci:registry.example/team/catalog:v1 -o catalog.index\n" +
			"  registry build ./catalog -o heads.index --heads\n" +
			"  registry serve catalog.index",
		Args: oneSource,
		RunE: func(cmd *cobra.Command, args []string) error {
			handler, err := o.logging.Handler(cmd.ErrOrStderr())
			if err != nil {
				return fmt.Errorf("starting: %w", err)
			}
			return o.run(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr(), slog.New(handler))
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.output, "output", "o", "", "file to write")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "do not show progress, which appears only on a terminal")
	o.source.AddFlags(flags)
	o.source.addSelectionFlags(cmd)
	o.logging.AddFlags(flags)
	o.logging.Complete(cmd)
	flagenv.Describe(flags, envPrefix)
	return cmd
}

var (
	errNoOutput     = errors.New("name the file to write with --output")
	errOutputStdout = errors.New("--output - is standard output, which cannot be replaced when the index is complete; name a file to write")
	errOutputDir    = errors.New("is a directory; name a file to write")
	errOutputKind   = errors.New("which the index would replace; name a regular file, or one that does not exist yet")
	errOutputInside = errors.New("lies in the catalog, where it would be read as a part of it; name a file elsewhere")
	errIsIndex      = errors.New("is an index file already, or is no source for an index")
)

// creator is a source that can write an index file.
type creator interface {
	Create(ctx context.Context, name string) (index.Info, error)
}

func (o *buildOptions) run(ctx context.Context, argument string, out, terminal io.Writer, logger *slog.Logger) error {
	if err := o.checkOutput(argument); err != nil {
		return err
	}
	from, err := o.source.open(argument, logger)
	if err != nil {
		return err
	}
	able, ok := from.(creator)
	if !ok {
		return fmt.Errorf("%s %w", argument, errIsIndex)
	}
	done := progress.Start(terminal, o.quiet, "Building "+o.output)
	info, err := able.Create(ctx, o.output)
	done()
	if err != nil {
		return fmt.Errorf("building the index: %w", err)
	}
	file, err := os.Stat(o.output)
	if err != nil {
		return fmt.Errorf("reading the index: %w", err)
	}
	_, err = fmt.Fprintf(out, "%s: %s, %s, %s in %d bytes, content %s\n", o.output, bundles.Count(info.Packages, "package"),
		bundles.Count(info.Channels, "channel"), bundles.Count(info.Bundles, "bundle"), file.Size(), info.ContentDigest)
	if err != nil {
		return fmt.Errorf("printing the result: %w", err)
	}
	return nil
}

// checkOutput returns an error for an output file that cannot be written or must not be.
func (o *buildOptions) checkOutput(argument string) error {
	switch o.output {
	case "":
		return errNoOutput
	case "-":
		return errOutputStdout
	}
	if info, err := os.Lstat(o.output); err == nil && info.IsDir() {
		return fmt.Errorf("--output %s %w", o.output, errOutputDir)
	} else if err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("--output %s is %s, %w", o.output, kindOf(info.Mode()), errOutputKind)
	}
	catalog, err := filepath.EvalSymlinks(strings.TrimPrefix(argument, configMapPrefix))
	if err != nil {
		return nil //nolint:nilerr // it is no directory then, or the one who reads it says so
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(o.output))
	if err != nil {
		return fmt.Errorf("--output %s: %w", o.output, err)
	}
	if isBelow(dir, catalog) {
		return fmt.Errorf("--output %s %w", o.output, errOutputInside)
	}
	return nil
}

// kindOf returns the name of the kind of a file that is not regular.
func kindOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	default:
		return "no regular file"
	}
}

// isBelow reports whether a directory is another directory or lies in it.
func isBelow(dir, other string) bool {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return false
	}
	base, err := filepath.Abs(other)
	if err != nil {
		return false
	}
	relative, err := filepath.Rel(base, absolute)
	return err == nil && filepath.IsLocal(relative)
}
