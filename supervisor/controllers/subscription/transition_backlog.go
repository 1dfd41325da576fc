package subscription

import (
	"cmp"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/transitionlog"
)

// namespaceBacklog is a namespace with Subscriptions, and the resource version after which
// transitions are not shown yet; zero where all are shown.
type namespaceBacklog struct {
	namespace string
	from      uint64
}

// namespaceBacklogs returns the namespaces with Subscriptions. Namespaces with transitions that are
// not shown yet come first, the oldest first. A wait begins at the version of the plan that a
// Subscription shows. For a Subscription that shows none, it begins at its own version, which is
// older than any plan for it.
func namespaceBacklogs(subscriptions []operatorsv1alpha1.Subscription, plans []operatorsv1alpha1.InstallPlan) []namespaceBacklog {
	byNamespace := map[string][]*operatorsv1alpha1.InstallPlan{}
	for i := range plans {
		byNamespace[plans[i].Namespace] = append(byNamespace[plans[i].Namespace], &plans[i])
	}
	var list []namespaceBacklog
	for i := range subscriptions {
		next := namespaceBacklog{namespace: subscriptions[i].Namespace}
		if from, exists := backlogStart(&subscriptions[i], byNamespace[next.namespace]); exists {
			next.from = from
		}
		list = append(list, next)
	}
	slices.SortStableFunc(list, func(a, b namespaceBacklog) int {
		if (a.from == 0) != (b.from == 0) {
			return -cmp.Compare(a.from, b.from)
		}
		return cmp.Compare(a.from, b.from)
	})
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(a namespaceBacklog) bool {
		known := seen[a.namespace]
		seen[a.namespace] = true
		return known
	})
}

// backlogStart returns the version up to which a Subscription shows its plans, and whether there is a
// later one.
func backlogStart(sub *operatorsv1alpha1.Subscription, plans []*operatorsv1alpha1.InstallPlan) (version uint64, exists bool) {
	ref := sub.Status.InstallPlanRef
	from, gone := transitionlog.Version(sub.ResourceVersion), false
	if ref != nil {
		shown, _ := transitionlog.Shown(&sub.Status)
		i := slices.IndexFunc(plans, func(p *operatorsv1alpha1.InstallPlan) bool { return p.UID == ref.UID })
		from, gone = transitionlog.Version(ref.ResourceVersion), i < 0 && shown != transitionlog.Missing()
		if i >= 0 {
			// An unreadable log counts as empty.
			entries, _ := transitionlog.Read(sub)
			from = shownVersion(&sub.Status, entries, []observedStage{{version: transitionlog.Version(plans[i].ResourceVersion), plan: plans[i]}})
		}
	}
	newer := slices.ContainsFunc(plans, func(p *operatorsv1alpha1.InstallPlan) bool {
		shows := ref != nil && ref.UID == p.UID
		return (shows || serves(p, sub)) && transitionlog.Version(p.ResourceVersion) > from
	})
	return from, from > 0 && (newer || gone)
}
