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
	// Aim is the awaited result, such as "installed".
	Aim string
	// Remedy is the command that shows the reason for a state.
	Remedy string
}

// Wait calls read once a second until all states are final or one is a failure. It ends with a [Verdict] after
// a failure, which the log states, and with [ErrInterrupted] when the context ends. If the first read fails, its error
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
				return waitVerdict(failed)
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
	return progress.Start(w.Log, false, "Waiting (goal: "+w.Aim+")")
}

// isAnswer reports whether an error is a final answer of the API server. While the API server is
// unreachable, as during an update of the cluster, the objects may still progress.
func isAnswer(err error) bool {
	var status apierrors.APIStatus
	return apimeta.IsNoMatchError(err) || errors.As(err, &status) && CodeOf(err) != Unreachable
}

func waitVerdict(failed bool) error {
	if failed {
		return Verdict(Negative)
	}
	return nil
}

// timeoutError returns the error for the objects that are not in a final state at the timeout, or for the last read if
// the API server could not be reached.
func (w Waiter) timeoutError(last []WaitState, failure error) error {
	if last == nil {
		failure = context.DeadlineExceeded
	}
	if CodeOf(failure) == Unreachable {
		return &Coded{Code: Unreachable, Err: fmt.Errorf("not %s within %s (--timeout): the API server does not answer: %w", w.Aim, w.Timeout, failure)}
	}
	var open []string
	for _, s := range last {
		if !s.Done {
			open = append(open, s.Object+" "+s.Is)
		}
	}
	return &Coded{Code: Negative, Err: fmt.Errorf("not %s within %s (--timeout): %s; '%s' shows the reason",
		w.Aim, w.Timeout, strings.Join(open, ", "), w.Remedy)}
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
