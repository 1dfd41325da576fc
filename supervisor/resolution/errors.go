package resolution

import (
	"errors"
	"fmt"
	"strings"
)

// ErrPending says that a catalog which the answer may depend on is being read for
// the first time: there is nothing to say so far.
var ErrPending = errors.New("the catalog is being read for the first time")

// UnsatisfiableError says that no version fits a Subscription, and why.
type UnsatisfiableError struct {
	// Reason is one of the reasons of api.ConditionBlocked.
	Reason string
	// Reasons are facts that together leave no solution, in byte order. Without
	// any one of them there would be one.
	Reasons []string
	// Remedy is what a person can do.
	Remedy string
	// Rival names the Subscription that keeps the package, when that is why.
	Rival string
}

// Facts returns the sentence of OLM: the reasons without the remedy.
func (e *UnsatisfiableError) Facts() string {
	return "constraints not satisfiable: " + strings.Join(e.Reasons, ", ")
}

// Error returns the facts, then the remedy.
func (e *UnsatisfiableError) Error() string {
	text := e.Facts()
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

// CatalogError says that a catalog has no content to resolve against, or content
// that contradicts itself.
type CatalogError struct {
	Catalog CatalogKey
	Err     error
}

// Error names the catalog and what is wrong with it.
func (e *CatalogError) Error() string {
	return fmt.Sprintf("error using catalogsource %s: %v", e.Catalog, e.Err)
}

// Unwrap gives the cause.
func (e *CatalogError) Unwrap() error { return e.Err }

// unsatisfiable returns the error for a Subscription. Its facts include that the Subscription exists.
func unsatisfiable(sub *Subscription, reason, remedy, format string, args ...any) *UnsatisfiableError {
	return &UnsatisfiableError{
		Reason:  reason,
		Reasons: []string{fmt.Sprintf(format, args...), exists(sub)},
		Remedy:  remedy,
	}
}

func exists(sub *Subscription) string { return fmt.Sprintf("subscription %s exists", sub.Name) }
