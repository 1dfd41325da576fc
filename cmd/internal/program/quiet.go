package program

import (
	"context"
	"errors"
	"log/slog"
	"strings"
)

// Quiet lowers records to debug if they only reflect that the program is stopping: canceled work,
// and a released Lease. They are no errors to a user who restarts the program.
//
// Records pass unchanged until stopping ends.
func Quiet(stopping context.Context, next slog.Handler) slog.Handler {
	return &quiet{Handler: next, stopping: stopping}
}

type quiet struct {
	slog.Handler

	stopping context.Context //nolint:containedctx // it is asked whether it has ended, at each record
}

// Handle passes a record on. It lowers the level of records that reflect the stop.
func (q *quiet) Handle(ctx context.Context, r slog.Record) error {
	if r.Level > slog.LevelDebug && q.stopping.Err() != nil && causedByShutdown(r) {
		r.Level = slog.LevelDebug
		if !q.Enabled(ctx, r.Level) {
			return nil
		}
	}
	return q.Handler.Handle(ctx, r) //nolint:wrapcheck // this is the wrapped handler's own error
}

// WithAttrs returns a handler with attributes, wrapped as well.
func (q *quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &quiet{Handler: q.Handler.WithAttrs(attrs), stopping: q.stopping}
}

// WithGroup returns a handler with a group, wrapped as well.
func (q *quiet) WithGroup(name string) slog.Handler {
	return &quiet{Handler: q.Handler.WithGroup(name), stopping: q.stopping}
}

// causedByShutdown reports whether an error in a record results from the end of a context or the
// release of the Lease.
func causedByShutdown(r slog.Record) bool {
	found := false
	r.Attrs(func(a slog.Attr) bool {
		err, ok := a.Value.Any().(error)
		if !ok {
			return true
		}
		// Some clients convert errors to text.
		text := err.Error()
		found = errors.Is(err, context.Canceled) || strings.Contains(text, context.Canceled.Error()) || text == "leader election lost"
		return !found
	})
	return found
}
