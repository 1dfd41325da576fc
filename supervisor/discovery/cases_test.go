package discovery

// The possible answers to each question.
var (
	failing          = []Answer{Unauthorized, Throttled, Broken, Unavailable, TimedOut, Untrusted, Unconnected}
	resourceAnswers  = append([]Answer{OK, Denied, NotFound}, failing...)
	discoveryAnswers = append([]Answer{OK, NoGroup, NoVersion, NoKind, Denied}, failing...)
	backendAnswers   = []Backend{BackendDown, BackendUp, BackendUnknown}
	upkeepAnswers    = []Upkeep{Kept, KeeperMissing, KeeperDown, LeaseStale, KeeperUnknown}
)

// A situation is a case of the table in decisions.md: sets of answers that lead to the same verdict. A
// question without answers is not asked.
type situation struct {
	reason     string
	incomplete bool
	withKeeper bool
	resource   []Answer
	discovery  []Answer
	backend    []Backend
	upkeep     []Upkeep
	want       Verdict
	// say is a part of the message.
	say string
}

// situations are the table: each combination of answers belongs to exactly one of them.
var situations = []situation{
	{
		reason: "who may list has the best of proofs", resource: []Answer{OK},
		want: Verdict{Installed, ReasonServed}, say: "Widget.v1.example.com is installed",
	},
	{
		reason: "somebody looks after it", withKeeper: true, resource: []Answer{OK}, upkeep: []Upkeep{Kept},
		want: Verdict{Installed, ReasonKept}, say: "is installed, Deployment ops/widget-operator 1.2.3 looks after it",
	},
	{
		reason: "the API can be used; that its operator cannot be seen is said", withKeeper: true,
		resource: []Answer{OK}, upkeep: []Upkeep{KeeperUnknown},
		want: Verdict{Installed, ReasonKeeperUnknown}, say: "who looks after it is not known",
	},
	{
		reason: "definitions outlive their operator", withKeeper: true, resource: []Answer{OK}, upkeep: []Upkeep{KeeperMissing},
		want: Verdict{Degraded, ReasonNobody}, say: "nobody looks after it: Deployment ops/widget-operator does not exist; install the operator",
	},
	{
		reason: "what is created will lie there", withKeeper: true, resource: []Answer{OK}, upkeep: []Upkeep{KeeperDown},
		want: Verdict{Degraded, ReasonKeeperDown}, say: "Deployment ops/widget-operator 1.2.3 that looks after it does not run: 0 of 1 pods are available",
	},
	{
		reason: "a leader that renews no Lease does no work either", withKeeper: true, resource: []Answer{OK}, upkeep: []Upkeep{LeaseStale},
		want: Verdict{Degraded, ReasonLeaseStale}, say: "the holder widget-operator-7 of Lease ops/widgets that looks after it gives no sign of life: it was renewed 2h0m0s ago",
	},

	{
		reason: "the same server accepts no other request", resource: []Answer{Unauthorized},
		want: Verdict{Unreachable, ReasonUnauthorized}, say: "does not accept your credentials",
	},
	{
		reason: "nor with the same certificate", resource: []Answer{Untrusted},
		want: Verdict{Unreachable, ReasonUntrusted}, say: "TLS with the API server fails: ",
	},
	{
		reason: "nor at the same address", resource: []Answer{Unconnected},
		want: Verdict{Unreachable, ReasonUnconnected}, say: "there is no connection to the API server: ",
	},

	{
		reason:   "the discovery API decides, whatever the resource answered: 403, too, comes before 404",
		resource: []Answer{Denied, NotFound, Throttled, Broken, Unavailable, TimedOut}, discovery: []Answer{NoGroup},
		want: Verdict{NotInstalled, ReasonNoGroup}, say: "Widget.v1.example.com is not installed: the API server serves no group example.com; install",
	},
	{
		reason:   "the group is there at another version",
		resource: []Answer{Denied, NotFound, Throttled, Broken, Unavailable, TimedOut}, discovery: []Answer{NoVersion},
		want: Verdict{NotInstalled, ReasonNoVersion}, say: "the API server serves the kind at v1beta1, v1alpha1 only; ask for one of these",
	},
	{
		reason:   "the group is there without the kind",
		resource: []Answer{Denied, NotFound, Throttled, Broken, Unavailable, TimedOut}, discovery: []Answer{NoKind},
		want: Verdict{NotInstalled, ReasonNoKind}, say: "the API server serves the group example.com (v1), without this kind",
	},

	{
		reason: "it is there, and this user may not read it", resource: []Answer{Denied}, discovery: []Answer{OK},
		want: Verdict{Forbidden, ReasonMayNotList}, say: "is installed, and you may not list widgets.example.com",
	},
	{
		reason:   "who may not ask does not know: neither 403 nor 404 says that it is not installed",
		resource: []Answer{Denied, NotFound}, discovery: []Answer{Denied},
		want: Verdict{Forbidden, ReasonMayNotDiscover}, say: "whether Widget.v1.example.com is installed is not known: you may not ask the discovery API",
	},

	{
		reason: "it is coming or going", resource: []Answer{NotFound}, discovery: []Answer{OK},
		want: Verdict{Unreachable, ReasonContradiction}, say: "the discovery API lists it, and the API server does not find it",
	},
	{
		reason:   "too many requests say nothing of the API",
		resource: []Answer{Throttled}, discovery: append([]Answer{OK, Denied}, failing...),
		want: Verdict{Unreachable, ReasonThrottled}, say: "(429)",
	},
	{
		reason:   "an API that fails may be used again later",
		resource: []Answer{Broken}, discovery: append([]Answer{OK, Denied}, failing...),
		want: Verdict{Unreachable, ReasonServerError}, say: "the API server fails: ",
	},
	{
		reason:   "no answer is no answer",
		resource: []Answer{TimedOut}, discovery: append([]Answer{OK, Denied}, failing...),
		want: Verdict{Unreachable, ReasonTimedOut}, say: "no answer came in time: ",
	},
	{
		reason:   "the server of an aggregated API is down",
		resource: []Answer{Unavailable}, discovery: append([]Answer{OK, Denied}, failing...), backend: []Backend{BackendDown},
		want: Verdict{Unreachable, ReasonBackendDown},
		say:  "the server behind the APIService v1.example.com is not available: Service ops/widgets: no endpoints",
	},
	{
		reason:   "the API server itself, or something before it, is not available",
		resource: []Answer{Unavailable}, discovery: append([]Answer{OK, Denied}, failing...), backend: []Backend{BackendUp, BackendUnknown},
		want: Verdict{Unreachable, ReasonServerError}, say: "the API server fails: ",
	},
	{
		reason:   "the discovery API cannot tell the server of the group either",
		resource: []Answer{Denied, NotFound}, discovery: []Answer{Unavailable}, backend: []Backend{BackendDown},
		want: Verdict{Unreachable, ReasonBackendDown}, say: "APIService v1.example.com is not available",
	},
	{
		reason:   "403 and 404 without the discovery API say nothing",
		resource: []Answer{Denied, NotFound}, discovery: []Answer{Unavailable}, backend: []Backend{BackendUp, BackendUnknown},
		want: Verdict{Unreachable, ReasonServerError}, say: "the API server fails",
	},
	{
		reason:   "the credentials have just expired",
		resource: []Answer{Denied, NotFound}, discovery: []Answer{Unauthorized},
		want: Verdict{Unreachable, ReasonUnauthorized}, say: "does not accept your credentials",
	},
	{
		reason:   "whoever is turned away knows nothing",
		resource: []Answer{Denied, NotFound}, discovery: []Answer{Throttled},
		want: Verdict{Unreachable, ReasonThrottled}, say: "(429)",
	},
	{
		reason:   "the discovery API fails",
		resource: []Answer{Denied, NotFound}, discovery: []Answer{Broken},
		want: Verdict{Unreachable, ReasonServerError}, say: "the API server fails",
	},
	{
		reason:   "the discovery API does not answer",
		resource: []Answer{Denied, NotFound}, discovery: []Answer{TimedOut},
		want: Verdict{Unreachable, ReasonTimedOut}, say: "no answer came in time",
	},
	{
		reason:   "another of the API servers has another certificate",
		resource: []Answer{Denied, NotFound}, discovery: []Answer{Untrusted},
		want: Verdict{Unreachable, ReasonUntrusted}, say: "TLS with the API server fails",
	},
	{
		reason:   "the API server has gone away meanwhile",
		resource: []Answer{Denied, NotFound}, discovery: []Answer{Unconnected},
		want: Verdict{Unreachable, ReasonUnconnected}, say: "there is no connection to the API server",
	},

	{
		reason: "what is looked up and found can be listed", incomplete: true, discovery: []Answer{OK}, resource: []Answer{OK},
		want: Verdict{Installed, ReasonServed}, say: "Widget.v1.example.com is installed",
	},
	{
		reason: "or not", incomplete: true, discovery: []Answer{OK}, resource: []Answer{Denied},
		want: Verdict{Forbidden, ReasonMayNotList}, say: "you may not list widgets.example.com",
	},
	{
		reason: "it went, or is coming", incomplete: true, discovery: []Answer{OK}, resource: []Answer{NotFound},
		want: Verdict{Unreachable, ReasonContradiction}, say: "the discovery API lists it",
	},
	{
		reason: "the credentials have just expired", incomplete: true, discovery: []Answer{OK}, resource: []Answer{Unauthorized},
		want: Verdict{Unreachable, ReasonUnauthorized}, say: "credentials",
	},
	{
		reason: "there are too many requests by now", incomplete: true, discovery: []Answer{OK}, resource: []Answer{Throttled},
		want: Verdict{Unreachable, ReasonThrottled}, say: "(429)",
	},
	{
		reason: "the kind's storage or its conversion fails", incomplete: true, discovery: []Answer{OK}, resource: []Answer{Broken},
		want: Verdict{Unreachable, ReasonServerError}, say: "conversion webhook",
	},
	{
		reason: "the server of an aggregated API answers for its documents alone", incomplete: true,
		discovery: []Answer{OK}, resource: []Answer{Unavailable}, backend: []Backend{BackendDown},
		want: Verdict{Unreachable, ReasonBackendDown}, say: "APIService v1.example.com",
	},
	{
		reason: "the API server is about to end", incomplete: true,
		discovery: []Answer{OK}, resource: []Answer{Unavailable}, backend: []Backend{BackendUp, BackendUnknown},
		want: Verdict{Unreachable, ReasonServerError}, say: "the API server fails",
	},
	{
		reason: "listing takes too long", incomplete: true, discovery: []Answer{OK}, resource: []Answer{TimedOut},
		want: Verdict{Unreachable, ReasonTimedOut}, say: "in time",
	},
	{
		reason: "another of the API servers has another certificate", incomplete: true, discovery: []Answer{OK}, resource: []Answer{Untrusted},
		want: Verdict{Unreachable, ReasonUntrusted}, say: "TLS",
	},
	{
		reason: "the API server has gone away meanwhile", incomplete: true, discovery: []Answer{OK}, resource: []Answer{Unconnected},
		want: Verdict{Unreachable, ReasonUnconnected}, say: "no connection",
	},
	{
		reason: "what is not served need not be listed", incomplete: true, discovery: []Answer{NoGroup},
		want: Verdict{NotInstalled, ReasonNoGroup}, say: "serves no group example.com",
	},
	{
		reason: "nor what is served at other versions", incomplete: true, discovery: []Answer{NoVersion},
		want: Verdict{NotInstalled, ReasonNoVersion}, say: "v1beta1, v1alpha1",
	},
	{
		reason: "nor another kind of the group", incomplete: true, discovery: []Answer{NoKind},
		want: Verdict{NotInstalled, ReasonNoKind}, say: "without this kind",
	},
	{
		reason: "what cannot be looked up is not known to be missing", incomplete: true, discovery: []Answer{Denied},
		want: Verdict{Forbidden, ReasonMayNotDiscover}, say: "you may not ask the discovery API",
	},
	{
		reason: "nobody looks it up without credentials", incomplete: true, discovery: []Answer{Unauthorized},
		want: Verdict{Unreachable, ReasonUnauthorized}, say: "credentials",
	},
	{
		reason: "nor when there are too many requests", incomplete: true, discovery: []Answer{Throttled},
		want: Verdict{Unreachable, ReasonThrottled}, say: "(429)",
	},
	{
		reason: "nor when the discovery API fails", incomplete: true, discovery: []Answer{Broken},
		want: Verdict{Unreachable, ReasonServerError}, say: "the API server fails",
	},
	{
		reason: "the documents of an aggregated API are at its own server", incomplete: true,
		discovery: []Answer{Unavailable}, backend: []Backend{BackendDown},
		want: Verdict{Unreachable, ReasonBackendDown}, say: "APIService v1.example.com",
	},
	{
		reason: "the API server is not ready", incomplete: true,
		discovery: []Answer{Unavailable}, backend: []Backend{BackendUp, BackendUnknown},
		want: Verdict{Unreachable, ReasonServerError}, say: "the API server fails",
	},
	{
		reason: "nor in time", incomplete: true, discovery: []Answer{TimedOut},
		want: Verdict{Unreachable, ReasonTimedOut}, say: "in time",
	},
	{
		reason: "nor from somebody else", incomplete: true, discovery: []Answer{Untrusted},
		want: Verdict{Unreachable, ReasonUntrusted}, say: "TLS",
	},
	{
		reason: "nor from nobody", incomplete: true, discovery: []Answer{Unconnected},
		want: Verdict{Unreachable, ReasonUnconnected}, say: "no connection",
	},
}
