// Command catalog creates file-based operator catalogs: it renders bundles, changes catalogs in
// place, and builds and pushes catalog images.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/cmd/internal/exitcode"
	"github.com/chandlery/chandlery/cmd/internal/inspect"
	"github.com/chandlery/chandlery/cmd/internal/program"
	"github.com/chandlery/chandlery/cmd/internal/terminal"
	"github.com/chandlery/chandlery/server/source"
)

// The linker sets these.
var (
	version = "devel"
	commit  = "unknown"
)

const (
	// envPrefix is the prefix of the variables that set flags.
	envPrefix = "CATALOG"
	// registryReference is the reference of the program registry, which has some of the same commands and flags.
	registryReference = "commands-registry.md"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the program at once.
	context.AfterFunc(ctx, stop)
	if err := newCommand().ExecuteContext(ctx); err != nil {
		printError(terminal.NewWriter(os.Stderr), err)
		stop()
		os.Exit(exitcode.Of(err)) //nolint:gocritic // stop has been called
	}
}

func newCommand() *cobra.Command {
	catalog := program.Program{
		Name: "catalog", Short: "Create file-based operator catalogs and their images",
		EnvPrefix: envPrefix, Version: version, Commit: commit, FlagGroupsOn: map[string]string{
			"image registry flags": registryReference, "pull flags": registryReference, "selection flags": registryReference,
		},
	}
	shared := program.DescribedOn(registryReference, "registry", []*cobra.Command{inspect.Validate(inspected()), inspect.Diff(inspected())})
	return catalog.Command(append(shared, newInitCommand(), newAddCommand(), newRenderCommand(), newTemplateCommand(), newDeprecateCommand(),
		newConvertCommand(), newPruneCommand(), newMergeCommand(), newImagesCommand(),
		newDockerfileCommand(), newPushCommand())...)
}

// printError writes one line for each problem, and the remedy for errors of images.
func printError(out io.Writer, err error) {
	failed, isImage := errors.AsType[*image.Error](err)
	if isImage && !errors.As(err, new(bundles.Problems)) {
		err = bundles.Problems{{File: failed.Reference, Message: failed.Err.Error(), Remedy: source.ImageRemedy(failed)}}
	}
	inspect.PrintError(out, "catalog", err)
}
