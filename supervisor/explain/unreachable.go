package explain

import "fmt"

// UnreachableError means that the API server answered no request.
type UnreachableError struct{ Err error }

// Error returns the message.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the API server does not answer: %v", e.Err)
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }
