package nodes

import (
	"context"
	"fmt"
	"time"
)

const (
	// waitPoll is the interval between checks of a condition.
	waitPoll = 50 * time.Millisecond
	// checkLimit bounds one check, so a server that does not answer cannot use up the whole wait.
	checkLimit = 5 * time.Second
	// stopLimit bounds the removal of what a bed has created.
	stopLimit = time.Minute
	// killLimit bounds the wait for the end of killed processes.
	killLimit = 30 * time.Second
)

// wait calls check repeatedly until it returns nil, ctx ends or alive returns an error.
func wait(ctx context.Context, what string, alive func() error, check func(context.Context) error) error {
	ticker := time.NewTicker(waitPoll)
	defer ticker.Stop()

	for {
		err := alive()
		if err != nil {
			return fmt.Errorf("wait for %s: %w", what, err)
		}

		one, cancel := context.WithTimeout(ctx, checkLimit)
		err = check(one)

		cancel()

		if err == nil {
			return nil
		}

		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w; last seen: %w", what, context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

// always is the check alive for conditions that depend on none of our processes.
func always() error { return nil }
