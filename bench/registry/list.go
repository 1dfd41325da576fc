package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/chandlery/chandlery/bench/wire"
)

// Targets for ListBundles.
const (
	listTarget        = 0.8
	listPeerTarget    = 10
	listGarbageTarget = 1e6
)

// listFigures are the figures of a server's ListBundles.
type listFigures struct {
	took     sample
	messages int
	bytes    float64
	garbage  float64
}

// listTurn is a server's turn in a round.
type listTurn struct {
	server *server
	into   *listFigures
	rounds int
}

// listSection measures ListBundles.
type listSection struct{ *bench }

// run measures ListBundles.
func (b listSection) run(ctx context.Context) (err error) {
	t, err := b.startTrio(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.stop()) }()
	var registry, floor, opm listFigures
	rounds := 2 * b.callRounds
	turns := []listTurn{{t.registry, &registry, rounds}, {t.floor, &floor, rounds}, {t.opm, &opm, b.peerRounds}}
	for round := -1; round < rounds; round++ {
		turns[0], turns[1] = turns[1], turns[0]
		for _, turn := range turns {
			if turn.server == nil || round >= turn.rounds {
				continue
			}
			if err := turn.into.round(ctx, turn.server, round >= 0); err != nil {
				return err
			}
		}
	}
	table := b.report.add("ListBundles", "The client does not decode the replies. Garbage is the memory that the server "+
		"allocates for a call.", "Server", "Time", "Messages", "Bytes", "Garbage per call")
	for _, one := range []struct {
		server  *server
		figures *listFigures
	}{{t.registry, &registry}, {t.floor, &floor}, {t.opm, &opm}} {
		if one.server == nil {
			continue
		}
		one.figures.garbage, err = b.garbagePerList(ctx, one.server)
		if err != nil {
			return err
		}
		f := one.figures
		table.row(one.server.launch.name, f.took.text(seconds), strconv.Itoa(f.messages), bytesText(f.bytes), bytesText(f.garbage))
	}
	b.report.atLeast("ListBundles: speed over the floor's", floor.took.over(registry.took), listTarget, times)
	b.report.atLeast("ListBundles: speed over opm's", opm.took.over(registry.took), listPeerTarget, times)
	b.report.atMost("ListBundles: garbage per call", registry.garbage, listGarbageTarget, bytesText)
	return nil
}

// round lists bundles on a connection of its own. It warms the connection up first, because flow
// control adapts to the traffic.
func (f *listFigures) round(ctx context.Context, s *server, counts bool) error {
	conn, err := dial(s.address)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing hangs on it
	for _, counts := range []bool{false, counts} {
		messages, size, took, err := list(ctx, conn)
		if err != nil {
			return fmt.Errorf("listing bundles of %s: %w", s.Name(), err)
		}
		f.messages, f.bytes = messages, size
		if counts {
			f.took = append(f.took, took)
		}
	}
	return nil
}

// list calls ListBundles once.
func list(ctx context.Context, conn *grpc.ClientConn) (messages int, size, took float64, err error) {
	began := time.Now()
	err = stream(ctx, conn, listBundles, nil, func(n wire.Size) {
		messages++
		size += float64(n)
	})
	return messages, size, time.Since(began).Seconds(), err
}

// garbagePerList returns the bytes that a server allocates for a call. It subtracts the allocations
// for reading the counters.
func (b listSection) garbagePerList(ctx context.Context, s *server) (float64, error) {
	conn, err := dial(s.address)
	if err != nil {
		return math.NaN(), err
	}
	defer conn.Close() //nolint:errcheck // nothing hangs on it
	calls := 2 * b.callRounds
	if s.launch.name == "opm" {
		calls = b.peerRounds
	}
	if _, _, _, err := list(ctx, conn); err != nil {
		return math.NaN(), err
	}
	var counts [3]float64
	for i := range counts {
		if i == 2 {
			for range calls {
				if _, _, _, err := list(ctx, conn); err != nil {
					return math.NaN(), err
				}
			}
		}
		if counts[i], err = allocated(ctx, s); err != nil {
			return math.NaN(), err
		}
	}
	idle := counts[1] - counts[0]
	return (counts[2] - counts[1] - idle) / float64(calls), nil
}

var errNoCounter = errors.New("the server does not say how much it has allocated")

// allocated returns the bytes that a server has allocated since its start, from its metrics or from
// opm's heap profile.
func allocated(ctx context.Context, s *server) (float64, error) {
	page, key := "/metrics", "go_memstats_alloc_bytes_total "
	if s.launch.name == "opm" {
		page, key = "/debug/pprof/heap?debug=1", "# TotalAlloc = "
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.observer+page, http.NoBody)
	if err != nil {
		return math.NaN(), fmt.Errorf("asking %s for what it allocated: %w", s.Name(), err)
	}
	request.Close = true // an idle connection would outlive the server
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return math.NaN(), fmt.Errorf("asking %s for what it allocated: %w", s.Name(), err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), key); ok {
			return strconv.ParseFloat(text, 64)
		}
	}
	return math.NaN(), errors.Join(errNoCounter, lines.Err())
}
