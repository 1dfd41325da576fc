package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// samplePackage is the package that the demo installs if no catalog is given.
const samplePackage = "lantern"

// config holds the command-line flags.
type config struct {
	// catalog is a catalog directory; empty means the sample catalog.
	catalog string
	// packages are the packages to install, in order.
	packages []string
	// channel is the channel of every Subscription; empty means each package's default.
	channel string
	// exit ends the demo after everything was shown. Otherwise it remains running.
	exit bool
	// timeout bounds each wait.
	timeout time.Duration
	// bin is a folder with the built programs; empty builds them.
	bin string
	// dir is the folder for logs and the kubeconfig. It is emptied first.
	dir string
	// port is the port of the registry, if it is free.
	port int
}

// parse parses the command line. It returns flag.ErrHelp if help was requested.
func parse(args []string, output io.Writer) (config, error) {
	var c config
	var packages string
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.StringVar(&c.catalog, "catalog", "", "catalog `directory` to install from (default: the sample catalog)")
	flags.StringVar(&packages, "package", "",
		"`names` of the packages to install, separated by commas (default: "+samplePackage+" of the sample catalog)")
	flags.StringVar(&c.channel, "channel", "", "`name` of the channel to follow (default: each package's default channel)")
	flags.BoolVar(&c.exit, "exit", false, "end when everything was shown, instead of leaving it running")
	flags.DurationVar(&c.timeout, "timeout", 2*time.Minute, "time limit of each step")
	flags.StringVar(&c.bin, "bin", "", "`folder` with the programs registry and supervisor (default: build them)")
	flags.StringVar(&c.dir, "dir", "out/demo", "`folder` for logs and the kubeconfig, emptied first")
	flags.IntVar(&c.port, "port", 50051, "`port` of the registry; another one is taken when it is in use")
	if err := flags.Parse(args); err != nil {
		return config{}, err
	}
	if flags.NArg() > 0 {
		return config{}, fmt.Errorf("unexpected argument %q: every option is a flag", flags.Arg(0))
	}
	c.packages = names(packages)
	return c.complete()
}

// complete sets defaults that depend on other flags and checks the flags.
func (c config) complete() (config, error) {
	if c.timeout <= 0 {
		return config{}, fmt.Errorf("--timeout is %s: give a duration above zero", c.timeout)
	}
	if c.port < 1 || c.port > 65535 {
		return config{}, fmt.Errorf("--port is %d: give one from 1 to 65535", c.port)
	}
	if c.catalog != "" && len(c.packages) == 0 {
		return config{}, errors.New("--catalog needs --package: name what to install from it")
	}
	if len(c.packages) == 0 {
		c.packages = []string{samplePackage}
	}
	return c, nil
}

// names splits a comma-separated list and drops blanks and repetitions.
func names(list string) []string {
	var found []string
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if name != "" && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	return found
}
