package discovery

import (
	"strings"
	"time"
)

// A Result is the result of the check of a target.
type Result struct {
	Verdict

	// Target is the target of the check. Its version and resource are filled in if they were looked up.
	Target Target
	// Served are the versions that serve the kind, or else the versions of its group, if the requested version is not
	// served.
	Served []string
	// Operator is the operator that reconciles the kind, if the check found it.
	Operator Operator
	// Cause is the failure behind the outcome; nil if there is none.
	Cause error
	// Detail is further text from the answers.
	Detail string
	// Grant holds the missing permissions, as YAML for kubectl apply; empty if none are missing.
	Grant string
	// At is the time of the check.
	At time.Time
}

// An Operator is the object that shows the operator of a kind.
type Operator struct {
	// Name is the kind and the name of the object: Deployment ops/prometheus-operator.
	Name string
	// Version is the version of the operator, if it is known.
	Version string
	// Detail is what is wrong with the operator, or what could not be determined.
	Detail string
}

// String returns the name and the version of the operator.
func (o Operator) String() string { return strings.TrimSpace(o.Name + " " + o.Version) }

// Usable reports whether the API can be used.
func (r *Result) Usable() bool { return r.Outcome == Installed }

// Err returns the typed error of an outcome: nil for Installed and for a disabled API.
func (r *Result) Err() error {
	switch r.Outcome {
	case NotInstalled:
		return &NotInstalledError{failure{*r}}
	case Forbidden:
		return &ForbiddenError{failure{*r}}
	case Unreachable:
		return &UnreachableError{failure{*r}}
	case Degraded:
		return &DegradedError{failure{*r}}
	default:
		return nil
	}
}

// failure is the common part of the errors.
type failure struct {
	// Result is the result of the check.
	Result Result
}

// Error returns the message: the API, the outcome, and the remedy.
func (f *failure) Error() string { return f.Result.Message() }

// Unwrap returns the cause.
func (f *failure) Unwrap() error { return f.Result.Cause }

// NotInstalledError reports that an API is not in the cluster.
type NotInstalledError struct{ failure }

// ForbiddenError reports that the user may not read an API, or may not use the discovery API.
type ForbiddenError struct{ failure }

// UnreachableError reports that no server gave a usable answer.
type UnreachableError struct{ failure }

// DegradedError reports that no operator reconciles an installed API.
type DegradedError struct{ failure }
