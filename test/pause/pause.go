// Package pause waits for the end-to-end suites.
package pause

import (
	"context"
	"fmt"
	"time"
)

// For waits for a while, or until ctx ends, and says whether ctx still lives.
func For(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Until asks again and again until there is nothing left to say. When ctx ends before,
// the error has what was said last.
func Until(ctx context.Context, every time.Duration, left func() string) error {
	last := ""
	for {
		says := left()
		if says == "" {
			return nil
		}
		// What is said when the time is over says nothing.
		if ctx.Err() == nil {
			last = says
		}
		if !For(ctx, every) {
			return fmt.Errorf("%w: %s", ctx.Err(), last)
		}
	}
}
