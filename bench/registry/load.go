package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/chandlery/chandlery/bench/wire"
)

// callersPerConnection is the number of callers that share a connection, like the goroutines of a controller.
const callersPerConnection = 8

// outcome is what callers measured.
type outcome struct {
	// rate is in calls per second, the others are in seconds.
	rate, p50, p99 float64
	calls          int
}

// load runs callers that each make one call after the other for a time.
func load(ctx context.Context, address string, calls []wire.Call, callers int, span time.Duration) (outcome, error) {
	var conns []*grpc.ClientConn
	defer func() {
		for _, conn := range conns {
			conn.Close() //nolint:errcheck // nothing hangs on it
		}
	}()
	for range (callers + callersPerConnection - 1) / callersPerConnection {
		conn, err := dial(address)
		if err != nil {
			return outcome{}, err
		}
		conns = append(conns, conn)
		if err := connected(ctx, conn); err != nil {
			return outcome{}, err
		}
	}
	took := make([][]time.Duration, callers)
	group, running := errgroup.WithContext(ctx)
	began := time.Now()
	for i := range callers {
		c := &caller{conn: conns[i%len(conns)], calls: calls, next: i * len(calls) / callers}
		group.Go(func() error {
			var err error
			took[i], err = c.run(running, began.Add(span))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return outcome{}, fmt.Errorf("calling: %w", err)
	}
	elapsed := time.Since(began).Seconds()
	all := slices.Concat(took...)
	slices.Sort(all)
	return outcome{
		rate: float64(len(all)) / elapsed, p50: percentile(all, 0.5), p99: percentile(all, 0.99), calls: len(all),
	}, nil
}

// caller repeats the same calls to the same server.
type caller struct {
	conn  *grpc.ClientConn
	calls []wire.Call
	next  int
}

var errNoCalls = errors.New("there is nothing to ask")

func (c *caller) run(ctx context.Context, until time.Time) ([]time.Duration, error) {
	if len(c.calls) == 0 {
		return nil, errNoCalls
	}
	took := make([]time.Duration, 0, 1<<14)
	codec := rawCodec()
	for now := time.Now(); now.Before(until); {
		call := &c.calls[c.next%len(c.calls)]
		c.next++
		request, size := wire.Bytes(call.Request), wire.Size(0)
		if err := c.conn.Invoke(ctx, call.Method, &request, &size, codec); err != nil {
			return nil, err
		}
		after := time.Now()
		took = append(took, after.Sub(now))
		now = after
	}
	return took, nil
}
