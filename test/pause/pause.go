// Package pause provides waits for the end-to-end suites.
package pause

import (
	"context"
	"fmt"
	"time"
)

// For waits for a duration, or until ctx ends, and reports whether ctx has not ended.
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

// Until calls left repeatedly until it returns an empty text. If ctx ends first, the error contains
// the last text.
func Until(ctx context.Context, every time.Duration, left func() string) error {
	last := ""
	for {
		says := left()
		if says == "" {
			return nil
		}
		// Ignore the text after the end of ctx.
		if ctx.Err() == nil {
			last = says
		}
		if !For(ctx, every) {
			return fmt.Errorf("%w: %s", ctx.Err(), last)
		}
	}
}
