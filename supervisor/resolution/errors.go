package resolution

import (
	"errors"
	"fmt"
	"strings"
)

// ErrPending is the error of a Subscription whose result may depend on a catalog that is being read for the first
// time.
var ErrPending = errors.New("the catalog is being read for the first time")

// UnsatisfiableError occurs when no version of the package meets all constraints, or when the Subscription names a
// catalog, package, channel or version that does not exist.
type UnsatisfiableError struct {
	// Reason is one of the reasons of api.ConditionBlocked.
	Reason string
	// Reasons are the statements that together leave no solution, in byte order. The set is minimal.
	Reasons []string
	// Remedy is what a user can do.
	Remedy string
	// KeptBy names the other Subscription that keeps the package; empty if that is not the cause.
	KeptBy string
}

// Cause returns the sentence of OLM: the reasons without the remedy.
func (e *UnsatisfiableError) Cause() string {
	return "constraints not satisfiable: " + strings.Join(e.Reasons, ", ")
}

// Error returns the cause and the remedy.
func (e *UnsatisfiableError) Error() string {
	text := e.Cause()
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

// CatalogError occurs when the catalog of a Subscription has no content, or when the package in it is invalid: its
// channel has no order, a skipRange cannot be parsed, or the only candidate has invalid properties.
type CatalogError struct {
	Catalog CatalogKey
	Err     error
}

// Error returns the name of the catalog and the cause.
func (e *CatalogError) Error() string {
	return fmt.Sprintf("error using catalogsource %s: %v", e.Catalog, e.Err)
}

// Unwrap returns the cause.
func (e *CatalogError) Unwrap() error { return e.Err }

// unsatisfiable returns the error for a Subscription. Its reasons include that the Subscription exists.
func unsatisfiable(sub *Subscription, reason, remedy, format string, args ...any) *UnsatisfiableError {
	return &UnsatisfiableError{
		Reason:  reason,
		Reasons: []string{fmt.Sprintf(format, args...), exists(sub)},
		Remedy:  remedy,
	}
}

func exists(sub *Subscription) string { return fmt.Sprintf("subscription %s exists", sub.Name) }
