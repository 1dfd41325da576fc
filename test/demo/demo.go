package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/chandlery/chandlery/test/demo/timeline"
	"github.com/chandlery/chandlery/test/filelock"
)

// Names and times of the demo.
const (
	catalogNamespace = "olm"
	catalogName      = "demo"
	leaseName        = "chandlery-supervisor"
	// refresh is the interval at which a supervisor checks the catalog.
	refresh = "2s"
)

// demo runs its steps in an environment.
type demo struct {
	config
	*printer

	env     *environment
	results []timeline.Summary
}

// run runs the demo and then waits until ctx ends. The end of ctx is the user's way to stop it and no error.
func run(ctx context.Context, c config, p *printer) (err error) {
	lock, err := filelock.Try(strings.TrimRight(c.dir, "/") + ".lock")
	if err != nil {
		return fmt.Errorf("another demo uses %s (give --dir another folder): %w", c.dir, err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()

	running, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	go p.refresh(running)
	env := &environment{config: c, printer: p, metrics: map[string]string{}, processes: &processes{fail: fail}}
	d := &demo{config: c, printer: p, env: env}
	err = d.run(running)
	if ctx.Err() != nil {
		err = nil // errors are expected after the user has stopped the demo
	}
	fail(nil) // ends the watches, which would delay the stop of the API server
	return errors.Join(err, env.stop())
}

// run runs all steps.
func (d *demo) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{d.env.start, d.addCatalog} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	steps := d.runCatalog
	if d.catalog == "" {
		steps = d.runSample
	}
	err := steps(ctx)
	if err != nil {
		d.explain(ctx)
	}
	d.titlef("Summary")
	d.print(strings.TrimRight(d.style.Table(d.results), "\n"))
	if err != nil {
		return err
	}
	if d.exit {
		return nil
	}
	d.lookAround()
	discardTyped(os.Stdin)
	waitForEnter(ctx, os.Stdin)
	return context.Cause(ctx)
}
