package program

import (
	"context"
	"errors"
	"log/slog"
	"strings"
)

// Quiet lowers to debug what is only said because the program is stopping: work
// that was cut off, and the lead that was given up. To somebody who restarts a
// program those lines are no errors.
//
// Records pass unchanged until stopping ends.
func Quiet(stopping context.Context, next slog.Handler) slog.Handler {
	return &quiet{Handler: next, stopping: stopping}
}

type quiet struct {
	slog.Handler

	stopping context.Context //nolint:containedctx // it is asked whether it has ended, at each record
}

// Handle passes a record on, lowered where it only tells of the stop.
func (q *quiet) Handle(ctx context.Context, r slog.Record) error {
	if r.Level > slog.LevelDebug && q.stopping.Err() != nil && tellsOfTheStop(r) {
		r.Level = slog.LevelDebug
		if !q.Enabled(ctx, r.Level) {
			return nil
		}
	}
	return q.Handler.Handle(ctx, r) //nolint:wrapcheck // this is the wrapped handler's own error
}

// WithAttrs keeps the wrapper around what the wrapped handler returns.
func (q *quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &quiet{Handler: q.Handler.WithAttrs(attrs), stopping: q.stopping}
}

// WithGroup keeps the wrapper around what the wrapped handler returns.
func (q *quiet) WithGroup(name string) slog.Handler {
	return &quiet{Handler: q.Handler.WithGroup(name), stopping: q.stopping}
}

// tellsOfTheStop says whether an error in a record comes from the end of a
// context or from giving up the lead.
func tellsOfTheStop(r slog.Record) bool {
	found := false
	r.Attrs(func(a slog.Attr) bool {
		err, ok := a.Value.Any().(error)
		if !ok {
			return true
		}
		// Clients turn some errors into text on their way.
		text := err.Error()
		found = errors.Is(err, context.Canceled) || strings.Contains(text, context.Canceled.Error()) || text == "leader election lost"
		return !found
	})
	return found
}
