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

// warm is the number of namespaces that have the operator before the measurement.
const warm = 1

// side is one way to install the bundle of test/scale in namespaces. The report has a row for each
// side and number of namespaces. The first side is the measured one, and the last is the floor.
type side struct {
	name string
	// most is the largest number of namespaces at which the side is measured; 0 for no limit.
	most int
	// install installs the bundle in a number of namespaces of a new control plane at once.
	install func(ctx context.Context, namespaces int) (*scale.Batch, error)
}

// afterwards has measurements after the installation in the largest number of namespaces. It is empty if they
// are not made.
type afterwards struct {
	// rest and update are the requests of the supervisor at rest, and when the catalog gets a replacing version.
	rest, update *scale.Batch
	// cached is the memory of objects.
	cached []scale.Cached
}

// sides returns all sides. dir is the folder of the programs. The peer is Operator Lifecycle Manager.
func sides(dir string, o options, after *afterwards) ([]side, error) {
	cluster := scale.Options{Root: ".", Dir: dir, RealNodes: o.real, WithoutControllers: o.without}
	all := []side{{name: "supervisor", install: func(ctx context.Context, n int) (*scale.Batch, error) {
		follow := func(context.Context, *scale.Cluster, []string) error { return nil }
		if o.rest > 0 && n == slices.Max(o.sizes) {
			follow = func(ctx context.Context, c *scale.Cluster, names []string) error {
				return after.measure(ctx, c, names, o)
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

func (a *afterwards) measure(ctx context.Context, c *scale.Cluster, names []string, o options) (err error) {
	if a.rest, err = c.Rest(ctx, names, o.rest); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%d namespaces, at rest: measured\n", len(names))
	if a.cached, err = c.Cached(ctx); err != nil {
		return err
	}
	if !o.update {
		return nil
	}
	if a.update, err = c.Update(ctx, names); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%d namespaces, update: %s\n", len(names), a.update.Took.Round(10*time.Millisecond))
	return nil
}

// round is the result for one number of namespaces on each side.
type round struct {
	namespaces int
	// names and batches belong to the sides, in order.
	names   []string
	batches []*scale.Batch
}

// measure installs on each side, for one number of namespaces after the other.
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

// installer is a control plane on which the operator is installed, by a supervisor or by the floor.
type installer interface {
	Prepare(ctx context.Context, names []string) error
	Install(ctx context.Context, before int, names []string) (*scale.Batch, error)
	Stop() error
}

// supervised installs with a supervisor and then calls another function. It stores profiles if
// there is a folder for them.
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

// nothing is the function around an installation without profiles.
func nothing(context.Context) (func() error, error) { return func() error { return nil }, nil }

// noMore does nothing after the installation.
func noMore(context.Context, []string) error { return nil }

// install installs the operator in namespaces of a control plane, calls another function, and stops
// the control plane. around is called before the installation, and the function that it returns is
// called after it.
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
