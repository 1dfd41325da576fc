package timeline

import (
	"fmt"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/history"
)

// Timeline is what there is to tell of a Subscription.
type Timeline struct {
	Namespace    string    `json:"namespace"`
	Subscription string    `json:"subscription"`
	UID          types.UID `json:"uid"`
	Package      string    `json:"package"`
	Channel      string    `json:"channel,omitempty"`
	// Catalog is the CatalogSource, with its namespace before a slash.
	Catalog string `json:"catalog"`
	// Transitions are what the ledger holds, the oldest first.
	Transitions []Transition `json:"transitions"`
	// State, InstalledCSV, CurrentCSV and InstallPlan are those of the status.
	State        string      `json:"state,omitempty"`
	InstalledCSV string      `json:"installedCSV,omitempty"`
	CurrentCSV   string      `json:"currentCSV,omitempty"`
	InstallPlan  string      `json:"installPlan,omitempty"`
	Conditions   []Condition `json:"conditions,omitempty"`
	// Next is what somebody can do now.
	Next []string `json:"next,omitempty"`
	// Problem says why there are no transitions though there is a ledger.
	Problem string `json:"problem,omitempty"`

	now time.Time
}

// Transition is one step of a plan, and what follows from the others.
type Transition struct {
	history.Transition

	// Versions are what the plan installs; unknown when it is gone.
	Versions []string `json:"versions,omitempty"`
	// Lasted is how long things stayed so, to the second; nil for the newest one, and
	// where what came next is lost.
	Lasted *metav1.Duration `json:"lasted,omitempty"`
	// Lost is how many transitions there were between the one before and this one
	// that the ledger no longer holds.
	Lost int64 `json:"lost,omitempty"`
}

// Condition is a condition of the Subscription.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Since is when it became so, as far as it is known.
	Since *metav1.Time `json:"since,omitempty"`
}

// Of tells of a Subscription. Plans are those of its namespace, as far as they are
// still there; program is how the person calls the one that tells.
func Of(sub *operatorsv1alpha1.Subscription, plans []operatorsv1alpha1.InstallPlan, program string, now time.Time) Timeline {
	t := Timeline{
		Namespace: sub.Namespace, Subscription: sub.Name, UID: sub.UID,
		State: string(sub.Status.State), InstalledCSV: sub.Status.InstalledCSV, CurrentCSV: sub.Status.CurrentCSV,
		Transitions: []Transition{}, now: now,
	}
	if spec := sub.Spec; spec != nil {
		t.Package, t.Channel, t.Catalog = spec.Package, spec.Channel, spec.CatalogSourceNamespace+"/"+spec.CatalogSource
	}
	if ref := sub.Status.InstallPlanRef; ref != nil {
		t.InstallPlan = ref.Name
	}
	ledger, err := history.Read(sub)
	if err != nil {
		t.Problem = err.Error()
	}
	t.Transitions = append(t.Transitions, follow(ledger, versions(plans))...)
	for _, c := range sub.Status.Conditions {
		t.Conditions = append(t.Conditions, Condition{
			Type: string(c.Type), Status: string(c.Status), Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime,
		})
	}
	t.Next = next(sub, plans, program)
	return t
}

// versions says what each plan installs.
func versions(plans []operatorsv1alpha1.InstallPlan) map[types.UID][]string {
	names := make(map[types.UID][]string, len(plans))
	for i := range plans {
		names[plans[i].UID] = plans[i].Spec.ClusterServiceVersionNames
	}
	return names
}

// follow sees each transition beside the ones before and after it.
func follow(ledger history.Ledger, versions map[types.UID][]string) []Transition {
	transitions := make([]Transition, len(ledger))
	before := int64(0)
	for i, one := range ledger {
		transitions[i] = Transition{Transition: one, Versions: versions[one.UID], Lost: max(0, one.Sequence-before-1)}
		before = one.Sequence
		if i > 0 && transitions[i].Lost == 0 {
			transitions[i-1].Lasted = &metav1.Duration{Duration: one.Time.Sub(ledger[i-1].Time.Time)}
		}
	}
	return transitions
}

// next says what somebody can do. What a message of a condition says is not said
// again.
func next(sub *operatorsv1alpha1.Subscription, plans []operatorsv1alpha1.InstallPlan, program string) []string {
	ref := sub.Status.InstallPlanRef
	if ref == nil {
		return nil
	}
	is := func(kind operatorsv1alpha1.SubscriptionConditionType) (string, bool) {
		c := sub.Status.GetCondition(kind)
		return c.Reason, c.Status == corev1.ConditionTrue
	}
	reason, pending := is(operatorsv1alpha1.SubscriptionInstallPlanPending)
	_, failed := is(operatorsv1alpha1.SubscriptionInstallPlanFailed)
	settled := slices.ContainsFunc(plans, func(p operatorsv1alpha1.InstallPlan) bool { return p.UID == ref.UID && done(&p) })
	switch {
	case pending && reason == string(operatorsv1alpha1.InstallPlanPhaseRequiresApproval):
		return []string{
			fmt.Sprintf("approve it: %s approve %s -n %s", program, ref.Name, sub.Namespace),
			fmt.Sprintf(`or with kubectl alone: kubectl -n %s patch installplan %s --type merge -p '{"spec":{"approved":true}}'`, sub.Namespace, ref.Name),
		}
	case failed && settled:
		return []string{fmt.Sprintf("nothing is left to do: every step of %s is applied, and another client declared it failed", ref.Name)}
	case failed:
		return []string{fmt.Sprintf("to try again at once: kubectl -n %s delete installplan %s", sub.Namespace, ref.Name)}
	default:
		return nil
	}
}

// done says whether every step of a plan is applied.
func done(p *operatorsv1alpha1.InstallPlan) bool {
	left := func(s *operatorsv1alpha1.Step) bool {
		return s.Status != operatorsv1alpha1.StepStatusCreated && s.Status != operatorsv1alpha1.StepStatusPresent
	}
	return len(p.Status.Plan) > 0 && !slices.ContainsFunc(p.Status.Plan, left)
}
