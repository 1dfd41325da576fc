package timeline

import (
	"fmt"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/transitionlog"
)

// Timeline is the history and the state of a Subscription.
type Timeline struct {
	Namespace    string    `json:"namespace"`
	Subscription string    `json:"subscription"`
	UID          types.UID `json:"uid"`
	Package      string    `json:"package"`
	Channel      string    `json:"channel,omitempty"`
	// Catalog is the CatalogSource as NAMESPACE/NAME.
	Catalog string `json:"catalog"`
	// Transitions are the transitions in the log, oldest first.
	Transitions []Transition `json:"transitions"`
	// State, InstalledCSV, CurrentCSV and InstallPlan come from the status.
	State        string      `json:"state,omitempty"`
	InstalledCSV string      `json:"installedCSV,omitempty"`
	CurrentCSV   string      `json:"currentCSV,omitempty"`
	InstallPlan  string      `json:"installPlan,omitempty"`
	Conditions   []Condition `json:"conditions,omitempty"`
	// Next are the steps that a user can take now.
	Next []string `json:"next,omitempty"`
	// Problem is the error of a log that cannot be parsed.
	Problem string `json:"problem,omitempty"`

	now time.Time
}

// Transition is a transition of an InstallPlan with derived fields.
type Transition struct {
	transitionlog.Transition

	// Versions are what the InstallPlan installs; unknown if it no longer exists.
	Versions []string `json:"versions,omitempty"`
	// Lasted is how long the phase lasted, to the second. It is nil for the newest transition, and
	// if the next one is missing.
	Lasted *metav1.Duration `json:"lasted,omitempty"`
	// Lost is the number of transitions missing between the previous one and this one.
	Lost int64 `json:"lost,omitempty"`
}

// Condition is a condition of the Subscription.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Since is the time of the last transition of the condition, if known.
	Since *metav1.Time `json:"since,omitempty"`
}

// Of returns the timeline of a Subscription. plans are the existing InstallPlans of its namespace.
// program is how the user calls the program.
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
	entries, err := transitionlog.Read(sub)
	if err != nil {
		t.Problem = err.Error()
	}
	t.Transitions = append(t.Transitions, transitionsOf(entries, versions(plans))...)
	for _, c := range sub.Status.Conditions {
		t.Conditions = append(t.Conditions, Condition{
			Type: string(c.Type), Status: string(c.Status), Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime,
		})
	}
	t.Next = next(sub, plans, program)
	return t
}

// versions returns what each InstallPlan installs.
func versions(plans []operatorsv1alpha1.InstallPlan) map[types.UID][]string {
	names := make(map[types.UID][]string, len(plans))
	for i := range plans {
		names[plans[i].UID] = plans[i].Spec.ClusterServiceVersionNames
	}
	return names
}

// transitionsOf returns the transitions of a log, with the fields that depend on neighboring transitions.
func transitionsOf(entries transitionlog.Log, versions map[types.UID][]string) []Transition {
	transitions := make([]Transition, len(entries))
	before := int64(0)
	for i, one := range entries {
		transitions[i] = Transition{Transition: one, Versions: versions[one.UID], Lost: max(0, one.Sequence-before-1)}
		before = one.Sequence
		if i > 0 && transitions[i].Lost == 0 {
			transitions[i-1].Lasted = &metav1.Duration{Duration: one.Time.Sub(entries[i-1].Time.Time)}
		}
	}
	return transitions
}

// next returns the steps that a user can take. It does not repeat messages of conditions.
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
	settled := slices.ContainsFunc(plans, func(p operatorsv1alpha1.InstallPlan) bool { return p.UID == ref.UID && allApplied(&p) })
	switch {
	case pending && reason == string(operatorsv1alpha1.InstallPlanPhaseRequiresApproval):
		return []string{
			fmt.Sprintf("approve it: %s approve %s -n %s", program, ref.Name, sub.Namespace),
			fmt.Sprintf(`or with kubectl alone: kubectl -n %s patch installplan %s --type merge -p '{"spec":{"approved":true}}'`, sub.Namespace, ref.Name),
		}
	case failed && settled:
		return []string{fmt.Sprintf("no action is necessary: every step of %s is applied, and another client set its phase to Failed", ref.Name)}
	case failed:
		return []string{fmt.Sprintf("to try again at once: kubectl -n %s delete installplan %s", sub.Namespace, ref.Name)}
	default:
		return nil
	}
}

// allApplied reports whether every step of an InstallPlan is applied.
func allApplied(p *operatorsv1alpha1.InstallPlan) bool {
	left := func(s *operatorsv1alpha1.Step) bool {
		return s.Status != operatorsv1alpha1.StepStatusCreated && s.Status != operatorsv1alpha1.StepStatusPresent
	}
	return len(p.Status.Plan) > 0 && !slices.ContainsFunc(p.Status.Plan, left)
}
