package replicas

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
)

// Endpoint is where a replica listens, and what is known of it without asking it.
type Endpoint struct {
	// Address is what is dialled: IP and port of a pod, or what an address of a
	// CatalogSource says.
	Address string
	// Pod and UID name the pod that listens there, Node where it runs. They are
	// empty for an address that is not a pod's.
	Pod  types.NamespacedName
	UID  types.UID
	Node string
	// Revision is the same for replicas of one roll-out, and Created when the pod
	// was. Both are empty when they are not known.
	Revision string
	Created  time.Time
	// Ready and Terminating are what the EndpointSlice says.
	Ready, Terminating bool
}

// name is what a person knows the replica by.
func (e Endpoint) name() string {
	switch {
	case e.Pod.Name == "":
		return e.Address
	case e.Node == "":
		return "pod " + e.Pod.Name
	default:
		return fmt.Sprintf("pod %s on node %s", e.Pod.Name, e.Node)
	}
}

// same says whether two endpoints are the same replica.
func (e Endpoint) same(other Endpoint) bool {
	return e.Address == other.Address && e.UID == other.UID && e.Pod == other.Pod
}

// Health is what a replica answers, if it does.
type Health string

// The kinds of Health.
const (
	// Unknown is a replica that has not been asked often enough.
	Unknown Health = "Unknown"
	// Serving is a replica that answers calls.
	Serving Health = "Serving"
	// NotServing is a replica that answers that it cannot serve.
	NotServing Health = "NotServing"
	// Unreachable is a replica that does not answer.
	Unreachable Health = "Unreachable"
)

// Healths lists every kind.
func Healths() []Health { return []Health{Unknown, Serving, NotServing, Unreachable} }

// State is what is known of a replica.
type State struct {
	Endpoint

	// Health is what it answered last.
	Health Health
	// Since is when Health became what it is.
	Since time.Time
	// Failures is how many questions it left unanswered since its last answer.
	Failures int
	// Answered is true when it has answered since it joined.
	Answered bool
	// Confirmed is true when it has left as many questions unanswered as give it up since it
	// became ready. A replica that was restarted is not judged by the time before.
	Confirmed bool
	// Err says why it does not serve, as far as that is known.
	Err error

	connection connectivity.State
}

// Summary is what is known of all replicas of a catalog together.
type Summary struct {
	// Connectivity is READY when one replica serves, CONNECTING while that is not
	// known, TRANSIENT_FAILURE when none does.
	Connectivity connectivity.State
	// Err says why none serves; nil while one does or it is not known.
	Err error
	// Joined counts how often a replica began or ceased to serve, so that a
	// change can be told.
	Joined int
	// Revision is that of the replicas that calls are led to, as far as it is
	// known.
	Revision string
}

// summarize puts the states of the replicas of a catalog together.
func summarize(states []State) Summary {
	var reasons []string
	var cause error
	known := len(states) > 0
	for _, s := range states {
		if s.Health == Serving {
			return Summary{Connectivity: connectivity.Ready}
		}
		known = known && s.Health != Unknown
		if s.Err != nil {
			cause = s.Err
			reasons = append(reasons, s.name()+": "+s.Err.Error())
		}
	}
	switch {
	case !known:
		return Summary{Connectivity: connectivity.Connecting}
	case len(reasons) == 1:
		return Summary{Connectivity: connectivity.TransientFailure, Err: cause}
	default:
		return Summary{Connectivity: connectivity.TransientFailure, Err: fmt.Errorf("none of %d replicas serves: %s", len(states), strings.Join(reasons, "; "))}
	}
}

// verdict reads the answer to a question for health. A server that answers with
// an error, because it lacks the health service or does not let us use it, is
// alive.
func verdict(reply *healthpb.HealthCheckResponse, err error) (Health, error) {
	switch status.Code(err) {
	case codes.OK:
		if reply.GetStatus() == healthpb.HealthCheckResponse_SERVING {
			return Serving, nil
		}
		return NotServing, fmt.Errorf("its health is %s", reply.GetStatus())
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return Unreachable, err
	default:
		return Serving, nil
	}
}

// next is the state after an answer, or after none: that counts only when it
// happens several times in a row.
func (s State) next(health Health, err error, threshold int, now time.Time) State {
	s.Err = err
	s.Failures++
	switch {
	case health != Unreachable:
		s.Failures, s.Answered = 0, true
	case s.Failures < threshold:
		health = s.Health
	}
	s.Confirmed = s.Failures >= threshold
	if s.Health != health {
		s.Health, s.Since = health, now
	}
	return s
}

// becomes is the state when what is known of the endpoint without asking has changed. One
// that becomes ready is judged by the questions from then on alone.
func (s State) becomes(e Endpoint) State {
	if e.Ready && !s.Ready {
		s.Failures, s.Confirmed = 0, false
	}
	s.Endpoint = e
	return s
}

// from is the state that follows from the one of a connection.
func (s State) from(connection connectivity.State, err error, now time.Time) State {
	health := Unknown
	switch connection {
	case connectivity.Ready:
		health = Serving
	case connectivity.TransientFailure, connectivity.Shutdown:
		health = Unreachable
	case connectivity.Idle, connectivity.Connecting:
	}
	s.connection, s.Err = connection, err
	if s.Health != health {
		s.Health, s.Since = health, now
	}
	return s
}
