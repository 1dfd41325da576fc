package copiedcsv

import (
	"context"
	"fmt"

	"golang.org/x/time/rate"
)

// readsPerWrite is the ratio of reads to writes. A read is cheap for the API server. A write is
// stored and sent to all watchers.
const readsPerWrite = 4

// limits bounds the rate of the requests for all versions together.
type limits struct {
	writes, reads *rate.Limiter
}

func newLimits(perSecond float64, burst int) limits {
	return limits{
		writes: rate.NewLimiter(rate.Limit(perSecond), burst),
		reads:  rate.NewLimiter(rate.Limit(readsPerWrite*perSecond), readsPerWrite*burst),
	}
}

func (p limits) write(ctx context.Context) error {
	if err := p.writes.Wait(ctx); err != nil {
		return fmt.Errorf("waiting for a turn to write: %w", err)
	}
	return nil
}

func (p limits) read(ctx context.Context) error {
	if err := p.reads.Wait(ctx); err != nil {
		return fmt.Errorf("waiting for a turn to read: %w", err)
	}
	return nil
}
