// Command resolver measures the time of resolution on the real metadata catalog, and its growth
// with the catalog and the number of Subscriptions.
//
//	go run ./bench/resolver [--rounds 9] [--write docs/measurements.md] [--plot docs/resolution.svg]
//
// Everything happens in this process: no cluster, no registry, no network.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/chandlery/chandlery/bench/document"
	"github.com/chandlery/chandlery/bundles/fbc"
	"github.com/chandlery/chandlery/test/cli"
	"github.com/chandlery/chandlery/test/realcatalogs"
)

func main() {
	cli.Run("bench", func(ctx context.Context, args []string) error { return start(ctx, args, os.Stdout) })
}

// options are the command-line flags.
type options struct {
	// rounds is the number of rounds of each measurement; the median counts.
	rounds int
	// write is the document for the report. plot is the file for the curves.
	write, plot string
}

func parse(args []string, output io.Writer) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.IntVar(&o.rounds, "rounds", 9, "how often each thing is measured")
	flags.StringVar(&o.write, "write", "", "document to put the report into, between its markers")
	flags.StringVar(&o.plot, "plot", "", "file to draw the curves into, as SVG")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.rounds < 1 {
		return o, fmt.Errorf("--rounds %d: at least one is needed", o.rounds)
	}
	return o, nil
}

// start reads the flags, measures, and prints and writes the report.
func start(ctx context.Context, args []string, output io.Writer) error {
	o, err := parse(args, os.Stderr)
	if err != nil {
		return err
	}
	dir, err := realcatalogs.Find(ctx, realcatalogs.Metadata)
	if err != nil {
		return err
	}
	source, err := fbc.Load(ctx, os.DirFS(dir), fbc.Options{})
	if err != nil {
		return fmt.Errorf("reading the catalog: %w", err)
	}
	origin := document.NewOrigin(ctx, "./supervisor/resolution", "./bench/resolver")
	figures, err := measure(ctx, source, o.rounds)
	if err != nil {
		return err
	}
	text := figures.markdown()
	if _, err := io.WriteString(output, text); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	if o.plot != "" {
		if err := os.WriteFile(o.plot, []byte(figures.plot().svg()), 0o644); err != nil {
			return fmt.Errorf("drawing the curves: %w", err)
		}
		text += "\n![Time of one resolution](" + filepath.Base(o.plot) + ")\n"
	}
	if o.write == "" {
		return nil
	}
	return document.Insert(o.write, "bench-resolver", text, origin)
}
