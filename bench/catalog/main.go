// Command catalog measures how long the program catalog takes beside opm, on the real metadata
// catalog: time, work of the processors and memory of whole processes, in the same run.
//
//	go run ./bench/catalog [--rounds 5] [--write docs/measurements.md]
//
// Needed: Linux, the archive of the real catalogs, and opm, which is built on first use.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/chandlery/chandlery/test/oracle"
	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/realcatalogs"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := start(ctx, os.Args[1:])
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

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
	figures, err := measure(ctx, commands(opm, filepath.Join(dir, "catalog"), catalog), max(1, *rounds))
	if err != nil {
		return err
	}
	text := report(figures)
	fmt.Fprint(os.Stdout, text)
	if *write == "" {
		return nil
	}
	return insert(*write, text)
}

// The lines between which a document has the report.
const (
	beginMarker = "<!-- bench-catalog: begin -->\n"
	endMarker   = "<!-- bench-catalog: end -->"
)

var errNoMarkers = errors.New("has no markers for the report")

// insert puts a text between the markers of a document.
func insert(name, text string) error {
	page, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("reading the document: %w", err)
	}
	before, rest, found := strings.Cut(string(page), beginMarker)
	_, after, ended := strings.Cut(rest, endMarker)
	if !found || !ended {
		return fmt.Errorf("%s %w", name, errNoMarkers)
	}
	changed := before + beginMarker + "\n" + text + "\n" + endMarker + after
	if err := os.WriteFile(name, []byte(changed), 0o644); err != nil {
		return fmt.Errorf("writing the document: %w", err)
	}
	return nil
}
