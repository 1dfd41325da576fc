package discovery

// The possible answers to each probe.
var (
	failing          = []Answer{Unauthorized, Throttled, Broken, Unavailable, TimedOut, Untrusted, Unconnected}
	resourceAnswers  = append([]Answer{OK, Denied, NotFound}, failing...)
	discoveryAnswers = append([]Answer{OK, NoGroup, NoVersion, NoKind, Denied}, failing...)
	backendAnswers   = []Backend{BackendDown, BackendUp, BackendUnknown}
	operatorStates   = []OperatorState{OperatorRunning, OperatorMissing, OperatorDown, LeaseStale, OperatorUnknown}
)

// A situation is a case of the table in decisions.md: sets of answers that lead to the same verdict. A
// probe without answers is not sent.
type situation struct {
	reason       string
	incomplete   bool
	withOperator bool
	resource     []Answer
	discovery    []Answer
	backend      []Backend
	operator     []OperatorState
	want         Verdict
	// say is a part of the message.
	say string
}

// situations are the table: each combination of answers belongs to exactly one of them.
var situations = []situation{
	{
		reason: "a successful list proves that the API can be used", resource: []Answer{OK},
		want: Verdict{Installed, ReasonServed}, say: "Widget.v1.example.com is installed",
	},
	{
		reason: "its operator runs", withOperator: true, resource: []Answer{OK}, operator: []OperatorState{OperatorRunning},
		want: Verdict{Installed, ReasonOperatorRunning}, say: "is installed, and its operator runs: Deployment ops/widget-operator 1.2.3",
	},
	{
		reason: "the API can be used, and the message states that its operator is unknown", withOperator: true,
		resource: []Answer{OK}, operator: []OperatorState{OperatorUnknown},
		want: Verdict{Installed, ReasonOperatorUnknown}, say: "the state of its operator is unknown",
	},
	{
		reason: "a CustomResourceDefinition stays when its operator is deleted", withOperator: true, resource: []Answer{OK}, operator: []OperatorState{OperatorMissing},
		want: Verdict{Degraded, ReasonNoOperator}, say: "no operator reconciles it: Deployment ops/widget-operator does not exist; install the operator",
	},
	{
		reason: "objects are not reconciled while the operator does not run", withOperator: true, resource: []Answer{OK}, operator: []OperatorState{OperatorDown},
		want: Verdict{Degraded, ReasonOperatorDown}, say: "its operator does not run: Deployment ops/widget-operator 1.2.3: 0 of 1 pods are available",
	},
	{
		reason: "a leader that does not renew its Lease does not reconcile", withOperator: true, resource: []Answer{OK}, operator: []OperatorState{LeaseStale},
		want: Verdict{Degraded, ReasonLeaseStale}, say: "the leader of its operator does not renew Lease ops/widgets (holder widget-operator-7): it was renewed 2h0m0s ago",
	},

	{
		reason: "the discovery API is on the same server, with the same credentials", resource: []Answer{Unauthorized},
		want: Verdict{Unreachable, ReasonUnauthorized}, say: "rejects your credentials",
	},
	{
		reason: "the discovery API is on the same server, with the same certificate", resource: []Answer{Untrusted},
		want: Verdict{Unreachable, ReasonUntrusted}, say: "TLS with the API server fails: ",
	},
	{
		reason: "the discovery API is on the same server, at the same address", resource: []Answer{Unconnected},
		want: Verdict{Unreachable, ReasonUnconnected}, say: "there is no connection to the API server: ",
	},

	{
		reason:   "only the discovery API proves that an API is missing; a 403 for the resource proves nothing",
		resource: []Answer{Denied, NotFound, Throttled, Broken, Unavailable, TimedOut}, discovery: []Answer{NoGroup},
		want: Verdict{NotInstalled, ReasonNoGroup}, say: "Widget.v1.example.com is not installed: the API server does not serve the group example.com; install",
	},
	{
		reason:   "the group is served at other versions",
		resource: []Answer{Denied, NotFound, Throttled, Broken, Unavailable, TimedOut}, discovery: []Answer{NoVersion},
		want: Verdict{NotInstalled, ReasonNoVersion}, say: "the API server serves the kind only at v1beta1, v1alpha1; use one of these",
	},
	{
		reason:   "the group is served without the kind",
		resource: []Answer{Denied, NotFound, Throttled, Broken, Unavailable, TimedOut}, discovery: []Answer{NoKind},
		want: Verdict{NotInstalled, ReasonNoKind}, say: "the API server serves the group example.com (v1) without this kind",
	},

	{
		reason: "the API exists, but the user may not list it", resource: []Answer{Denied}, discovery: []Answer{OK},
		want: Verdict{Forbidden, ReasonMayNotList}, say: "is installed, but you lack permission to list widgets.example.com",
	},
	{
		reason:   "without the discovery API, neither 403 nor 404 proves that the API is missing",
		resource: []Answer{Denied, NotFound}, discovery: []Answer{Denied},
		want: Verdict{Forbidden, ReasonMayNotDiscover}, say: "cannot check whether Widget.v1.example.com is installed: you lack permission to use the discovery API",
	},

	{
		reason: "the CustomResourceDefinition is being installed or removed", resource: []Answer{NotFound}, discovery: []Answer{OK},
		want: Verdict{Unreachable, ReasonContradiction}, say: "the discovery API lists it, but the API server does not find it",
	},
	{
		reason:   "429 says nothing about the API",
		resource: []Answer{Throttled}, discovery: append([]Answer{OK, Denied}, failing...),
		want: Verdict{Unreachable, ReasonThrottled}, say: "(429)",
	},
	{
		reason:   "a server error may be temporary",
		resource: []Answer{Broken}, discovery: append([]Answer{OK, Denied}, failing...),
		want: Verdict{Unreachable, ReasonServerError}, say: "the API server fails: ",
	},
	{
		reason:   "a timeout says nothing about the API",
		resource: []Answer{TimedOut}, discovery: append([]Answer{OK, Denied}, failing...),
		want: Verdict{Unreachable, ReasonTimedOut}, say: "did not answer in time: ",
	},
	{
		reason:   "the server of the aggregated API is down",
		resource: []Answer{Unavailable}, discovery: append([]Answer{OK, Denied}, failing...), backend: []Backend{BackendDown},
		want: Verdict{Unreachable, ReasonBackendDown},
		say:  "the server of APIService v1.example.com is not available: Service ops/widgets: no endpoints",
	},
	{
		reason:   "the API server itself, or a proxy before it, is not available",
		resource: []Answer{Unavailable}, discovery: append([]Answer{OK, Denied}, failing...), backend: []Backend{BackendUp, BackendUnknown},
		want: Verdict{Unreachable, ReasonServerError}, say: "the API server fails: ",
	},
	{
		reason:   "the server of the aggregated API also serves its discovery document",
		resource: []Answer{Denied, NotFound}, discovery: []Answer{Unavailable}, backend: []Backend{BackendDown},
		want: Verdict{Unreachable, ReasonBackendDown}, say: "APIService v1.example.com is not available",
	},
	{
		reason:   "without the discovery API, 403 and 404 prove nothing",
		resource: []Answer{Denied, NotFound}, discovery: []Answer{Unavailable}, backend: []Backend{BackendUp, BackendUnknown},
		want: Verdict{Unreachable, ReasonServerError}, say: "the API server fails",
	},
	{
		reason:   "the credentials have just expired",
		resource: []Answer{Denied, NotFound}, discovery: []Answer{Unauthorized},
		want: Verdict{Unreachable, ReasonUnauthorized}, say: "rejects your credentials",
	},
	{
		reason:   "429 from the discovery API says nothing about the API",
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
		want: Verdict{Unreachable, ReasonTimedOut}, say: "did not answer in time",
	},
	{
		reason:   "another API server has another certificate",
		resource: []Answer{Denied, NotFound}, discovery: []Answer{Untrusted},
		want: Verdict{Unreachable, ReasonUntrusted}, say: "TLS with the API server fails",
	},
	{
		reason:   "the connection to the API server is lost during the check",
		resource: []Answer{Denied, NotFound}, discovery: []Answer{Unconnected},
		want: Verdict{Unreachable, ReasonUnconnected}, say: "there is no connection to the API server",
	},

	{
		reason: "the discovery API completes the target, and the list succeeds", incomplete: true, discovery: []Answer{OK}, resource: []Answer{OK},
		want: Verdict{Installed, ReasonServed}, say: "Widget.v1.example.com is installed",
	},
	{
		reason: "the discovery API completes the target, but the user may not list it", incomplete: true, discovery: []Answer{OK}, resource: []Answer{Denied},
		want: Verdict{Forbidden, ReasonMayNotList}, say: "you lack permission to list widgets.example.com",
	},
	{
		reason: "the CustomResourceDefinition is being installed or removed", incomplete: true, discovery: []Answer{OK}, resource: []Answer{NotFound},
		want: Verdict{Unreachable, ReasonContradiction}, say: "the discovery API lists it",
	},
	{
		reason: "the credentials have just expired", incomplete: true, discovery: []Answer{OK}, resource: []Answer{Unauthorized},
		want: Verdict{Unreachable, ReasonUnauthorized}, say: "credentials",
	},
	{
		reason: "429 says nothing about the API", incomplete: true, discovery: []Answer{OK}, resource: []Answer{Throttled},
		want: Verdict{Unreachable, ReasonThrottled}, say: "(429)",
	},
	{
		reason: "the storage of the kind or its conversion fails", incomplete: true, discovery: []Answer{OK}, resource: []Answer{Broken},
		want: Verdict{Unreachable, ReasonServerError}, say: "conversion webhook",
	},
	{
		reason: "the server of the aggregated API serves only its discovery document", incomplete: true,
		discovery: []Answer{OK}, resource: []Answer{Unavailable}, backend: []Backend{BackendDown},
		want: Verdict{Unreachable, ReasonBackendDown}, say: "APIService v1.example.com",
	},
	{
		reason: "the API server is shutting down", incomplete: true,
		discovery: []Answer{OK}, resource: []Answer{Unavailable}, backend: []Backend{BackendUp, BackendUnknown},
		want: Verdict{Unreachable, ReasonServerError}, say: "the API server fails",
	},
	{
		reason: "the list takes too long", incomplete: true, discovery: []Answer{OK}, resource: []Answer{TimedOut},
		want: Verdict{Unreachable, ReasonTimedOut}, say: "in time",
	},
	{
		reason: "another API server has another certificate", incomplete: true, discovery: []Answer{OK}, resource: []Answer{Untrusted},
		want: Verdict{Unreachable, ReasonUntrusted}, say: "TLS",
	},
	{
		reason: "the connection to the API server is lost during the check", incomplete: true, discovery: []Answer{OK}, resource: []Answer{Unconnected},
		want: Verdict{Unreachable, ReasonUnconnected}, say: "no connection",
	},
	{
		reason: "a group that is not served cannot be listed", incomplete: true, discovery: []Answer{NoGroup},
		want: Verdict{NotInstalled, ReasonNoGroup}, say: "does not serve the group example.com",
	},
	{
		reason: "a version that is not served cannot be listed", incomplete: true, discovery: []Answer{NoVersion},
		want: Verdict{NotInstalled, ReasonNoVersion}, say: "v1beta1, v1alpha1",
	},
	{
		reason: "a kind that is not served cannot be listed", incomplete: true, discovery: []Answer{NoKind},
		want: Verdict{NotInstalled, ReasonNoKind}, say: "without this kind",
	},
	{
		reason: "without the discovery API, the target cannot be completed", incomplete: true, discovery: []Answer{Denied},
		want: Verdict{Forbidden, ReasonMayNotDiscover}, say: "you lack permission to use the discovery API",
	},
	{
		reason: "the discovery API rejects the credentials", incomplete: true, discovery: []Answer{Unauthorized},
		want: Verdict{Unreachable, ReasonUnauthorized}, say: "credentials",
	},
	{
		reason: "429 from the discovery API says nothing about the API", incomplete: true, discovery: []Answer{Throttled},
		want: Verdict{Unreachable, ReasonThrottled}, say: "(429)",
	},
	{
		reason: "the discovery API fails", incomplete: true, discovery: []Answer{Broken},
		want: Verdict{Unreachable, ReasonServerError}, say: "the API server fails",
	},
	{
		reason: "the server of the aggregated API serves its discovery document", incomplete: true,
		discovery: []Answer{Unavailable}, backend: []Backend{BackendDown},
		want: Verdict{Unreachable, ReasonBackendDown}, say: "APIService v1.example.com",
	},
	{
		reason: "the API server is not ready", incomplete: true,
		discovery: []Answer{Unavailable}, backend: []Backend{BackendUp, BackendUnknown},
		want: Verdict{Unreachable, ReasonServerError}, say: "the API server fails",
	},
	{
		reason: "the discovery API does not answer in time", incomplete: true, discovery: []Answer{TimedOut},
		want: Verdict{Unreachable, ReasonTimedOut}, say: "in time",
	},
	{
		reason: "the certificate of the server is not trusted", incomplete: true, discovery: []Answer{Untrusted},
		want: Verdict{Unreachable, ReasonUntrusted}, say: "TLS",
	},
	{
		reason: "there is no connection", incomplete: true, discovery: []Answer{Unconnected},
		want: Verdict{Unreachable, ReasonUnconnected}, say: "no connection",
	},
}
