package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/resolution"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// figures are the measured values.
type figures struct {
	rounds            int
	packages, bundles int
	heap              int64
	// plain are the times for one Subscription to each package without dependencies. dependent are
	// the times for each bundle with dependencies; unmet of these have no solution.
	plain, dependent spread
	unmet            int
	// slowest is the bundle whose dependencies take longest.
	slowest string
	// floor is the time to look up a package, its channel and the channel's head.
	floor time.Duration
	// hundred is the time for a hundred Subscriptions. memoOne and memoHundred are the times for
	// problems in the cache.
	hundred, memoOne, memoHundred time.Duration
	hundredUnmet                  int
	byCatalog                     []catalogPoint
	bySubscriptions               []subscriptionPoint
}

// catalogPoint are the values for one size of the catalog.
type catalogPoint struct {
	name             string
	packages         int
	heap             int64
	plain, dependent time.Duration
}

// subscriptionPoint are the values for one number of Subscriptions.
type subscriptionPoint struct {
	subscriptions int
	cold, memo    time.Duration
	unmet         int
}

// spread are sorted times.
type spread []time.Duration

func (s spread) at(share float64) time.Duration { return s[int(share*float64(len(s)-1))] }

var key = resolution.CatalogKey{Namespace: "catalogs", Name: "community"}

func problem(catalog *content.Catalog, subscriptions ...resolution.Subscription) resolution.Input {
	return resolution.Input{
		Namespace:     "bench",
		Subscriptions: subscriptions,
		Catalogs:      map[resolution.CatalogKey]resolution.Catalog{key: {Content: catalog}},
	}
}

// toHead returns a Subscription to the default channel of a package.
func toHead(p *content.Package) resolution.Subscription {
	return resolution.Subscription{Name: p.Name, Catalog: key, Package: p.Name, Channel: p.DefaultChannel}
}

// median returns the median time of a number of rounds.
func median(rounds int, do func()) time.Duration {
	times := make(spread, rounds)
	for i := range times {
		begin := time.Now()
		do()
		times[i] = time.Since(begin)
	}
	slices.Sort(times)
	return times[rounds/2]
}

// each measures an operation that is too short for the clock, as the mean of many.
func each(rounds int, do func()) time.Duration {
	const many = 1000
	return median(rounds, func() {
		for range many {
			do()
		}
	}) / many
}

func measure(ctx context.Context, source *bundles.Catalog, rounds int) (*figures, error) {
	catalog, bytes, err := snapshot(source)
	if err != nil {
		return nil, err
	}
	f := &figures{rounds: rounds, packages: len(catalog.Packages()), heap: bytes}
	for _, p := range catalog.Packages() {
		f.bundles += len(p.Bundles)
	}
	f.one(ctx, catalog)
	f.lookUp(catalog)
	f.many(ctx, catalog)
	if err := f.grow(ctx, source, catalog); err != nil {
		return nil, err
	}
	return f, ctx.Err()
}

// one measures every package whose head has no dependencies, and every bundle that
// has some.
func (f *figures) one(ctx context.Context, catalog *content.Catalog) {
	for _, p := range catalog.Packages() {
		if head := headOf(p); head != nil && len(head.Bundle.Requires) == 0 {
			f.plain = append(f.plain, f.cold(ctx, problem(catalog, toHead(p))))
		}
	}
	for _, s := range dependents(catalog) {
		p := problem(catalog, s)
		took := f.cold(ctx, p)
		if len(f.dependent) == 0 || took > slices.Max(f.dependent) {
			f.slowest = s.StartingCSV
		}
		f.dependent = append(f.dependent, took)
		f.unmet += failures(resolution.Resolve(ctx, p))
	}
	slices.Sort(f.plain)
	slices.Sort(f.dependent)
}

func headOf(p *content.Package) *content.Entry {
	channel := p.Channel(p.DefaultChannel)
	if channel == nil || len(channel.Chain) == 0 {
		return nil
	}
	return channel.Chain[0]
}

// dependents returns Subscriptions that start at each of the bundles with dependencies.
func dependents(catalog *content.Catalog) []resolution.Subscription {
	var out []resolution.Subscription
	for _, p := range catalog.Packages() {
		seen := map[string]bool{}
		for _, channel := range p.Channels {
			for _, entry := range channel.Chain {
				if len(entry.Bundle.Requires) > 0 && !seen[entry.Bundle.Name] {
					seen[entry.Bundle.Name] = true
					out = append(out, resolution.Subscription{
						Name: p.Name, Catalog: key, Package: p.Name, Channel: channel.Name, StartingCSV: entry.Bundle.Name,
					})
				}
			}
		}
	}
	return out
}

func (f *figures) cold(ctx context.Context, p resolution.Input) time.Duration {
	return median(f.rounds, func() { resolution.Resolve(ctx, p) })
}

func failures(s resolution.Solution) int {
	n := 0
	for _, outcome := range s {
		if outcome.Err != nil {
			n++
		}
	}
	return n
}

// lookUp measures the least work for a Subscription.
func (f *figures) lookUp(catalog *content.Catalog) {
	byName := map[string]*content.Package{}
	for _, p := range catalog.Packages() {
		byName[p.Name] = p
	}
	packages := catalog.Packages()
	i := 0
	f.floor = each(f.rounds, func() {
		headOf(byName[packages[i%len(packages)].Name])
		i++
	})
}

// spaced returns Subscriptions to n packages, spread over the catalog.
func spaced(catalog *content.Catalog, n int) []resolution.Subscription {
	packages := catalog.Packages()
	n = min(n, len(packages))
	out := make([]resolution.Subscription, n)
	for i := range out {
		out[i] = toHead(packages[i*len(packages)/n])
	}
	return out
}

// many measures the growth of resolution with the number of Subscriptions.
func (f *figures) many(ctx context.Context, catalog *content.Catalog) {
	for _, n := range []int{1, 3, 10, 30, 100, 300} {
		p := problem(catalog, spaced(catalog, n)...)
		cache := &resolution.Cache{}
		cache.Resolve(ctx, p)
		point := subscriptionPoint{
			subscriptions: len(p.Subscriptions),
			cold:          f.cold(ctx, p),
			memo:          each(f.rounds, func() { cache.Resolve(ctx, p) }),
			unmet:         failures(resolution.Resolve(ctx, p)),
		}
		f.bySubscriptions = append(f.bySubscriptions, point)
		switch n {
		case 1:
			f.memoOne = point.memo
		case 100:
			f.hundred, f.hundredUnmet, f.memoHundred = point.cold, point.unmet, point.memo
		}
	}
}

// grow measures the growth of resolution with the size of the catalog. The Subscriptions are the
// same each time; every part of the catalog has them and their dependencies.
func (f *figures) grow(ctx context.Context, source *bundles.Catalog, whole *content.Catalog) error {
	plain, dependent, keep := probes(ctx, whole)
	if len(plain) == 0 || len(dependent) == 0 {
		return errors.New("the catalog has no package without dependencies, or none whose dependencies are met")
	}
	for _, size := range []struct {
		name     string
		of, many int
	}{{"1/8", 8, 1}, {"1/4", 4, 1}, {"1/2", 2, 1}, {"1", 1, 1}, {"2", 1, 2}, {"4", 1, 4}, {"8", 1, 8}} {
		scaled, err := copies(part(source, size.of, keep), size.many)
		if err != nil {
			return err
		}
		catalog, bytes, err := snapshot(scaled)
		if err != nil {
			return err
		}
		f.byCatalog = append(f.byCatalog, catalogPoint{
			name: size.name, packages: len(catalog.Packages()), heap: bytes,
			plain: f.typical(ctx, catalog, plain), dependent: f.typical(ctx, catalog, dependent),
		})
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("measuring: %w", err)
		}
	}
	return nil
}

// probes returns Subscriptions to measure in catalogs of all sizes, without dependencies and with
// dependencies that are met, and the packages that they need.
func probes(ctx context.Context, catalog *content.Catalog) (plain, dependent []resolution.Subscription, keep map[string]bool) {
	keep = map[string]bool{}
	for i, p := range catalog.Packages() {
		if head := headOf(p); i%8 == 0 && head != nil && len(head.Bundle.Requires) == 0 {
			plain = append(plain, toHead(p))
		}
	}
	for _, s := range dependents(catalog) {
		outcome := resolution.Resolve(ctx, problem(catalog, s))[s.Name]
		if outcome.Err != nil || len(outcome.Dependencies) == 0 {
			continue
		}
		dependent = append(dependent, s)
		keep[s.Package] = true
		for _, choice := range outcome.Dependencies {
			keep[choice.Package] = true
		}
	}
	return plain, dependent, keep
}

// typical returns the median over several Subscriptions, each resolved alone.
func (f *figures) typical(ctx context.Context, catalog *content.Catalog, subscriptions []resolution.Subscription) time.Duration {
	times := make(spread, len(subscriptions))
	for i, s := range subscriptions {
		times[i] = f.cold(ctx, problem(catalog, s))
	}
	slices.Sort(times)
	return times.at(0.5)
}
