package discovery

import "time"

// A Result is what was found out about a target.
type Result struct {
	Verdict

	// Target is what was looked for; its version and resource are filled in where they
	// were looked up.
	Target Target
	// Served are the versions at which the kind, or else its group, is served where the
	// one that was looked for is not.
	Served []string
	// Keeper is who reconciles the kind, as far as it was asked and found out.
	Keeper Upkeeper
	// Cause is the failure behind the outcome; nil where there was none.
	Cause error
	// Detail is what the answers say beyond the reason.
	Detail string
	// Grant gives the rights that are missing, as YAML for kubectl apply; it is empty
	// where none are.
	Grant string
	// At is when it was found out.
	At time.Time
}

// An Upkeeper is who reconciles a kind.
type Upkeeper struct {
	// Name says what it is and what it is called: Deployment ops/prometheus-operator.
	Name string
	// Version is the operator's own, where it is known.
	Version string
	// Detail says what is wrong with it, or what could not be found out.
	Detail string
}

// Usable says whether the API can be used.
func (r *Result) Usable() bool { return r.Outcome == Installed }

// Err is the typed error of an outcome: nil for Installed and for what is disabled.
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

// failure is what the errors have in common.
type failure struct {
	// Result is what was found out.
	Result Result
}

// Error names the API, what is the matter, and the remedy.
func (f *failure) Error() string { return f.Result.Message() }

// Unwrap returns the cause.
func (f *failure) Unwrap() error { return f.Result.Cause }

// NotInstalledError says that an API is not in the cluster.
type NotInstalledError struct{ failure }

// ForbiddenError says that an API may not be read, or not be asked for.
type ForbiddenError struct{ failure }

// UnreachableError says that nobody could tell.
type UnreachableError struct{ failure }

// DegradedError says that nobody looks after an API that is there.
type DegradedError struct{ failure }
