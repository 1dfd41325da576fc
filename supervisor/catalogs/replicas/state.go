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

// Endpoint is the address and the known attributes of a replica.
type Endpoint struct {
	// Address is the address to dial: IP and port of a pod, or spec.address of a CatalogSource.
	Address string
	// Pod and UID identify the pod behind the address. Node is the node that it runs on, and Zone the
	// zone of that node, if known. They are empty for an address that is not a pod's.
	Pod        types.NamespacedName
	UID        types.UID
	Node, Zone string
	// Revision is equal for all replicas of one rollout. Created is the creation time of the pod.
	// Both are empty if unknown.
	Revision string
	Created  time.Time
	// Secured is true if connections to the pod use TLS.
	Secured bool
	// Ready and Terminating are conditions of the EndpointSlice.
	Ready, Terminating bool
}

// name returns a readable name of the replica.
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

// same reports whether two endpoints are the same replica.
func (e Endpoint) same(other Endpoint) bool {
	return e.Address == other.Address && e.UID == other.UID && e.Pod == other.Pod
}

// Health is the health of a replica according to its probes.
type Health string

// Values of Health.
const (
	// Unknown means that there are too few probe results.
	Unknown Health = "Unknown"
	// Serving means that the replica answers calls.
	Serving Health = "Serving"
	// NotServing means that the replica answers that it cannot serve.
	NotServing Health = "NotServing"
	// Unreachable means that the replica does not answer.
	Unreachable Health = "Unreachable"
)

// Healths returns all values of Health.
func Healths() []Health { return []Health{Unknown, Serving, NotServing, Unreachable} }

// State is the state of a replica.
type State struct {
	Endpoint

	// Health is the current health.
	Health Health
	// Since is when Health last changed.
	Since time.Time
	// Failures is the number of consecutive unanswered probes.
	Failures int
	// Answered is true if the replica has answered since it joined.
	Answered bool
	// Confirmed is true after Threshold unanswered probes since the replica became ready. Earlier
	// probes of a restarted replica do not count.
	Confirmed bool
	// Err is the reason why the replica does not serve; nil if unknown.
	Err error

	connection connectivity.State
}

// Summary summarizes the states of all replicas of a catalog.
type Summary struct {
	// Connectivity is READY if a replica serves, TRANSIENT_FAILURE if none does, and CONNECTING
	// while that is unknown.
	Connectivity connectivity.State
	// Err is the reason why no replica serves; nil if one does or it is unknown.
	Err error
	// Epoch is the number of times that a replica began or ceased to serve. Callers compare it to
	// detect changes.
	Epoch int
	// Revision is the revision of the replicas that calls go to; empty if unknown.
	Revision string
	// Since is when replicas last began to serve after all earlier connections had ended; zero if
	// none has served.
	Since time.Time
}

// summarize returns the Summary of the states.
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

// healthOf returns the health according to a probe's reply. A server that replies with an error is
// alive: it may lack the health service or deny access to it.
func healthOf(reply *healthpb.HealthCheckResponse, err error) (Health, error) {
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

// next returns the state after a probe result. Unanswered probes change the health only after
// threshold of them in a row.
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

// withEndpoint returns the state after a change of the endpoint. Once a replica becomes ready, only
// later probes count.
func (s State) withEndpoint(e Endpoint) State {
	if e.Ready && !s.Ready {
		s.Failures, s.Confirmed = 0, false
	}
	s.Endpoint = e
	return s
}

// from returns the state that follows from a connection state.
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
