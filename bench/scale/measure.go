package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/chandlery/chandlery/test/oracle/olmpeer"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/scale"
)

// warm is how many namespaces have the operator before others are measured.
const warm = 1

// side is one way to install the bundle of test/scale in namespaces: a row of the report for each number
// of them. The first side is the one that is measured, and the last is the floor of all.
type side struct {
	name string
	// most is the largest number of namespaces at which it is measured; 0 for no limit.
	most int
	// install installs it in so many namespaces of a new control plane at once.
	install func(ctx context.Context, namespaces int) (*scale.Batch, error)
}

// afterwards is what the supervisor does with the largest number of namespaces when all have the operator:
// at rest, and when the catalog gets a version that replaces it. It is empty where that is not measured.
type afterwards struct {
	rest, update *scale.Batch
}

// sides returns all ways, with programs of a folder. The peer is Operator Lifecycle Manager.
func sides(dir string, o options, after *afterwards) ([]side, error) {
	cluster := scale.Options{Root: ".", Dir: dir, RealNodes: o.real}
	all := []side{{name: "supervisor", install: func(ctx context.Context, n int) (*scale.Batch, error) {
		follow := func(context.Context, *scale.Cluster, []string) error { return nil }
		if o.rest > 0 && n == slices.Max(o.sizes) {
			follow = func(ctx context.Context, c *scale.Cluster, names []string) error {
				return after.measure(ctx, c, names, o.rest)
			}
		}
		return supervised(ctx, cluster, o.profile, n, follow)
	}}}
	if o.peer > 0 {
		version, err := olmpeer.Version()
		if err != nil {
			return nil, err
		}
		all = append(all, side{name: "OLM " + version, most: o.peer, install: func(ctx context.Context, n int) (*scale.Batch, error) {
			return peer(ctx, cluster, n)
		}})
	}
	return append(all, side{name: "floor", install: func(ctx context.Context, n int) (*scale.Batch, error) { return floor(ctx, cluster, n) }}), nil
}

func (a *afterwards) measure(ctx context.Context, c *scale.Cluster, names []string, rest time.Duration) (err error) {
	if a.rest, err = c.Rest(ctx, names, rest); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%d namespaces, at rest: measured\n", len(names))
	if a.update, err = c.Update(ctx, names); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%d namespaces, update: %s\n", len(names), a.update.Took.Round(10*time.Millisecond))
	return nil
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
			if s.most > 0 && n > s.most {
				continue
			}
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

// supervised installs with a supervisor, stores its profiles where there is a folder for them, and has
// another function follow.
func supervised(ctx context.Context, options scale.Options, profiles string, namespaces int,
	follow func(context.Context, *scale.Cluster, []string) error,
) (*scale.Batch, error) {
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
	return install(ctx, c, namespaces, profiling, func(ctx context.Context, names []string) error { return follow(ctx, c, names) })
}

func peer(ctx context.Context, options scale.Options, namespaces int) (*scale.Batch, error) {
	m, err := scale.StartOLM(ctx, options)
	if err != nil {
		return nil, err
	}
	return install(ctx, m, namespaces, nothing, noMore)
}

func floor(ctx context.Context, options scale.Options, namespaces int) (*scale.Batch, error) {
	f, err := scale.StartFloor(ctx, options)
	if err != nil {
		return nil, err
	}
	return install(ctx, f, namespaces, nothing, noMore)
}

// nothing happens around an installation of which no profiles are stored.
func nothing(context.Context) (func() error, error) { return func() error { return nil }, nil }

// noMore does nothing when all namespaces have the operator.
func noMore(context.Context, []string) error { return nil }

// install installs the operator in namespaces of a control plane, has another function follow, and stops
// it. What around returns ends what it began for the time of the installation.
func install(ctx context.Context, on installer, namespaces int, around func(context.Context) (func() error, error),
	follow func(context.Context, []string) error,
) (_ *scale.Batch, err error) {
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
	if err := errors.Join(err, finish()); err != nil {
		return nil, err
	}
	return b, follow(ctx, names)
}
