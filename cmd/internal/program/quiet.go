package program

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
)

// Quiet lowers records to debug if they only reflect that the program is stopping: canceled work,
// and a released Lease. They are no errors to a user who restarts the program. Until stopping ends, it
// lowers only records of expected errors.
func Quiet(stopping context.Context, next slog.Handler, expected ...error) slog.Handler {
	return &quiet{Handler: next, stopping: stopping, expected: expected}
}

type quiet struct {
	slog.Handler

	stopping context.Context //nolint:containedctx // it is asked whether it has ended, at each record
	expected []error
}

// Handle passes a record on. It lowers the level of records that reflect the stop, or an expected error.
func (q *quiet) Handle(ctx context.Context, r slog.Record) error {
	if r.Level > slog.LevelDebug && (q.stopping.Err() != nil && hasError(r, isShutdown) || hasError(r, q.isExpected)) {
		r.Level = slog.LevelDebug
		if !q.Enabled(ctx, r.Level) {
			return nil
		}
	}
	return q.Handler.Handle(ctx, r) //nolint:wrapcheck // this is the wrapped handler's own error
}

// WithAttrs returns a handler with attributes, wrapped as well.
func (q *quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &quiet{Handler: q.Handler.WithAttrs(attrs), stopping: q.stopping, expected: q.expected}
}

// WithGroup returns a handler with a group, wrapped as well.
func (q *quiet) WithGroup(name string) slog.Handler {
	return &quiet{Handler: q.Handler.WithGroup(name), stopping: q.stopping, expected: q.expected}
}

// isExpected reports whether an error is an expected one.
func (q *quiet) isExpected(err error) bool {
	return slices.ContainsFunc(q.expected, func(expected error) bool { return errors.Is(err, expected) })
}

// isShutdown reports whether an error results from the end of a context or the release of the Lease.
func isShutdown(err error) bool {
	// Some clients convert errors to text.
	text := err.Error()
	return errors.Is(err, context.Canceled) || strings.Contains(text, context.Canceled.Error()) || text == "leader election lost"
}

// hasError reports whether a record has an error that matches.
func hasError(r slog.Record, matches func(error) bool) bool {
	found := false
	r.Attrs(func(a slog.Attr) bool {
		err, ok := a.Value.Any().(error)
		found = ok && matches(err)
		return !found
	})
	return found
}
