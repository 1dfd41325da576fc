package approve

import (
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/cmd/internal/approval"
	"github.com/chandlery/chandlery/cmd/internal/command/wait"
	"github.com/chandlery/chandlery/cmd/internal/console"
)

// selectedPlan is a requested InstallPlan, and whether there is anything to approve.
type selectedPlan struct {
	plan *operatorsv1alpha1.InstallPlan
	// why is the reason why there is nothing to approve; empty otherwise.
	why string
}

// namespaceObjects holds the objects of a namespace.
type namespaceObjects struct {
	namespace     string
	plans         []operatorsv1alpha1.InstallPlan
	subscriptions []operatorsv1alpha1.Subscription
	versions      []operatorsv1alpha1.ClusterServiceVersion
}

// selectPlans returns the InstallPlans that names select, or all that wait if all is set. Names are the
// names of InstallPlans or of Subscriptions. Each InstallPlan is returned once, in the order of the
// names. The notes name Subscriptions for which nothing waits.
func (w *namespaceObjects) selectPlans(names []string, all bool) (plans []selectedPlan, notes []string, err error) {
	add := func(p *operatorsv1alpha1.InstallPlan) {
		if !slices.ContainsFunc(plans, func(c selectedPlan) bool { return c.plan.Name == p.Name }) {
			plans = append(plans, selectedPlan{plan: p, why: approval.WhyNotWaiting(p)})
		}
	}
	if all {
		for i := range w.plans {
			if approval.WhyNotWaiting(&w.plans[i]) == "" {
				add(&w.plans[i])
			}
		}
	}
	for _, name := range names {
		p, note, err := w.find(name)
		if err != nil {
			return nil, nil, err
		}
		if note != "" {
			notes = append(notes, note)
		}
		if p != nil {
			add(p)
		}
	}
	return plans, notes, nil
}

// find returns the InstallPlan with a name, or the one of the Subscription with this name.
func (w *namespaceObjects) find(text string) (p *operatorsv1alpha1.InstallPlan, note string, err error) {
	p, sub, err := w.object(text)
	if sub != nil {
		p, note = w.planOf(sub)
	}
	return p, note, err
}

// object returns the InstallPlan or the Subscription with a name. It returns an error if there is neither.
func (w *namespaceObjects) object(text string) (*operatorsv1alpha1.InstallPlan, *operatorsv1alpha1.Subscription, error) {
	kind, name, qualified := strings.Cut(text, "/")
	if !qualified {
		kind, name = "", text
	}
	if !slices.Contains([]string{"", "installplan", "ip", "subscription", "sub"}, strings.ToLower(kind)) {
		return nil, nil, fmt.Errorf("%q names neither an InstallPlan nor a Subscription; write installplan/NAME, subscription/NAME or the name alone", text)
	}
	if !strings.HasPrefix(strings.ToLower(kind), "sub") {
		if p := w.plan(name); p != nil {
			return p, nil, nil
		}
	}
	if !strings.HasPrefix(strings.ToLower(kind), "i") {
		for i := range w.subscriptions {
			if w.subscriptions[i].Name == name {
				return nil, &w.subscriptions[i], nil
			}
		}
	}
	return nil, nil, &console.Coded{Code: console.Negative, Err: fmt.Errorf("namespace %s has no visible InstallPlan or Subscription %s; %s", w.namespace, name, w.summary())}
}

func (w *namespaceObjects) plan(name string) *operatorsv1alpha1.InstallPlan {
	i := slices.IndexFunc(w.plans, func(p operatorsv1alpha1.InstallPlan) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &w.plans[i]
}

// planOf returns the InstallPlan that a Subscription refers to, or a note why there is none.
func (w *namespaceObjects) planOf(sub *operatorsv1alpha1.Subscription) (*operatorsv1alpha1.InstallPlan, string) {
	ref := sub.Status.InstallPlanRef
	if ref == nil {
		return nil, fmt.Sprintf("Subscription %s/%s: nothing waits for approval: it has no InstallPlan", sub.Namespace, sub.Name)
	}
	p := w.plan(ref.Name)
	if p == nil {
		return nil, fmt.Sprintf("Subscription %s/%s: nothing waits for approval: its InstallPlan %s is deleted", sub.Namespace, sub.Name, ref.Name)
	}
	return p, ""
}

// unplanned returns the Subscriptions that names select and that have no version, and no InstallPlan that has left the phase
// Planning. Each comes with its InstallPlan, if that exists.
func (w *namespaceObjects) unplanned(names []string) []*wait.Objects {
	var found []*wait.Objects
	for _, name := range names {
		_, sub, err := w.object(name)
		if err != nil || sub == nil || sub.Status.InstalledCSV != "" || sub.Status.CurrentCSV != "" {
			continue
		}
		p, _ := w.planOf(sub)
		if p == nil || p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseNone || p.Status.Phase == operatorsv1alpha1.InstallPlanPhasePlanning {
			found = append(found, &wait.Objects{Subscription: sub, Plan: p})
		}
	}
	return found
}

// summary lists the waiting InstallPlans and the Subscriptions.
func (w *namespaceObjects) summary() string {
	var waiting, names []string
	for i := range w.plans {
		if approval.WhyNotWaiting(&w.plans[i]) == "" {
			waiting = append(waiting, w.plans[i].Name)
		}
	}
	for i := range w.subscriptions {
		names = append(names, w.subscriptions[i].Name)
	}
	text := "no InstallPlan waits for approval"
	if len(waiting) > 0 {
		text = "these InstallPlans wait for approval: " + strings.Join(waiting, ", ")
	}
	if len(names) > 0 {
		text += "; its Subscriptions are " + strings.Join(names, ", ")
	}
	return text
}
