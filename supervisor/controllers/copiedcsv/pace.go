package copiedcsv

import (
	"context"
	"fmt"

	"golang.org/x/time/rate"
)

// readsPerWrite is the ratio of reads to writes. A read is cheap for the API server. A write is
// stored and sent to all watchers.
const readsPerWrite = 4

// pace limits the requests for all versions together.
type pace struct {
	writes, reads *rate.Limiter
}

func newPace(perSecond float64, burst int) pace {
	return pace{
		writes: rate.NewLimiter(rate.Limit(perSecond), burst),
		reads:  rate.NewLimiter(rate.Limit(readsPerWrite*perSecond), readsPerWrite*burst),
	}
}

func (p pace) write(ctx context.Context) error {
	if err := p.writes.Wait(ctx); err != nil {
		return fmt.Errorf("waiting for a turn to write: %w", err)
	}
	return nil
}

func (p pace) read(ctx context.Context) error {
	if err := p.reads.Wait(ctx); err != nil {
		return fmt.Errorf("waiting for a turn to read: %w", err)
	}
	return nil
}
