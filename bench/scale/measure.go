package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/chandlery/chandlery/test/oracle/olmpeer"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/scale"
)

// warm is how many namespaces have the operator before others are measured.
const warm = 1

// side is one way to install the bundle of test/scale in namespaces: a column of the report. The first
// side is the one that is measured, and the last is the floor of all.
type side struct {
	name string
	// install installs it in so many namespaces of a new control plane at once.
	install func(ctx context.Context, namespaces int) (*scale.Batch, error)
}

// sides returns all ways, with programs of a folder. The peer is Operator Lifecycle Manager.
func sides(dir, profiles string, withPeer bool) ([]side, error) {
	all := []side{
		{name: "supervisor", install: func(ctx context.Context, n int) (*scale.Batch, error) { return supervised(ctx, dir, profiles, n) }},
	}
	if withPeer {
		version, err := olmpeer.Version()
		if err != nil {
			return nil, err
		}
		all = append(all, side{name: "OLM " + version, install: func(ctx context.Context, n int) (*scale.Batch, error) { return peer(ctx, dir, n) }})
	}
	return append(all, side{name: "floor", install: floor}), nil
}

// round is one number of namespaces, measured on each side.
type round struct {
	namespaces int
	// names and batches are those of the sides, in order.
	names   []string
	batches []*scale.Batch
}

// measure installs on each side, one number of namespaces after the other.
func measure(ctx context.Context, sizes []int, all []side) ([]round, error) {
	var rounds []round
	for _, n := range sizes {
		r := round{namespaces: n}
		for _, s := range all {
			b, err := s.install(ctx, n)
			if err != nil {
				return nil, fmt.Errorf("%d namespaces, %s: %w", n, s.name, err)
			}
			fmt.Fprintf(os.Stderr, "%d namespaces, %s: %s\n", n, s.name, b.Took.Round(10*time.Millisecond))
			r.names, r.batches = append(r.names, s.name), append(r.batches, b)
		}
		rounds = append(rounds, r)
	}
	return rounds, nil
}

// installer is a control plane on which the operator is installed: that of a supervisor, or the floor.
type installer interface {
	Prepare(ctx context.Context, names []string) error
	Install(ctx context.Context, before int, names []string) (*scale.Batch, error)
	Stop() error
}

// supervised installs with a supervisor, and stores its profiles where there is a folder for them.
func supervised(ctx context.Context, dir, profiles string, namespaces int) (*scale.Batch, error) {
	options := scale.Options{Root: ".", Dir: dir}
	profiling := nothing
	if profiles != "" {
		port, err := ports.Reserve(ctx)
		if err != nil {
			return nil, err
		}
		options.Args = []string{"--pprof-addr", port.Address()}
		p := profiler{address: port.Address(), prefix: filepath.Join(profiles, fmt.Sprintf("%d-", namespaces))}
		profiling = p.start
	}
	c, err := scale.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	return install(ctx, c, namespaces, profiling)
}

func peer(ctx context.Context, dir string, namespaces int) (*scale.Batch, error) {
	m, err := scale.StartOLM(ctx, scale.Options{Dir: dir})
	if err != nil {
		return nil, err
	}
	return install(ctx, m, namespaces, nothing)
}

func floor(ctx context.Context, namespaces int) (*scale.Batch, error) {
	f, err := scale.StartFloor(ctx)
	if err != nil {
		return nil, err
	}
	return install(ctx, f, namespaces, nothing)
}

// nothing happens around an installation of which no profiles are stored.
func nothing(context.Context) (func() error, error) { return func() error { return nil }, nil }

// install installs the operator in namespaces of a control plane, and stops it. What around returns ends
// what it began for the time of the installation.
func install(ctx context.Context, on installer, namespaces int, around func(context.Context) (func() error, error)) (_ *scale.Batch, err error) {
	defer func() { err = errors.Join(err, on.Stop()) }()
	names := scale.Names(0, warm+namespaces)
	if err := on.Prepare(ctx, names); err != nil {
		return nil, err
	}
	if _, err := on.Install(ctx, 0, names[:warm]); err != nil {
		return nil, err
	}
	finish, err := around(ctx)
	if err != nil {
		return nil, err
	}
	b, err := on.Install(ctx, warm, names[warm:])
	return b, errors.Join(err, finish())
}
