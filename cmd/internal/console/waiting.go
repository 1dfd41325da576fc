package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"

	"github.com/chandlery/chandlery/cmd/internal/progress"
)

// pollInterval is the time between two reads.
const pollInterval = time.Second

// ErrInterrupted means that the user ended the wait.
var ErrInterrupted = errors.New("interrupted")

// WaitState is the state of an object that a command waits for.
type WaitState struct {
	// Object names the object, and Is describes its state.
	Object string `json:"object"`
	Is     string `json:"state"`
	// Done is set if the object is in a final state, and Failed if that state is a failure.
	Done   bool `json:"done"`
	Failed bool `json:"failed"`
}

// Waiter waits until objects are in a final state.
type Waiter struct {
	// Log gets a line for each change. It is separate from the output, which may be a document.
	Log     io.Writer
	Timeout time.Duration
	// Aim is the awaited result, such as "the installation".
	Aim string
	// Remedy is the command that shows the reason for a state.
	Remedy string
}

// Wait calls read once a second until all states are final or one is a failure. It ends with a [Verdict] after
// a failure, which the log and [Problem] state, and with [ErrInterrupted] when the context ends. If the first read fails, its error
// is the result. Later, the API server may be unreachable for a time.
func (w Waiter) Wait(ctx context.Context, read func(context.Context) ([]WaitState, error)) error {
	limited, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	ticker := clock.RealClock{}.NewTicker(pollInterval)
	defer ticker.Stop()
	logged := map[string]string{}
	var (
		last    []WaitState
		failure error
	)
	done := func() {}
	defer func() { done() }() //nolint:gocritic // the loop replaces done
	for {
		now, err := read(limited)
		// The end of the wait also ends a read, whose error then has no meaning.
		if limited.Err() == nil {
			failure = err
			if err != nil && (last == nil || isAnswer(err)) {
				return err
			}
		}
		if err == nil {
			last, done = now, w.log(now, logged, done)
			if complete, failed := waitResult(now); complete || failed {
				return waitVerdict(now, failed)
			}
		}
		select {
		case <-limited.Done():
			if ctx.Err() != nil {
				return ErrInterrupted
			}
			return w.timeoutError(last, failure)
		case <-ticker.C():
		}
	}
}

// log writes the changes, and starts the progress again after them. It returns the function that ends the progress.
func (w Waiter) log(now []WaitState, logged map[string]string, done func()) func() {
	lines := changedStates(now, logged)
	if lines == "" {
		return done
	}
	done()
	_, _ = io.WriteString(w.Log, lines)
	return progress.Start(w.Log, false, "Waiting for "+w.Aim)
}

// isAnswer reports whether an error is a final answer of the API server. While the API server is
// unreachable, as during an update of the cluster, the objects may still progress.
func isAnswer(err error) bool {
	var status apierrors.APIStatus
	return apimeta.IsNoMatchError(err) || errors.As(err, &status) && CodeOf(err) != Unreachable
}

func waitVerdict(states []WaitState, failed bool) error {
	if failed {
		return &failedError{states: states}
	}
	return nil
}

// failedError is the [Verdict] after a failure of an object. The log states the failure.
type failedError struct{ states []WaitState }

// Error returns the states of the objects that failed.
func (e *failedError) Error() string {
	return describeStates(e.states, func(s WaitState) bool { return s.Failed })
}

// Unwrap returns the verdict.
func (e *failedError) Unwrap() error { return Verdict(Negative) }

// describeStates returns the states that a condition selects, in one line.
func describeStates(states []WaitState, selects func(WaitState) bool) string {
	var texts []string
	for _, s := range states {
		if selects(s) {
			texts = append(texts, s.Object+" "+s.Is)
		}
	}
	return strings.Join(texts, ", ")
}

// timeoutError returns the error for the objects that are not in a final state at the timeout, or for the last read if
// the API server could not be reached.
func (w Waiter) timeoutError(last []WaitState, failure error) error {
	if last == nil {
		failure = context.DeadlineExceeded
	}
	if CodeOf(failure) == Unreachable {
		return &Coded{Code: Unreachable, Err: fmt.Errorf("%s: the API server does not answer: %w", w.expired(), failure)}
	}
	open := describeStates(last, func(s WaitState) bool { return !s.Done })
	return &Coded{Code: Negative, Err: fmt.Errorf("%s: %s; '%s' shows the reason", w.expired(), open, w.Remedy)}
}

// expired returns the text about the timeout.
func (w Waiter) expired() string {
	return fmt.Sprintf("timed out after %s (--timeout) waiting for %s", w.Timeout, w.Aim)
}

// changedStates returns a line for each state that differs from the logged one, and updates the logged ones.
func changedStates(now []WaitState, logged map[string]string) string {
	var b strings.Builder
	for _, s := range now {
		if logged[s.Object] != s.Is {
			logged[s.Object] = s.Is
			fmt.Fprintf(&b, "%s %s\n", s.Object, s.Is)
		}
	}
	return b.String()
}

// waitResult reports whether all states are final, and whether one is a failure.
func waitResult(now []WaitState) (done, failed bool) {
	done = true
	for _, s := range now {
		done = done && s.Done
		failed = failed || s.Failed
	}
	return done, failed
}
