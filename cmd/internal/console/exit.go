package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/chandlery/chandlery/cmd/internal/terminal"
	"github.com/chandlery/chandlery/supervisor/explain/snapshot"
)

// A Code is how a program ends. It is the same for every command, so that scripts can
// go by it; docs/reference/commands.md lists what each command means by it.
type Code int

const (
	// Fine says that the answer is yes, or that all is well.
	Fine Code = 0
	// Failed says that the command could not do its work: wrong usage, or an error that
	// no other code tells.
	Failed Code = 1
	// Negative says that the command did its work and the answer is no: not installed,
	// not progressing, something is wrong.
	Negative Code = 2
	// Forbidden says that what was asked for may not be read, so that the answer is not
	// known; the output names the missing rule.
	Forbidden Code = 3
	// Unreachable says that the API server could not be reached or did not answer.
	Unreachable Code = 4
	// Degraded says that what was asked for is there and nobody looks after it.
	Degraded Code = 5
)

// Verdict ends a command with a code, when its output has said why. It is an error so
// that it travels as one; [Report] prints nothing for it.
type Verdict Code //nolint:errname // it is no error to whoever reads the output

// Error says what the code means.
func (v Verdict) Error() string { return fmt.Sprintf("the command ends with exit code %d", int(v)) }

// Coded is an error that ends the program with a code other than [Failed].
type Coded struct { //nolint:errname // as Verdict, it is about the code
	// Code is the exit code.
	Code Code
	// Err says what went wrong, and what to do.
	Err error
}

// Error says what went wrong.
func (c *Coded) Error() string { return c.Err.Error() }

// Unwrap returns the cause.
func (c *Coded) Unwrap() error { return c.Err }

// Report prints what ended a program, after its name, and returns its exit code. What a
// [Verdict] says stands in the output already.
func Report(out io.Writer, program string, err error) Code {
	if err == nil {
		return Fine
	}
	if verdict, is := errors.AsType[Verdict](err); is {
		return Code(verdict)
	}
	_, _ = fmt.Fprintf(out, "%s: %s\n", program, terminal.Escape(err.Error()))
	return CodeOf(err)
}

// CodeOf gives the exit code that fits an error: its own, or what the API server, or its
// silence, says.
func CodeOf(err error) Code {
	var (
		coded   *Coded
		network net.Error
		silent  *snapshot.UnreachableError
	)
	switch {
	case err == nil:
		return Fine
	case errors.As(err, &coded):
		return coded.Code
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return Forbidden
	case errors.As(err, &silent), errors.As(err, &network),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF),
		apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), apierrors.IsServiceUnavailable(err), apierrors.IsTooManyRequests(err):
		return Unreachable
	}
	return Failed
}
