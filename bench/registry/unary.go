package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"time"
)

// trio are the three servers whose calls are compared.
type trio struct {
	registry, floor *server
	// opm is nil if it is not measured.
	opm *server
}

// startTrio starts the servers, the registry and opm on the same catalog.
func (b *bench) startTrio(ctx context.Context) (trio, error) {
	r, err := b.record(ctx)
	if err != nil {
		return trio{}, err
	}
	var t trio
	t.registry, err = b.start(ctx, b.registryLaunch(b.content()))
	if err == nil {
		t.floor, err = b.start(ctx, b.floorLaunch(r.file))
	}
	if err == nil && b.peerRounds > 0 {
		t.opm, err = b.startPeer(ctx)
	}
	if err != nil {
		return t, errors.Join(err, t.stop())
	}
	return t, nil
}

// startPeer starts opm with its cache.
func (b *bench) startPeer(ctx context.Context) (*server, error) {
	cache, err := peerCaches{b}.standard(ctx)
	if err != nil {
		return nil, err
	}
	return b.start(ctx, b.opmLaunch(b.catalog, "--cache-dir="+cache))
}

func (t trio) stop() error {
	var all error
	for _, s := range []*server{t.registry, t.floor, t.opm} {
		if s != nil {
			all = errors.Join(all, s.stop())
		}
	}
	return all
}

// Targets for unary calls.
const (
	unaryThroughputTarget = 0.9
	unaryTailTarget       = 1.1
)

// unarySection measures unary calls.
type unarySection struct{ *bench }

// run measures calls with one reply.
func (b unarySection) run(ctx context.Context) (err error) {
	t, err := b.startTrio(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.stop()) }()
	table := b.report.add("Unary calls", "Clients do not decode the replies. "+
		"Ratios are to the floor, round by round; eight callers share a connection.",
		"RPC", "Callers", "registry", "floor", "ratio", "opm", "p50: registry", "floor", "opm", "p99: registry", "floor", "ratio", "opm")
	for _, method := range []string{getPackage, getBundle, getBundleForChannel} {
		for _, callers := range []int{1, 8, 32} {
			b.sayf("%s, %s", path.Base(method), callersText(callers))
			f, err := b.compare(ctx, t, method, callers)
			if err != nil {
				return fmt.Errorf("measuring %s: %w", method, err)
			}
			table.row(append([]string{path.Base(method), strconv.Itoa(callers)}, f.cells()...)...)
			line := fmt.Sprintf("%s, %s: ", path.Base(method), callersText(callers))
			b.report.atLeast(line+"throughput over the floor's", f.registry.rates.over(f.floor.rates), unaryThroughputTarget, times)
			b.report.atMost(line+"p99 over the floor's", f.registry.tails.over(f.floor.tails), unaryTailTarget, times)
		}
	}
	return nil
}

// experience holds what callers measured of a server, round by round.
type experience struct {
	rates, middles, tails sample
}

func (e *experience) add(o outcome) {
	e.rates = append(e.rates, o.rate)
	e.middles = append(e.middles, o.p50)
	e.tails = append(e.tails, o.p99)
}

type unaryFigures struct {
	registry, floor, opm experience
}

func (f unaryFigures) cells() []string {
	return []string{
		f.registry.rates.text(perSecond), f.floor.rates.text(perSecond), times(f.registry.rates.over(f.floor.rates)),
		f.opm.rates.text(perSecond), seconds(f.registry.middles.median()), seconds(f.floor.middles.median()),
		seconds(f.opm.middles.median()), f.registry.tails.text(seconds), f.floor.tails.text(seconds),
		times(f.registry.tails.over(f.floor.tails)), seconds(f.opm.tails.median()),
	}
}

// unaryTurn is a server's turn in a round of loads.
type unaryTurn struct {
	server *server
	into   *experience
	rounds int
}

// compare loads the servers in turns, after a warm-up round.
func (b unarySection) compare(ctx context.Context, t trio, method string, callers int) (unaryFigures, error) {
	var f unaryFigures
	calls := b.recorded.calls[method]
	turns := []unaryTurn{
		{t.registry, &f.registry, b.callRounds}, {t.floor, &f.floor, b.callRounds}, {t.opm, &f.opm, b.peerRounds},
	}
	for round := -1; round < b.callRounds; round++ {
		// The order changes from round to round.
		turns[0], turns[1] = turns[1], turns[0]
		for _, turn := range turns {
			if turn.server == nil || round >= turn.rounds {
				continue
			}
			o, err := load(ctx, turn.server.address, calls, callers, b.spanOf(round))
			if err != nil {
				return f, fmt.Errorf("from %s: %w", turn.server.Name(), err)
			}
			if round >= 0 {
				turn.into.add(o)
			}
		}
	}
	return f, nil
}

func callersText(n int) string {
	if n == 1 {
		return "1 caller"
	}
	return fmt.Sprintf("%d callers", n)
}

// spanOf returns the length of a round. The first round is a warm-up.
func (b unarySection) spanOf(round int) time.Duration {
	if round < 0 {
		return b.span / 4
	}
	return b.span
}
