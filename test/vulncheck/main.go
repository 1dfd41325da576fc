// Command vulncheck runs govulncheck over a module, as pinned in tools/go.mod, against
// the database that the environment variable GOVULNDB names:
//
//	vulncheck [--release] [--module=DIR] [PACKAGES]
//
// It fails when a vulnerable function is called. The database may be unreachable, for
// example on a machine without a network: then vulncheck prints that nothing was checked,
// and fails only with --release.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/chandlery/chandlery/test/buildcache"
)

// publicDatabase is the database of govulncheck if GOVULNDB is not set.
const publicDatabase = "https://vuln.go.dev"

// options are the settings from the command line and the environment.
type options struct {
	// database is the address of the database: http://, https:// or file://.
	database string
	// release makes an unreachable database an error.
	release bool
	// module is the folder of the module to check.
	module string
	// packages are the patterns of the packages to check.
	packages []string
}

func main() {
	err := run(context.Background(), os.Args[1:], os.Getenv("GOVULNDB"), os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "vulncheck:", err)
		os.Exit(1)
	}
}

// run checks a module according to the arguments.
func run(ctx context.Context, args []string, database string, out io.Writer) error {
	o, err := parse(args, database)
	if err != nil {
		return err
	}
	err = probe(ctx, o.database)
	var unreachable *unreachableError
	if errors.As(err, &unreachable) && !o.release {
		fmt.Fprintf(out, "vulncheck: %v\nNothing was checked. Set GOVULNDB to a database that can be reached; a release fails here.\n", err)
		return nil
	}
	if err != nil {
		return err
	}
	return scan(ctx, o, out)
}

// parse returns the options of a command line.
func parse(args []string, database string) (options, error) {
	o := options{database: cmp.Or(database, publicDatabase)}
	flags := flag.NewFlagSet("vulncheck", flag.ContinueOnError)
	flags.BoolVar(&o.release, "release", false, "fail when the database cannot be reached")
	flags.StringVar(&o.module, "module", ".", "`folder` of the module that is checked")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if o.packages = flags.Args(); len(o.packages) == 0 {
		o.packages = []string{"./..."}
	}
	return o, nil
}

// scan runs govulncheck, which fails if a vulnerable function is called.
func scan(ctx context.Context, o options, out io.Writer) error {
	root, err := buildcache.SourceDir(".")
	if err != nil {
		return fmt.Errorf("finding tools/go.mod: %w", err)
	}
	module, err := filepath.Abs(o.module)
	if err != nil {
		return fmt.Errorf("finding the module: %w", err)
	}
	args := []string{"tool", "-modfile=tools/go.mod", "govulncheck", "-C", module, "-db", o.database}
	command := exec.CommandContext(ctx, "go", append(args, o.packages...)...)
	command.Dir, command.Stdout, command.Stderr = root, out, out
	if err := command.Run(); err != nil {
		return fmt.Errorf("checking %s against %s: %w", module, o.database, err)
	}
	return nil
}
