package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/chandlery/chandlery/cmd/internal/terminal"
	"github.com/chandlery/chandlery/supervisor/explain"
)

// Code is an exit code. All commands share the codes, so scripts can depend on them.
// docs/reference/commands.md lists what each command means by them.
type Code int

const (
	// Fine means that the answer is yes or that nothing is wrong.
	Fine Code = 0
	// Failed means that the command could not do its work: wrong usage, or an error that no other code covers.
	Failed Code = 1
	// Negative means that the command did its work and the answer is no: not installed, not
	// progressing, or something is wrong.
	Negative Code = 2
	// Forbidden means that the user may not read the requested objects, so the answer is unknown.
	// The output names the missing rule.
	Forbidden Code = 3
	// Unreachable means that the API server could not be reached or did not answer.
	Unreachable Code = 4
	// Degraded means that the requested API exists and nothing reconciles it.
	Degraded Code = 5
	// Interrupted means that the user ended the command before it was complete. Shells use the code for SIGINT.
	Interrupted Code = 130
)

// Verdict ends a command with a code after the output has stated the reason. It is an error because
// commands return it. [Report] prints nothing for it.
type Verdict Code //nolint:errname // the output shows it as a result, not as an error

// Error returns a text with the code.
func (v Verdict) Error() string { return fmt.Sprintf("the command ends with exit code %d", int(v)) }

// Coded is an error that ends the program with a code other than [Failed].
type Coded struct { //nolint:errname // as Verdict, it is about the code
	// Code is the exit code.
	Code Code
	// Err is the error with its remedy.
	Err error
}

// Error returns the text of Err.
func (c *Coded) Error() string { return c.Err.Error() }

// Unwrap returns the cause.
func (c *Coded) Unwrap() error { return c.Err }

// Report prints the error of a program, after the program's name, and returns the exit code. It
// prints nothing for a [Verdict], whose reason the output already states. It adds the remedy for a cluster without the
// API operators.coreos.com.
func Report(out io.Writer, program string, err error) Code {
	if err == nil {
		return Fine
	}
	if verdict, is := errors.AsType[Verdict](err); is {
		return Code(verdict)
	}
	err = reported(err)
	_, _ = fmt.Fprintf(out, "%s: %s\n", program, terminal.Escape(err.Error()))
	return CodeOf(err)
}

// reported returns the error that users see in place of another one.
func reported(err error) error {
	if errors.Is(err, context.Canceled) && CodeOf(err) == Interrupted {
		// The error is about the request that was cut off, which is not the reason.
		return ErrInterrupted
	}
	return withMissingAPI(err)
}

// Problem returns the text of an error for a document. It is empty for a [Verdict] whose reason the document states.
func Problem(err error) string {
	if failed, is := errors.AsType[*failedError](err); is {
		return failed.Error()
	}
	if _, is := errors.AsType[Verdict](err); is || err == nil {
		return ""
	}
	return reported(err).Error()
}

// CodeOf returns the exit code of an error: its own code, or the code for an interruption, for a missing
// namespace, for an answer of the API server or for its absence.
func CodeOf(err error) Code {
	var (
		coded   *Coded
		network net.Error
		silent  *explain.UnreachableError
		missing *explain.MissingNamespaceError
	)
	switch {
	case err == nil:
		return Fine
	case errors.As(err, &coded):
		return coded.Code
	case errors.As(err, &missing):
		return Negative
	case errors.Is(err, ErrInterrupted), errors.Is(err, context.Canceled):
		return Interrupted
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return Forbidden
	case errors.As(err, &silent), errors.As(err, &network),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF),
		apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), apierrors.IsServiceUnavailable(err), apierrors.IsTooManyRequests(err):
		return Unreachable
	}
	return Failed
}
