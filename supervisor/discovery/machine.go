package discovery

// A Question is the next question to ask.
type Question string

// The questions, in the order in which they are asked.
const (
	// AskNothing means that the step has a verdict.
	AskNothing Question = ""
	// AskDiscovery asks the discovery API for the exact group, version and kind.
	AskDiscovery Question = "discovery"
	// AskResource lists at most one object.
	AskResource Question = "resource"
	// AskBackend asks for the APIService, which shows whether the server of an aggregated API is available.
	AskBackend Question = "APIService"
	// AskKeeper asks who reconciles the kind.
	AskKeeper Question = "keeper"
	// AskUser asks for the name of the user, for the missing permissions.
	AskUser Question = "user"
)

// An Answer is the result of a question.
type Answer string

// The answers. The first ones may follow any request, and NotFound a list of objects. The others follow a
// request to the discovery API, and specify what is missing.
const (
	// Unasked is the zero Answer.
	Unasked Answer = ""
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
	// BackendUnasked is the zero Backend.
	BackendUnasked Backend = ""
	// BackendDown means that the APIService is not available.
	BackendDown Backend = "down"
	// BackendUp means that the APIService is available, or that the API server itself serves the API.
	BackendUp Backend = "up"
	// BackendUnknown means that the APIService could not be read.
	BackendUnknown Backend = "unknown"
)

// An Upkeep is the state of the operator that reconciles a kind.
type Upkeep string

// The states of upkeep.
const (
	// UpkeepUnasked is the zero Upkeep.
	UpkeepUnasked Upkeep = ""
	// Kept means that an operator reconciles the kind.
	Kept Upkeep = "kept"
	// KeeperMissing means that there is no operator.
	KeeperMissing Upkeep = "nobody"
	// KeeperDown means that the operator is installed and does not run.
	KeeperDown Upkeep = "not running"
	// LeaseStale means that the leader of the operator has not renewed the Lease in time.
	LeaseStale Upkeep = "stale Lease"
	// KeeperUnknown means that the state could not be determined.
	KeeperUnknown Upkeep = "unknown"
)

// Facts are the answers so far. The zero Facts hold no answer.
type Facts struct {
	// Incomplete is true if the resource's name or version must be looked up.
	Incomplete bool
	// WithKeeper is true if the check includes who reconciles the kind.
	WithKeeper bool
	// Resource is the answer to listing one object, Discovery the answer of the discovery API.
	Resource, Discovery Answer
	// Backend is the answer from the APIService.
	Backend Backend
	// Upkeep is the answer about the operator.
	Upkeep Upkeep
	// UserAsked is true after the question for the name of the user.
	UserAsked bool
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

	ReasonServed        Reason = "Served"
	ReasonKept          Reason = "Kept"
	ReasonKeeperUnknown Reason = "KeeperUnknown"

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

	ReasonNobody     Reason = "NobodyReconciles"
	ReasonKeeperDown Reason = "OperatorNotRunning"
	ReasonLeaseStale Reason = "LeaseStale"
)

// A Verdict is the conclusion from the facts.
type Verdict struct {
	Outcome Outcome
	Reason  Reason
}

// A Step is a question, or, without one, the verdict.
type Step struct {
	Ask     Question
	Verdict Verdict
}

func ask(question Question) Step { return Step{Ask: question} }

func conclude(outcome Outcome, reason Reason) Step {
	return Step{Verdict: Verdict{Outcome: outcome, Reason: reason}}
}

// Next returns the next step for the known facts. A caller that answers each question gets a verdict after at
// most six.
func Next(setting Setting, f Facts) Step {
	if setting == Disabled {
		return conclude(Skipped, ReasonDisabled)
	}
	if f.Incomplete && f.Discovery == Unasked {
		return ask(AskDiscovery)
	}
	// A resource without a name cannot be listed. If discovery does not find it, it need not be listed.
	if f.Resource == Unasked && (!f.Incomplete || f.Discovery == OK) {
		return ask(AskResource)
	}
	switch f.Resource {
	case OK:
		return upkeep(f)
	case Unauthorized, Untrusted, Unconnected:
		// The discovery API is on the same server and would give the same answer.
		return unreachable(f, f.Resource)
	default:
	}
	if f.Discovery == Unasked {
		return ask(AskDiscovery)
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
	if f.Resource == Denied || f.Resource == NotFound || f.Resource == Unasked {
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
	case Denied, NotFound, Unasked:
		return forbidden(f, ReasonMayNotDiscover)
	default:
		return unreachable(f, f.Resource)
	}
}

func forbidden(f Facts, reason Reason) Step {
	if !f.UserAsked {
		return ask(AskUser)
	}
	return conclude(Forbidden, reason)
}

// failures are the reasons for answers that do not depend on the API.
var failures = map[Answer]Reason{
	Unauthorized: ReasonUnauthorized, Untrusted: ReasonUntrusted, Unconnected: ReasonUnconnected,
	TimedOut: ReasonTimedOut, Throttled: ReasonThrottled, Broken: ReasonServerError, Unavailable: ReasonServerError,
}

func unreachable(f Facts, answer Answer) Step {
	if answer == Unavailable && f.Backend == BackendUnasked {
		return ask(AskBackend)
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

// upkeep returns the next step for an API that can be listed.
func upkeep(f Facts) Step {
	if !f.WithKeeper {
		return conclude(Installed, ReasonServed)
	}
	switch f.Upkeep {
	case UpkeepUnasked:
		return ask(AskKeeper)
	case KeeperMissing:
		return conclude(Degraded, ReasonNobody)
	case KeeperDown:
		return conclude(Degraded, ReasonKeeperDown)
	case LeaseStale:
		return conclude(Degraded, ReasonLeaseStale)
	case Kept:
		return conclude(Installed, ReasonKept)
	default:
		return conclude(Installed, ReasonKeeperUnknown)
	}
}
