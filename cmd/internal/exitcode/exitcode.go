// Package exitcode holds the exit codes of commands that look for something: problems in a catalog,
// differences between two, or images that a mirror lacks.
package exitcode

import "errors"

// The exit codes other than zero.
const (
	// Found means that a command did its work and found what it looks for. It is also the code for
	// failures of commands that look for nothing.
	Found = 1
	// Trouble means that a command that looks for something could not look.
	Trouble = 2
)

// Error is an error with an exit code other than the default.
type Error struct {
	// Code is the exit code.
	Code int
	// Err is nil if everything has been printed already.
	Err error
}

// Error returns the text to print, which may be empty.
func (e *Error) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Troubled returns an error with the exit code of a command that could not look.
func Troubled(err error) error {
	if err == nil || errors.As(err, new(*Error)) {
		return err
	}
	return &Error{Code: Trouble, Err: err}
}

// ErrFound returns the error that ends a command that has printed what it found.
func ErrFound() error { return &Error{Code: Found} }

// Of returns the exit code for an error.
func Of(err error) int {
	if wanted, ok := errors.AsType[*Error](err); ok {
		return wanted.Code
	}
	return Found
}

// IsSilent reports whether everything has been printed already.
func IsSilent(err error) bool {
	wanted, ok := errors.AsType[*Error](err)
	return ok && wanted.Err == nil
}
