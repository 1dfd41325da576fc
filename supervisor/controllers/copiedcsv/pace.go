package copiedcsv

import (
	"context"
	"fmt"

	"golang.org/x/time/rate"
)

// readsPerWrite is how many copies are read in the time that is given to a write. A read
// costs the API server little, but a write is stored, and sent to all who watch.
const readsPerWrite = 4

// pace bounds what all versions together ask of the API server.
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
