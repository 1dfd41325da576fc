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

// MissingNamespaceError means that a requested namespace does not exist.
type MissingNamespaceError struct{ Name string }

// Error returns the message with the remedy.
func (e *MissingNamespaceError) Error() string {
	return fmt.Sprintf("namespace %s does not exist; name another with --namespace (-n)", e.Name)
}
