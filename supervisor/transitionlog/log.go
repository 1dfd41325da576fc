package transitionlog

import (
	"encoding/json"
	"fmt"
	"math"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
)

// MaxTransitions is the maximum length of a log. An update adds about four transitions, so a log holds
// some fifteen updates.
const MaxTransitions = 64

// maxText is the maximum size of an annotation that is read, in bytes. It is the limit for all annotations of
// an object together.
const maxText = 256 << 10

// Observed is how a transition was observed.
type Observed string

// The values of Observed.
const (
	// Live means that the plan was still at the stage when the Subscription recorded it.
	Live Observed = "live"
	// Afterwards means that the plan had already left the stage, or that no supervisor observed it.
	Afterwards Observed = "afterwards"
)

// Transition is one step of a plan from one stage to another, as a Subscription recorded it.
type Transition struct {
	// Sequence is the number of the transition of a Subscription, from 1 and without gaps.
	Sequence int64 `json:"seq"`
	// Plan and UID identify the InstallPlan.
	Plan string    `json:"plan"`
	UID  types.UID `json:"uid"`
	// Version is the resource version of the plan when it was seen at this stage.
	Version string `json:"version,omitempty"`
	// Phase and Reason are the stage.
	Phase  string `json:"phase"`
	Reason string `json:"reason,omitempty"`
	// Time is when the stage was seen, to the second.
	Time metav1.Time `json:"time"`
	// Observed is how the transition was observed.
	Observed Observed `json:"observed"`
}

// Stage returns the stage after the transition.
func (t Transition) Stage() Stage { return Stage{Phase: t.Phase, Reason: t.Reason} }

// Log holds the transitions of the plans of a Subscription, the oldest first.
type Log []Transition

// Read returns the log of a Subscription; empty if it has none.
func Read(subscription metav1.Object) (Log, error) {
	text := subscription.GetAnnotations()[api.AnnotationTransitions]
	if text == "" {
		return nil, nil
	}
	if len(text) > maxText {
		return nil, fmt.Errorf("annotation %s of Subscription %s/%s has %d bytes, more than a log can have; remove the annotation to start a new log",
			api.AnnotationTransitions, subscription.GetNamespace(), subscription.GetName(), len(text))
	}
	var l Log
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return nil, fmt.Errorf("annotation %s of Subscription %s/%s is not a list of transitions; remove the annotation to start a new log: %w",
			api.AnnotationTransitions, subscription.GetNamespace(), subscription.GetName(), err)
	}
	return l, nil
}

// Last returns the newest transition; nil if there is none.
func (l Log) Last() *Transition {
	if len(l) == 0 {
		return nil
	}
	return &l[len(l)-1]
}

// LastOf returns the newest transition of a plan; nil if there is none.
func (l Log) LastOf(plan types.UID) *Transition {
	for i := len(l) - 1; i >= 0; i-- {
		if l[i].UID == plan {
			return &l[i]
		}
	}
	return nil
}

// Ahead reports whether the log has a transition of the plan of a status that the status does not show yet.
// The log is written first.
func (l Log) Ahead(status *operatorsv1alpha1.SubscriptionStatus) bool {
	ref := status.InstallPlanRef
	if ref == nil {
		return false
	}
	last := l.LastOf(ref.UID)
	return last != nil && Version(last.Version) > Version(ref.ResourceVersion)
}

// Append returns the log with one more transition, which gets the next number. A full log loses its
// oldest transition. Append does not change the log itself.
func (l Log) Append(t Transition) Log {
	t.Sequence = 1
	if last := l.Last(); last != nil {
		// Another writer may have written any number.
		t.Sequence = min(max(last.Sequence, 0), math.MaxInt64-1) + 1
	}
	longer := append(append(Log{}, l...), t)
	return longer[max(0, len(longer)-MaxTransitions):]
}

// Text returns the value of the annotation.
func (l Log) Text() string {
	text, err := json.Marshal(l)
	if err != nil {
		// The encoding of a list of structs of texts, numbers and times never fails.
		return ""
	}
	return string(text)
}
