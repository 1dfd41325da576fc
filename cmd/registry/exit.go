package main

import "errors"

// The ways in which commands end, besides zero.
const (
	// exitFound says that a command did its work and found what it looks for:
	// problems in a catalog, differences between two, a server that is not
	// ready. Other failures of commands that look for nothing have it as well.
	exitFound = 1
	// exitTrouble says that a command that looks for something could not look.
	exitTrouble = 2
)

// exitError gives the program another exit code than the usual.
type exitError struct {
	code int
	// err is nil when everything has been said already.
	err error
}

// Error returns what there is to say, which may be nothing.
func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

// Unwrap returns what there is to say, or nil.
func (e *exitError) Unwrap() error { return e.err }

// trouble gives an error the exit code of a command that could not look.
func trouble(err error) error {
	if err == nil || errors.As(err, new(*exitError)) {
		return err
	}
	return &exitError{code: exitTrouble, err: err}
}

// errFound ends a command that has said what it found.
func errFound() error { return &exitError{code: exitFound} }

// exitCode returns how the program ends after an error.
func exitCode(err error) int {
	if wanted, ok := errors.AsType[*exitError](err); ok {
		return wanted.code
	}
	return exitFound
}

// silent tells whether everything has been said already.
func silent(err error) bool {
	wanted, ok := errors.AsType[*exitError](err)
	return ok && wanted.err == nil
}
