package subscription

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/history"
)

// arrear is a namespace with Subscriptions, and the resource version after which transitions are
// not shown yet; zero where all are shown.
type arrear struct {
	namespace string
	from      uint64
}

// arrears returns the namespaces with Subscriptions. Namespaces with transitions that are not shown
// yet come first, and the longest waits first. A wait begins at the version of the plan that a
// Subscription shows. For a Subscription that shows none, it begins at its own version, which is
// older than any plan for it.
func arrears(subscriptions []operatorsv1alpha1.Subscription, plans []operatorsv1alpha1.InstallPlan) []arrear {
	byNamespace := map[string][]*operatorsv1alpha1.InstallPlan{}
	for i := range plans {
		byNamespace[plans[i].Namespace] = append(byNamespace[plans[i].Namespace], &plans[i])
	}
	var list []arrear
	for i := range subscriptions {
		next := arrear{namespace: subscriptions[i].Namespace}
		if from, untold := untoldFrom(&subscriptions[i], byNamespace[next.namespace]); untold {
			next.from = from
		}
		list = append(list, next)
	}
	slices.SortStableFunc(list, func(a, b arrear) int {
		if (a.from == 0) != (b.from == 0) {
			return -cmp.Compare(a.from, b.from)
		}
		return cmp.Compare(a.from, b.from)
	})
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(a arrear) bool {
		known := seen[a.namespace]
		seen[a.namespace] = true
		return known
	})
}

// untoldFrom returns the version up to which a Subscription shows its plans, and whether there is a
// later one.
func untoldFrom(sub *operatorsv1alpha1.Subscription, beside []*operatorsv1alpha1.InstallPlan) (version uint64, untold bool) {
	ref := sub.Status.InstallPlanRef
	from, gone := history.Version(sub.ResourceVersion), false
	if ref != nil {
		shown, _ := history.Shown(&sub.Status)
		from, gone = history.Version(ref.ResourceVersion), shown != history.Missing()
	}
	newer := false
	for _, p := range beside {
		told := ref != nil && ref.UID == p.UID
		gone = gone && !told
		newer = newer || ((told || serves(p, sub)) && history.Version(p.ResourceVersion) > from)
	}
	return from, from > 0 && (newer || gone)
}

// inTurn enqueues the namespaces with transitions that are not shown yet before all others, after
// the look-up of past events. Where leaders change often, the end of the queue would otherwise wait
// until the API server forgets the events. All other namespaces get the priority of ordinary
// events.
func (r *Reconciler) inTurn(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	ranked, ok := queue.(priorityqueue.PriorityQueue[reconcile.Request])
	if !ok {
		return fmt.Errorf("the queue is a %T, which has no priorities", queue)
	}
	go func() {
		select {
		case <-r.caughtUp:
		case <-ctx.Done():
			return
		}
		for i, a := range r.arrears {
			priority := 0
			if a.from > 0 {
				priority = len(r.arrears) - i
			}
			ranked.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, reconcile.Request{NamespacedName: types.NamespacedName{Name: a.namespace}})
		}
	}()
	return nil
}
