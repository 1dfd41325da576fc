package failover

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/replicas"
)

// Observation is everything that Decide goes by.
type Observation struct {
	Now time.Time
	// Standing is what this process may do.
	Standing Standing
	Catalogs []Catalog
	// Nodes are those of the cluster by name. A node that was looked for and does
	// not exist is Gone; of one that is missing here nothing is known.
	Nodes map[string]Node
	// Marks are the marks that this process has set, by the pod's UID.
	Marks map[types.UID]Mark
	// Attempts are what this process has tried and what is still to be seen.
	Attempts map[Target]Attempt
	// Budget is what Decide left of it the last time.
	Budget Budget
	Limits Limits
}

// Catalog is a CatalogSource and the pods that serve it.
type Catalog struct {
	Key      types.NamespacedName
	Replicas []Replica
}

// Replica is a pod that serves a catalog.
type Replica struct {
	Name  string
	UID   types.UID
	Node  string
	Phase corev1.PodPhase
	// Ready is whether the API says that the pod is ready.
	Ready bool
	// Marked is since when it is not ready because of our mark; zero when that is
	// not so.
	Marked time.Time
	// Terminating is a pod that is being deleted.
	Terminating bool
	// Disrupted is since when somebody has announced to delete it; zero when
	// nobody has.
	Disrupted time.Time

	// Health is what the replica answers us, and Since since when. Health is
	// Unknown of a pod that is not asked, since this process began to ask.
	Health replicas.Health
	Since  time.Time
	// Answered is true when it has answered this process since it is asked, and Confirmed
	// when it has left enough questions unanswered since it became ready.
	Answered, Confirmed bool
}

// answers says whether clients of the Service that are led to the replica get an
// answer.
func (r Replica) answers() bool {
	return r.Health == replicas.Serving && r.Ready && !r.Terminating
}

// silent reports whether clients of the Service are led to the replica and get no
// answer. One that is starting is not silent: it has not answered once, or has not been
// asked often enough since it became ready.
func (r Replica) silent() bool {
	return r.Health == replicas.Unreachable && r.Answered && r.Confirmed && r.Ready && !r.Terminating
}

// useful says whether the replica answers us, be it or not that clients of the
// Service are led to it.
func (r Replica) useful() bool {
	return r.Health == replicas.Serving && r.Phase != corev1.PodFailed
}

// worth orders replicas by what they are to the clients of the Service.
func (r Replica) worth() int {
	switch {
	case r.Terminating:
		return 0
	case !r.Ready:
		return 1
	default:
		return 2
	}
}

// Node is a node of the cluster.
type Node struct {
	// Zone is its region and zone.
	Zone string
	// Ready is its condition, and Since since when.
	Ready corev1.ConditionStatus
	Since time.Time
	// Renewed is when the Lease of its kubelet was last seen to be another one than
	// before, or seen first, by our own clock: that of the node may be wrong. Zero
	// when it is not known.
	Renewed time.Time
	// Gone is a node that does not exist.
	Gone bool
}

// stale says whether the kubelet of a node has missed to renew its Lease.
func (n Node) stale(now time.Time) bool {
	return !n.Renewed.IsZero() && now.Sub(n.Renewed) > leaseStale
}

// Mark is what this process did to a replica that did not answer.
type Mark struct {
	// Silence is when the replica ceased to answer; another silence is marked
	// anew.
	Silence time.Time
	// Count is how often it was marked since, and Last when for the last time.
	Count int
	Last  time.Time
}

// Target is an action on a pod.
type Target struct {
	UID  types.UID
	Verb Verb
}

// Attempt is the outcome of an action that is not seen to have had its effect.
type Attempt struct {
	Catalog types.NamespacedName
	// Last is when it was tried last.
	Last time.Time
	// Refusals is how often in a row it failed.
	Refusals int
}

// pause is how long to wait before it is tried again. What the API has accepted is
// not soon: a pod with a finalizer stays until somebody takes that away.
func (a Attempt) pause() time.Duration {
	pause := longestPause
	if a.Refusals > 0 {
		pause = firstPause
	}
	for range a.Refusals - 1 {
		pause = min(2*pause, longestPause)
	}
	return pause
}

// Limits bound how fast pods are touched.
type Limits struct {
	// Rate is how many a second, and Burst how many at once after a rest.
	Rate  float64
	Burst int
}

// Decision is what to do.
type Decision struct {
	Actions []Action
	// Held counts what would be done but for what holds it up.
	Held map[Hold]int
	// Budget is what is left of it.
	Budget Budget
	// Wake is when to decide again though nothing else changes; zero for never.
	Wake time.Duration
}

// Verb is a kind of action.
type Verb string

// The verbs.
const (
	// MarkNotReady sets the pod's condition Ready to False.
	MarkNotReady Verb = "mark"
	// MarkReady takes that back.
	MarkReady Verb = "unmark"
	// Delete deletes the pod without grace.
	Delete Verb = "delete"
)

// Reason says why a pod is touched.
type Reason string

// The reasons.
const (
	// Silent is a replica that does not answer while another one does.
	Silent Reason = api.ReasonReplicaUnreachable
	// Back is a replica that answers again.
	Back Reason = "ReplicaAnswers"
	// NodeNotReady is a pod on a node that is not ready.
	NodeNotReady Reason = "NodeNotReady"
	// NodeGone is a pod on a node that does not exist any more.
	NodeGone Reason = "NodeGone"
	// Disrupted is a pod that was to be deleted and was not.
	Disrupted Reason = "PodDisrupted"
	// Failed is a pod that has ended and does not run again.
	Failed Reason = "PodFailed"
)

// Hold is what keeps an action from being done now.
type Hold string

// The holds.
const (
	// RateLimited waits because much was done just before.
	RateLimited Hold = "RateLimit"
	// ZoneDisrupted waits because most nodes of a zone are not ready, so that
	// the trouble may be another one than theirs.
	ZoneDisrupted Hold = "ZoneDisrupted"
	// NoNodeReady waits because a pod could run nowhere.
	NoNodeReady Hold = "NoNodeReady"
	// CutOff waits because it may be us that cannot reach the replicas.
	CutOff Hold = "CutOff"
	// LastAnswering waits because nothing else answers for the catalog yet.
	LastAnswering Hold = "LastAnswering"
	// Backoff waits because the same was tried in vain a while ago.
	Backoff Hold = "Backoff"
)

// Holds lists every one.
func Holds() []Hold {
	return []Hold{RateLimited, ZoneDisrupted, NoNodeReady, CutOff, LastAnswering, Backoff}
}

// Action is what is done to one pod.
type Action struct {
	Verb    Verb
	Reason  Reason
	Catalog types.NamespacedName
	Replica Replica
	// Message says it to a person.
	Message string
}

func (a Action) target() Target { return Target{UID: a.Replica.UID, Verb: a.Verb} }
