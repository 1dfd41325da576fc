package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/catalogs/content"
	"github.com/chandlery/chandlery/supervisor/resolver"
)

// figures are what was measured.
type figures struct {
	rounds            int
	packages, bundles int
	heap              int64
	// plain are the times of one Subscription for each package, dependent those of
	// one for each bundle that has dependencies; unmet of those have no solution.
	plain, dependent spread
	unmet            int
	// slowest names the bundle whose dependencies take longest.
	slowest string
	// floor is the time to look up a package, its channel and the head of it.
	floor time.Duration
	// hundred is the time of hundred Subscriptions, memoOne and memoHundred those
	// of problems that are known.
	hundred, memoOne, memoHundred time.Duration
	hundredUnmet                  int
	byCatalog                     []catalogPoint
	bySubscriptions               []subscriptionPoint
}

// catalogPoint is what was measured with a catalog of some size.
type catalogPoint struct {
	name             string
	packages         int
	heap             int64
	plain, dependent time.Duration
}

// subscriptionPoint is what was measured with a number of Subscriptions.
type subscriptionPoint struct {
	subscriptions int
	cold, memo    time.Duration
	unmet         int
}

// spread are times, ascending.
type spread []time.Duration

func (s spread) at(share float64) time.Duration { return s[int(share*float64(len(s)-1))] }

var key = resolver.CatalogKey{Namespace: "catalogs", Name: "community"}

func problem(catalog *content.Catalog, subscriptions ...resolver.Subscription) resolver.Problem {
	return resolver.Problem{
		Namespace:     "bench",
		Subscriptions: subscriptions,
		Catalogs:      map[resolver.CatalogKey]resolver.Catalog{key: {Content: catalog}},
	}
}

// toHead is a Subscription to the default channel of a package.
func toHead(p *content.Package) resolver.Subscription {
	return resolver.Subscription{Name: p.Name, Catalog: key, Package: p.Name, Channel: p.DefaultChannel}
}

// median measures something so many times.
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

// each measures something that takes less than the clock can tell apart, as the
// mean of many.
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
		f.unmet += failures(resolver.Resolve(ctx, p))
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

// dependents are Subscriptions that begin with each of the bundles that have
// dependencies.
func dependents(catalog *content.Catalog) []resolver.Subscription {
	var out []resolver.Subscription
	for _, p := range catalog.Packages() {
		seen := map[string]bool{}
		for _, channel := range p.Channels {
			for _, entry := range channel.Chain {
				if len(entry.Bundle.Requires) > 0 && !seen[entry.Bundle.Name] {
					seen[entry.Bundle.Name] = true
					out = append(out, resolver.Subscription{
						Name: p.Name, Catalog: key, Package: p.Name, Channel: channel.Name, StartingCSV: entry.Bundle.Name,
					})
				}
			}
		}
	}
	return out
}

func (f *figures) cold(ctx context.Context, p resolver.Problem) time.Duration {
	return median(f.rounds, func() { resolver.Resolve(ctx, p) })
}

func failures(s resolver.Solution) int {
	n := 0
	for _, outcome := range s {
		if outcome.Err != nil {
			n++
		}
	}
	return n
}

// lookUp measures the least that there is to do for a Subscription.
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

// spaced gives Subscriptions to n packages, from all over the catalog.
func spaced(catalog *content.Catalog, n int) []resolver.Subscription {
	packages := catalog.Packages()
	n = min(n, len(packages))
	out := make([]resolver.Subscription, n)
	for i := range out {
		out[i] = toHead(packages[i*len(packages)/n])
	}
	return out
}

// many measures how resolution grows with the number of Subscriptions.
func (f *figures) many(ctx context.Context, catalog *content.Catalog) {
	for _, n := range []int{1, 3, 10, 30, 100, 300} {
		p := problem(catalog, spaced(catalog, n)...)
		memo := &resolver.Memo{}
		memo.Resolve(ctx, p)
		point := subscriptionPoint{
			subscriptions: len(p.Subscriptions),
			cold:          f.cold(ctx, p),
			memo:          each(f.rounds, func() { memo.Resolve(ctx, p) }),
			unmet:         failures(resolver.Resolve(ctx, p)),
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

// grow measures how resolution grows with the size of the catalog: the same
// Subscriptions each time, which with all they need are in every part of it.
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

// probes are Subscriptions to measure in catalogs of all sizes, without
// dependencies and with some that are met, and the packages they need.
func probes(ctx context.Context, catalog *content.Catalog) (plain, dependent []resolver.Subscription, keep map[string]bool) {
	keep = map[string]bool{}
	for i, p := range catalog.Packages() {
		if head := headOf(p); i%8 == 0 && head != nil && len(head.Bundle.Requires) == 0 {
			plain = append(plain, toHead(p))
		}
	}
	for _, s := range dependents(catalog) {
		outcome := resolver.Resolve(ctx, problem(catalog, s))[s.Name]
		if outcome.Err != nil || len(outcome.Along) == 0 {
			continue
		}
		dependent = append(dependent, s)
		keep[s.Package] = true
		for _, choice := range outcome.Along {
			keep[choice.Package] = true
		}
	}
	return plain, dependent, keep
}

// typical is the median over several Subscriptions, each resolved alone.
func (f *figures) typical(ctx context.Context, catalog *content.Catalog, subscriptions []resolver.Subscription) time.Duration {
	times := make(spread, len(subscriptions))
	for i, s := range subscriptions {
		times[i] = f.cold(ctx, problem(catalog, s))
	}
	slices.Sort(times)
	return times.at(0.5)
}
