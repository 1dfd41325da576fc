package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/index"
	"github.com/chandlery/chandlery/bundles/outline"
	"github.com/chandlery/chandlery/bundles/outline/contract"
	"github.com/chandlery/chandlery/cmd/internal/inspect"
	"github.com/chandlery/chandlery/cmd/internal/progress"
)

// sourceHelp describes the arguments of commands that read catalogs.
const sourceHelp = "A SOURCE is a directory, an index file, an image (oci:REFERENCE) or a mounted ConfigMap (configmap:DIR)."

// readOptions holds the flags of commands that read catalogs.
type readOptions struct {
	source sourceFlags
	quiet  bool
}

// addFlags adds the flags for reading catalogs.
func (r *readOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	r.source.AddFlags(flags)
	flags.BoolVarP(&r.quiet, "quiet", "q", false, "do not show progress, which appears only on a terminal")
	// These flags only concern serving.
	for _, name := range []string{"poll", "cache-only", "cache-enforce-integrity"} {
		if flags.Lookup(name) == nil {
			continue
		}
		if err := flags.MarkHidden(name); err != nil {
			panic(err) //nolint:forbidigo // it has just been looked up
		}
	}
}

// index reads a catalog.
func (r *readOptions) index(ctx context.Context, terminal io.Writer, argument string) (*index.Index, error) {
	source, err := r.source.open(argument, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	done := progress.Start(terminal, r.quiet, "Reading "+argument)
	defer done()
	x, err := source.Load(ctx)
	if err != nil {
		return nil, err
	}
	if damage := x.Check(); damage != nil {
		return r.rebuild(ctx, argument, damage)
	}
	return x, nil
}

// rebuild reads a catalog again whose index is damaged. A cached index is rebuilt when its
// integrity is enforced. An index file cannot be rebuilt.
func (r *readOptions) rebuild(ctx context.Context, argument string, damage error) (*index.Index, error) {
	problem := bundles.Problem{File: argument, Message: damage.Error(), Remedy: "recreate it with 'registry build'"}
	if r.source.cacheDir == "" || r.source.cacheEnforceIntegrity {
		return nil, bundles.Problems{problem}
	}
	closely := r.source
	closely.cacheEnforceIntegrity = true
	from, err := closely.open(argument, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	x, err := from.Load(ctx)
	if err != nil {
		return nil, err
	}
	if x.Check() != nil {
		return nil, bundles.Problems{problem}
	}
	return x, nil
}

// outline reads a catalog without its manifests.
func (r *readOptions) outline(ctx context.Context, terminal io.Writer, argument string, o outline.Options) (*outline.Catalog, error) {
	x, err := r.index(ctx, terminal, argument)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", argument, err)
	}
	return contract.FromIndex(ctx, x, o)
}

// between accepts a number of arguments between least and most.
func between(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error { return inspect.Arguments(cmd, args, least, most) }
}

// completePackages completes the names of a catalog's packages for the argument at an index. It
// reads only local files.
func (r *readOptions) completePackages(at int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) < at {
			return nil, cobra.ShellCompDirectiveDefault
		}
		if len(args) > at || !isLocal(args[at-1]) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		catalog, err := r.outline(cmd.Context(), io.Discard, args[at-1], outline.Options{})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []cobra.Completion
		for _, p := range catalog.Packages {
			out = append(out, cobra.CompletionWithDesc(p.Name, p.DefaultChannel))
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}
