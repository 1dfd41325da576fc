// Command catalog compares the program catalog with opm in the same run, on the real metadata
// catalog: elapsed time, processor time and memory of whole processes.
//
//	go run ./bench/catalog [--rounds 5] [--write docs/measurements.md]
//
// Needed: Linux, the archive of the real catalogs, and opm, which is built on first use.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/chandlery/chandlery/bench/document"
	"github.com/chandlery/chandlery/test/cli"
	"github.com/chandlery/chandlery/test/oracle"
	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/realcatalogs"
)

func main() { cli.Run("bench", start) }

func start(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	rounds := flags.Int("rounds", 5, "how often each command runs; the fastest round counts")
	write := flags.String("write", "", "document to put the report into, between its markers")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "chandlery-bench-")
	if err != nil {
		return fmt.Errorf("creating a folder for programs: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is a temporary folder
	opm, err := oracle.Build(ctx, os.Stderr)
	if err != nil {
		return err
	}
	if err := programs.Build(ctx, dir, "./cmd/catalog"); err != nil {
		return err
	}
	catalog, err := realcatalogs.Find(ctx, realcatalogs.Metadata)
	if err != nil {
		return fmt.Errorf("finding the catalog: %w", err)
	}
	origin := document.NewOrigin(ctx, "./cmd/catalog", "./bench/catalog")
	figures, err := measure(ctx, commands(opm, filepath.Join(dir, "catalog"), catalog), max(1, *rounds))
	if err != nil {
		return err
	}
	text := report(figures)
	fmt.Fprint(os.Stdout, text)
	if *write == "" {
		return nil
	}
	return document.Insert(*write, "bench-catalog", text, origin)
}
