package history

import (
	"encoding/json"
	"fmt"
	"math"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
)

// MaxTransitions bounds a ledger. An update makes about four, so that it reaches back
// some fifteen updates.
const MaxTransitions = 64

// maxText bounds, in bytes, what is read of an annotation: all annotations of an
// object together can have no more.
const maxText = 256 << 10

// Observed says how a transition was seen.
type Observed string

// The ways of seeing a transition.
const (
	// Live: the plan was still at the stage when the Subscription told it.
	Live Observed = "live"
	// Afterwards: the plan had gone on, or nobody was there to see it.
	Afterwards Observed = "afterwards"
)

// Transition is one step of a plan from a stage to another, as a Subscription told it.
type Transition struct {
	// Sequence counts the transitions of a Subscription, from 1 on and without gaps.
	Sequence int64 `json:"seq"`
	// Plan and UID name the InstallPlan.
	Plan string    `json:"plan"`
	UID  types.UID `json:"uid"`
	// Version is the resource version of the plan with which it was seen at this
	// stage.
	Version string `json:"version,omitempty"`
	// Phase and Reason are the stage.
	Phase  string `json:"phase"`
	Reason string `json:"reason,omitempty"`
	// Time is when it was seen, to the second.
	Time metav1.Time `json:"time"`
	// Observed says how it was seen.
	Observed Observed `json:"observed"`
}

// Stage is where the plan got to.
func (t Transition) Stage() Stage { return Stage{Phase: t.Phase, Reason: t.Reason} }

// Ledger is what the plans of a Subscription went through, the oldest first.
type Ledger []Transition

// Read reads the ledger of a Subscription; empty when it has none.
func Read(subscription metav1.Object) (Ledger, error) {
	text := subscription.GetAnnotations()[api.AnnotationTransitions]
	if text == "" {
		return nil, nil
	}
	if len(text) > maxText {
		return nil, fmt.Errorf("annotation %s of Subscription %s/%s has %d bytes, more than a ledger can have; remove the annotation, and a new ledger is begun",
			api.AnnotationTransitions, subscription.GetNamespace(), subscription.GetName(), len(text))
	}
	var l Ledger
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return nil, fmt.Errorf("annotation %s of Subscription %s/%s is not a list of transitions; remove the annotation, and a new ledger is begun: %w",
			api.AnnotationTransitions, subscription.GetNamespace(), subscription.GetName(), err)
	}
	return l, nil
}

// Last is the newest transition; nil when there is none.
func (l Ledger) Last() *Transition {
	if len(l) == 0 {
		return nil
	}
	return &l[len(l)-1]
}

// LastOf is the newest transition of a plan; nil when there is none.
func (l Ledger) LastOf(plan types.UID) *Transition {
	for i := len(l) - 1; i >= 0; i-- {
		if l[i].UID == plan {
			return &l[i]
		}
	}
	return nil
}

// Ahead says whether the ledger has a transition of the plan that a status refers to
// which that status has yet to tell: the ledger is written first.
func (l Ledger) Ahead(status *operatorsv1alpha1.SubscriptionStatus) bool {
	ref := status.InstallPlanRef
	if ref == nil {
		return false
	}
	last := l.LastOf(ref.UID)
	return last != nil && Version(last.Version) > Version(ref.ResourceVersion)
}

// Append gives the ledger with one more transition, which gets the next number. A
// ledger that is full loses its oldest one. The ledger itself stays as it is.
func (l Ledger) Append(t Transition) Ledger {
	t.Sequence = 1
	if last := l.Last(); last != nil {
		// What somebody else has written there may be any number.
		t.Sequence = min(max(last.Sequence, 0), math.MaxInt64-1) + 1
	}
	longer := append(append(Ledger{}, l...), t)
	return longer[max(0, len(longer)-MaxTransitions):]
}

// Text is the value of the annotation.
func (l Ledger) Text() string {
	text, err := json.Marshal(l)
	if err != nil {
		// A list of structs of texts, numbers and times always marshals.
		return ""
	}
	return string(text)
}
