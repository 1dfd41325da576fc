package nodes

import (
	"context"
	"fmt"
	"time"
)

const (
	// waitPoll is how often a condition is looked at.
	waitPoll = 50 * time.Millisecond
	// checkLimit bounds one look, so that a silent server cannot use up the whole wait.
	checkLimit = 5 * time.Second
	// stopLimit bounds the removal of what a bed made.
	stopLimit = time.Minute
	// killLimit is how long the end of killed processes may take.
	killLimit = 30 * time.Second
)

// wait looks until check has no objection, ctx ends or alive says that there is no more
// to wait for.
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

// always is for what depends on no process of ours.
func always() error { return nil }
