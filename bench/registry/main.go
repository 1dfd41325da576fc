package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/chandlery/chandlery/bench/document"
	"github.com/chandlery/chandlery/test/cli"
	"github.com/chandlery/chandlery/test/realcatalogs"
)

func main() { cli.Run("bench", start) }

// start reads the flags, measures, and prints and writes the report.
func start(ctx context.Context, args []string) error {
	o, err := parse(args, os.Stderr)
	if err != nil {
		return err
	}
	if err := o.findPaths(ctx); err != nil {
		return err
	}
	origin := document.NewOrigin(ctx, "./cmd/registry", "./bench/registry")
	report, err := measure(ctx, o, os.Stderr)
	if report == nil {
		return err
	}
	text := report.markdown()
	fmt.Println(text)
	if err != nil || o.write == "" {
		return err
	}
	return document.Insert(o.write, "bench-registry", text, origin)
}

// options are the command-line flags.
type options struct {
	// catalog and objects are directories; empty for the real catalogs.
	catalog, objects string
	// registry is a program to measure instead of one built from this checkout.
	registry string
	// work is a directory for catalogs and indexes; empty for a temporary one.
	work string
	// write is the document for the report.
	write string
	only  *regexp.Regexp
	quick bool
	// peerTenfold also measures opm with the catalog ten times as large.
	peerTenfold bool
	// The numbers of rounds for starts, for calls, and for slow operations of opm.
	startRounds, callRounds, peerRounds int
	// span is the duration of a load. settle is how long a server gets to become idle.
	span, settle time.Duration
	// copies is the number of copies of the catalog in the larger one.
	copies int
}

func parse(args []string, output io.Writer) (options, error) {
	o := options{callRounds: 15, span: 500 * time.Millisecond, settle: 3 * time.Second}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.StringVar(&o.catalog, "catalog", "", "directory of a catalog; by default the real one with metadata")
	flags.StringVar(&o.objects, "objects", "", "directory of a catalog whose bundles have no image; by default the real one")
	flags.StringVar(&o.registry, "registry", "", "program to measure; by default it is built from this checkout")
	flags.StringVar(&o.work, "work", "", "directory for generated catalogs and indexes, kept for the next run; by default a temporary one")
	flags.StringVar(&o.write, "write", "", "document to put the report into, between its markers")
	flags.IntVar(&o.startRounds, "start-rounds", 5, "rounds of starting the registry")
	flags.IntVar(&o.peerRounds, "peer-rounds", 3, "rounds of what takes opm many seconds; 0 for none of opm")
	flags.IntVar(&o.copies, "copies", 10, "how many times as large the larger catalog is")
	flags.BoolVar(&o.peerTenfold, "peer-tenfold", false, "let opm serve the larger catalog too; takes minutes and gigabytes")
	flags.BoolVar(&o.quick, "quick", false, "one short round of everything, to see that it works")
	only := flags.String("only", "", "regular expression for the sections to measure: "+strings.Join(sectionNames(), ", "))
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: there are only flags", flags.Arg(0))
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return o, fmt.Errorf("reading --only: %w", err)
	}
	o.only = pattern
	if o.quick {
		o.startRounds, o.callRounds, o.peerRounds, o.copies = 1, 1, 1, 2
		o.span, o.settle = 50*time.Millisecond, 10*time.Millisecond
	}
	return o, nil
}

// findPaths sets the real catalogs as defaults and makes the paths absolute, because the servers
// run in their own directory.
func (o *options) findPaths(ctx context.Context) error {
	for name, dir := range map[string]*string{realcatalogs.Metadata: &o.catalog, realcatalogs.Objects: &o.objects} {
		if *dir != "" {
			continue
		}
		found, err := realcatalogs.Find(ctx, name)
		if err != nil {
			return fmt.Errorf("finding the catalogs to measure with (--catalog and --objects name others): %w", err)
		}
		*dir = found
	}
	for _, path := range []*string{&o.catalog, &o.objects, &o.registry, &o.work} {
		if *path == "" {
			continue
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return fmt.Errorf("resolving %s: %w", *path, err)
		}
		*path = absolute
	}
	return nil
}
