// Package exitcode holds the ways in which commands end that look for something: problems in a
// catalog, differences between two, images that a mirror lacks.
package exitcode

import "errors"

// The ways in which commands end, besides zero.
const (
	// Found says that a command did its work and found what it looks for. Other failures of
	// commands that look for nothing have it as well.
	Found = 1
	// Trouble says that a command that looks for something could not look.
	Trouble = 2
)

// Error gives the program another exit code than the usual.
type Error struct {
	// Code is the exit code.
	Code int
	// Err is nil when everything has been printed already.
	Err error
}

// Error returns what there is to print, which may be nothing.
func (e *Error) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

// Unwrap returns what there is to print, or nil.
func (e *Error) Unwrap() error { return e.Err }

// Troubled gives an error the exit code of a command that could not look.
func Troubled(err error) error {
	if err == nil || errors.As(err, new(*Error)) {
		return err
	}
	return &Error{Code: Trouble, Err: err}
}

// ErrFound ends a command that has printed what it found.
func ErrFound() error { return &Error{Code: Found} }

// Of returns how the program ends after an error.
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
