package discovery

// A Question is what is to be asked next.
type Question string

// The questions, in the order in which they are asked.
const (
	// AskNothing comes with a verdict.
	AskNothing Question = ""
	// AskDiscovery asks the discovery API for the exact group, version and kind.
	AskDiscovery Question = "discovery"
	// AskResource lists at most one object.
	AskResource Question = "resource"
	// AskBackend asks for the APIService, which knows whether the server of an
	// aggregated API is available.
	AskBackend Question = "APIService"
	// AskKeeper asks who reconciles the kind.
	AskKeeper Question = "keeper"
	// AskUser asks who one is, for the rights that are missing.
	AskUser Question = "user"
)

// An Answer is how a question was answered, or not.
type Answer string

// The answers. The first ones are of any request, NotFound of listing objects, the rest
// of the discovery API: it tells what exactly is missing.
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
	// Broken is any other error of the server: 5xx, or what nobody expects.
	Broken Answer = "5xx"
	// Unavailable is 503, which is also what the API server says when it cannot reach
	// the server of an aggregated API.
	Unavailable Answer = "503"
	// TimedOut is no answer in time.
	TimedOut Answer = "timeout"
	// Untrusted is a TLS connection that did not come about.
	Untrusted Answer = "TLS error"
	// Unconnected is no connection: refused, no route, no such host.
	Unconnected Answer = "no connection"
	// NotFound is 404 of the resource.
	NotFound Answer = "404"
	// NoKind says that the group is served, without the kind.
	NoKind Answer = "404 kind"
	// NoVersion says that the kind is served, at other versions.
	NoVersion Answer = "404 version"
	// NoGroup says that the group is not served.
	NoGroup Answer = "404 group"
)

// A Backend is what the APIService says of the server of an API.
type Backend string

// The states of a backend.
const (
	// BackendUnasked is the zero Backend.
	BackendUnasked Backend = ""
	// BackendDown says that the APIService is not available.
	BackendDown Backend = "down"
	// BackendUp says that it is, or that the API is the API server's own.
	BackendUp Backend = "up"
	// BackendUnknown says that the APIService could not be read.
	BackendUnknown Backend = "unknown"
)

// An Upkeep is whether somebody looks after a kind.
type Upkeep string

// The states of upkeep.
const (
	// UpkeepUnasked is the zero Upkeep.
	UpkeepUnasked Upkeep = ""
	// Kept says that somebody does.
	Kept Upkeep = "kept"
	// KeeperMissing says that there is nobody.
	KeeperMissing Upkeep = "nobody"
	// KeeperDown says that the operator is there and does not run.
	KeeperDown Upkeep = "not running"
	// LeaseStale says that its leader has not renewed the Lease in time.
	LeaseStale Upkeep = "stale Lease"
	// KeeperUnknown says that it could not be found out.
	KeeperUnknown Upkeep = "unknown"
)

// Facts are what is known so far. The zero Facts know nothing.
type Facts struct {
	// Incomplete says that the resource's name or version has to be looked up.
	Incomplete bool
	// WithKeeper says that it matters who reconciles the kind.
	WithKeeper bool
	// Resource is the answer to listing one object, Discovery that of the discovery API.
	Resource, Discovery Answer
	// Backend is what the APIService says.
	Backend Backend
	// Upkeep is whether somebody looks after the kind.
	Upkeep Upkeep
	// UserAsked says that it was asked who one is.
	UserAsked bool
}

// An Outcome is one of the results that callers tell apart.
type Outcome string

// The outcomes.
const (
	// Skipped is that of a disabled API, of which nothing is known.
	Skipped Outcome = "Disabled"
	// Installed says that the API can be used.
	Installed Outcome = "Installed"
	// NotInstalled says that it is not there. The discovery API has said so.
	NotInstalled Outcome = "NotInstalled"
	// Forbidden says that it may not be read, or that one may not even ask for it.
	Forbidden Outcome = "Forbidden"
	// Unreachable says that nobody who could know has answered.
	Unreachable Outcome = "Unreachable"
	// Degraded says that the API is there and nobody looks after it.
	Degraded Outcome = "Degraded"
)

// A Reason says in one word why an outcome is what it is.
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

// A Verdict is what the facts lead to.
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

// Next leads from what is known to the next step. Whoever answers each question that it
// asks comes to a verdict, after six at most.
func Next(setting Setting, f Facts) Step {
	if setting == Disabled {
		return conclude(Skipped, ReasonDisabled)
	}
	if f.Incomplete && f.Discovery == Unasked {
		return ask(AskDiscovery)
	}
	// What has no name cannot be listed, and need not be when it is not served.
	if f.Resource == Unasked && (!f.Incomplete || f.Discovery == OK) {
		return ask(AskResource)
	}
	switch f.Resource {
	case OK:
		return upkeep(f)
	case Unauthorized, Untrusted, Unconnected:
		// The discovery API is on the same server and has the same to say.
		return unreachable(f, f.Resource)
	default:
	}
	if f.Discovery == Unasked {
		return ask(AskDiscovery)
	}
	return discovered(f)
}

// discovered concludes from what the discovery API says of an API that cannot be listed.
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
	// A failure of the resource itself says more than one of the discovery API. 403 and
	// 404 say nothing yet: the API server refuses before it looks, and answers 404 for
	// what it is about to serve.
	if f.Resource == Denied || f.Resource == NotFound || f.Resource == Unasked {
		return unreachable(f, f.Discovery)
	}
	return unreachable(f, f.Resource)
}

// served concludes for an API that is there and cannot be listed.
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

// undiscoverable concludes for whoever may not use the discovery API. That a resource is
// not found does not say, then, that it is not installed.
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

// failures are the reasons of answers that say nothing of the API.
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

// upkeep concludes for an API that can be listed.
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
