package discovery

// A Probe is the next request of a check.
type Probe string

// The probes, in their order.
const (
	// ProbeNone means that the step has a verdict.
	ProbeNone Probe = ""
	// ProbeDiscovery asks the discovery API for the exact group, version and kind.
	ProbeDiscovery Probe = "discovery"
	// ProbeResource lists at most one object.
	ProbeResource Probe = "resource"
	// ProbeBackend asks for the APIService, which shows whether the server of an aggregated API is available.
	ProbeBackend Probe = "APIService"
	// ProbeOperator reads the state of the operator that reconciles the kind.
	ProbeOperator Probe = "operator"
	// ProbeUser asks for the name of the user, for the missing permissions.
	ProbeUser Probe = "user"
)

// An Answer is the result of a probe.
type Answer string

// The answers. The first ones may follow any request, and NotFound a list of objects. The others follow a
// request to the discovery API, and specify what is missing.
const (
	// NotProbed is the zero Answer.
	NotProbed Answer = ""
	// OK is 200: objects can be listed, or the kind is served.
	OK Answer = "200"
	// Denied is 403.
	Denied Answer = "403"
	// Unauthorized is 401.
	Unauthorized Answer = "401"
	// Throttled is 429.
	Throttled Answer = "429"
	// Broken is any other error of the server: 5xx, or an unexpected status.
	Broken Answer = "5xx"
	// Unavailable is 503, which is also the answer of an API server that cannot reach the server of an aggregated
	// API.
	Unavailable Answer = "503"
	// TimedOut is no answer in time.
	TimedOut Answer = "timeout"
	// Untrusted is a failed TLS handshake.
	Untrusted Answer = "TLS error"
	// Unconnected is a failed connection: refused, no route, no such host.
	Unconnected Answer = "no connection"
	// NotFound is 404 of the resource.
	NotFound Answer = "404"
	// NoKind means that the group is served, without the kind.
	NoKind Answer = "404 kind"
	// NoVersion means that the kind is served, at other versions.
	NoVersion Answer = "404 version"
	// NoGroup means that the group is not served.
	NoGroup Answer = "404 group"
)

// A Backend is the state of the server of an API, as its APIService reports it.
type Backend string

// The states of a backend.
const (
	// BackendNotProbed is the zero Backend.
	BackendNotProbed Backend = ""
	// BackendDown means that the APIService is not available.
	BackendDown Backend = "down"
	// BackendUp means that the APIService is available, or that the API server itself serves the API.
	BackendUp Backend = "up"
	// BackendUnknown means that the APIService could not be read.
	BackendUnknown Backend = "unknown"
)

// An OperatorState is the state of the operator that reconciles a kind.
type OperatorState string

// The states of an operator.
const (
	// OperatorNotProbed is the zero OperatorState.
	OperatorNotProbed OperatorState = ""
	// OperatorRunning means that an operator reconciles the kind.
	OperatorRunning OperatorState = "running"
	// OperatorMissing means that there is no operator.
	OperatorMissing OperatorState = "missing"
	// OperatorDown means that the operator is installed and does not run.
	OperatorDown OperatorState = "not running"
	// LeaseStale means that the leader of the operator has not renewed the Lease in time.
	LeaseStale OperatorState = "stale Lease"
	// OperatorUnknown means that the state could not be determined.
	OperatorUnknown OperatorState = "unknown"
)

// Facts are the answers so far. The zero Facts hold no answer.
type Facts struct {
	// Incomplete is true if the resource's name or version must be looked up.
	Incomplete bool
	// WithOperator is true if the check includes the operator of the kind.
	WithOperator bool
	// Resource is the answer to listing one object, Discovery the answer of the discovery API.
	Resource, Discovery Answer
	// Backend is the answer from the APIService.
	Backend Backend
	// Operator is the state of the operator.
	Operator OperatorState
	// UserProbed is true after the probe for the name of the user.
	UserProbed bool
}

// An Outcome is one of the results that callers distinguish.
type Outcome string

// The outcomes.
const (
	// Skipped is the outcome for a disabled API, of which nothing is known.
	Skipped Outcome = "Disabled"
	// Installed means that the API can be used.
	Installed Outcome = "Installed"
	// NotInstalled means that the API is not installed, according to the discovery API.
	NotInstalled Outcome = "NotInstalled"
	// Forbidden means that the user may not read the API, or may not use the discovery API.
	Forbidden Outcome = "Forbidden"
	// Unreachable means that no server gave a usable answer.
	Unreachable Outcome = "Unreachable"
	// Degraded means that the API is installed and no operator reconciles it.
	Degraded Outcome = "Degraded"
)

// A Reason is the cause of an outcome in one word.
type Reason string

// The reasons, by their outcomes.
const (
	ReasonDisabled Reason = "Disabled"

	ReasonServed          Reason = "Served"
	ReasonOperatorRunning Reason = "OperatorRunning"
	ReasonOperatorUnknown Reason = "OperatorUnknown"

	ReasonNoGroup   Reason = "NoSuchGroup"
	ReasonNoVersion Reason = "NoSuchVersion"
	ReasonNoKind    Reason = "NoSuchKind"

	ReasonMayNotList     Reason = "MayNotList"
	ReasonMayNotDiscover Reason = "MayNotDiscover"

	ReasonUnauthorized  Reason = "Unauthorized"
	ReasonUntrusted     Reason = "Untrusted"
	ReasonUnconnected   Reason = "NoConnection"
	ReasonTimedOut      Reason = "TimedOut"
	ReasonThrottled     Reason = "Throttled"
	ReasonServerError   Reason = "ServerError"
	ReasonBackendDown   Reason = "BackendDown"
	ReasonContradiction Reason = "Contradiction"

	ReasonNoOperator   Reason = "NoOperator"
	ReasonOperatorDown Reason = "OperatorNotRunning"
	ReasonLeaseStale   Reason = "LeaseStale"
)

// A Verdict is the conclusion from the facts.
type Verdict struct {
	Outcome Outcome
	Reason  Reason
}

// A Step is a probe, or the verdict if no probe is needed.
type Step struct {
	Probe   Probe
	Verdict Verdict
}

func next(probe Probe) Step { return Step{Probe: probe} }

func conclude(outcome Outcome, reason Reason) Step {
	return Step{Verdict: Verdict{Outcome: outcome, Reason: reason}}
}

// Next returns the next step for the known facts. It returns each probe at most once.
func Next(setting Setting, f Facts) Step {
	if setting == Disabled {
		return conclude(Skipped, ReasonDisabled)
	}
	if f.Incomplete && f.Discovery == NotProbed {
		return next(ProbeDiscovery)
	}
	// A resource without a name cannot be listed. If discovery does not find it, it need not be listed.
	if f.Resource == NotProbed && (!f.Incomplete || f.Discovery == OK) {
		return next(ProbeResource)
	}
	switch f.Resource {
	case OK:
		return reconciled(f)
	case Unauthorized, Untrusted, Unconnected:
		// The discovery API is on the same server and would give the same answer.
		return unreachable(f, f.Resource)
	default:
	}
	if f.Discovery == NotProbed {
		return next(ProbeDiscovery)
	}
	return discovered(f)
}

// discovered returns the next step for an API that cannot be listed, by the answer of the discovery API.
func discovered(f Facts) Step {
	switch f.Discovery {
	case NoGroup:
		return conclude(NotInstalled, ReasonNoGroup)
	case NoVersion:
		return conclude(NotInstalled, ReasonNoVersion)
	case NoKind:
		return conclude(NotInstalled, ReasonNoKind)
	case OK:
		return served(f)
	case Denied:
		return undiscoverable(f)
	default:
	}
	// A failure of the resource itself is more specific than one of the discovery API. 403 and 404 prove nothing: the
	// API server refuses before it looks for a resource, and answers 404 for a resource that it is about to serve.
	if f.Resource == Denied || f.Resource == NotFound || f.Resource == NotProbed {
		return unreachable(f, f.Discovery)
	}
	return unreachable(f, f.Resource)
}

// served returns the next step for an API that is served and cannot be listed.
func served(f Facts) Step {
	switch f.Resource {
	case Denied:
		return forbidden(f, ReasonMayNotList)
	case NotFound:
		return conclude(Unreachable, ReasonContradiction)
	default:
		return unreachable(f, f.Resource)
	}
}

// undiscoverable returns the next step for a user who may not use the discovery API. A missing resource then
// does not prove that the API is not installed.
func undiscoverable(f Facts) Step {
	switch f.Resource {
	case Denied, NotFound, NotProbed:
		return forbidden(f, ReasonMayNotDiscover)
	default:
		return unreachable(f, f.Resource)
	}
}

func forbidden(f Facts, reason Reason) Step {
	if !f.UserProbed {
		return next(ProbeUser)
	}
	return conclude(Forbidden, reason)
}

// failures are the reasons for answers that do not depend on the API.
var failures = map[Answer]Reason{
	Unauthorized: ReasonUnauthorized, Untrusted: ReasonUntrusted, Unconnected: ReasonUnconnected,
	TimedOut: ReasonTimedOut, Throttled: ReasonThrottled, Broken: ReasonServerError, Unavailable: ReasonServerError,
}

func unreachable(f Facts, answer Answer) Step {
	if answer == Unavailable && f.Backend == BackendNotProbed {
		return next(ProbeBackend)
	}
	if answer == Unavailable && f.Backend == BackendDown {
		return conclude(Unreachable, ReasonBackendDown)
	}
	reason, ok := failures[answer]
	if !ok {
		reason = ReasonContradiction
	}
	return conclude(Unreachable, reason)
}

// reconciled returns the next step for an API that can be listed.
func reconciled(f Facts) Step {
	if !f.WithOperator {
		return conclude(Installed, ReasonServed)
	}
	switch f.Operator {
	case OperatorNotProbed:
		return next(ProbeOperator)
	case OperatorMissing:
		return conclude(Degraded, ReasonNoOperator)
	case OperatorDown:
		return conclude(Degraded, ReasonOperatorDown)
	case LeaseStale:
		return conclude(Degraded, ReasonLeaseStale)
	case OperatorRunning:
		return conclude(Installed, ReasonOperatorRunning)
	default:
		return conclude(Installed, ReasonOperatorUnknown)
	}
}
