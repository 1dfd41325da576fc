// Command registry serves file-based operator catalogs over gRPC.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chandlery/chandlery/cmd/internal/exitcode"
	"github.com/chandlery/chandlery/cmd/internal/inspect"
	"github.com/chandlery/chandlery/cmd/internal/program"
	"github.com/chandlery/chandlery/cmd/internal/terminal"
)

// The linker sets these.
var (
	version = "devel"
	commit  = "unknown"
)

// envPrefix is the prefix of the variables that set flags.
const envPrefix = "REGISTRY"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the program at once.
	context.AfterFunc(ctx, stop)
	if filepath.Base(os.Args[0]) == probeName {
		code := probe(ctx, os.Args[1:], terminal.NewWriter(os.Stdout))
		stop()
		os.Exit(code) //nolint:gocritic // stop has been called
	}
	if err := newCommand().ExecuteContext(ctx); err != nil {
		printError(terminal.NewWriter(os.Stderr), err)
		stop()
		os.Exit(exitcode.Of(err))
	}
}

func newCommand() *cobra.Command {
	registry := program.Program{
		Name: "registry", Short: "Serve file-based operator catalogs over gRPC",
		EnvPrefix: envPrefix, Version: version, Commit: commit,
	}
	root := registry.Command(newServeCommand(), newBuildCommand(), inspect.Validate(inspected()),
		newListCommand(), newGraphCommand(), inspect.Diff(inspected()), newQueryCommand(), newCopyContentCommand(), newPrintBundleCommand())
	acceptGlobalFlags(root.PersistentFlags())
	return root
}

// acceptGlobalFlags accepts the flags that may precede a command of opm. A command for which such a
// flag has a meaning declares its own.
func acceptGlobalFlags(flags *pflag.FlagSet) {
	for _, name := range []string{"skip-tls", "skip-tls-verify", "use-http"} {
		flags.Bool(name, false, "for commands that read images")
		if err := flags.MarkHidden(name); err != nil {
			panic(err)
		}
	}
}

// printError writes one line for each problem.
func printError(out io.Writer, err error) { inspect.PrintError(out, "registry", err) }
