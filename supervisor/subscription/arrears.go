package subscription

import (
	"cmp"
	"context"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/history"
)

// arrear is a namespace in which something was not told yet, and the version from which
// on.
type arrear struct {
	namespace string
	from      uint64
}

// arrears gives the namespaces in which something may not have been told, those that
// wait the longest first: of a Subscription from the version of its plan that it tells
// or, where it tells of none, its own, which is older than any plan made for it.
func arrears(subscriptions []operatorsv1alpha1.Subscription, plans []operatorsv1alpha1.InstallPlan) []arrear {
	byNamespace := map[string][]*operatorsv1alpha1.InstallPlan{}
	for i := range plans {
		byNamespace[plans[i].Namespace] = append(byNamespace[plans[i].Namespace], &plans[i])
	}
	var list []arrear
	for i := range subscriptions {
		namespace := subscriptions[i].Namespace
		if from, untold := untoldFrom(&subscriptions[i], byNamespace[namespace]); untold {
			list = append(list, arrear{namespace: namespace, from: from})
		}
	}
	slices.SortStableFunc(list, func(a, b arrear) int { return cmp.Compare(a.from, b.from) })
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(a arrear) bool {
		known := seen[a.namespace]
		seen[a.namespace] = true
		return known
	})
}

// untoldFrom gives the version up to which a Subscription tells of its plans, and
// whether there is anything after it.
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

// inArrears asks, when the past was looked up, for the namespaces in which something was
// not told yet before all others: where supervisors come and go quickly, the last ones of
// the queue would never have their turn, until the API server has forgotten.
func (r *Reconciler) inArrears(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	go func() {
		select {
		case <-r.caughtUp:
		case <-ctx.Done():
			return
		}
		first, ranked := queue.(priorityqueue.PriorityQueue[reconcile.Request])
		for i, a := range r.arrears {
			request := reconcile.Request{NamespacedName: types.NamespacedName{Name: a.namespace}}
			if !ranked {
				queue.Add(request)
				continue
			}
			first.AddWithOpts(priorityqueue.AddOpts{Priority: new(len(r.arrears) - i)}, request)
		}
	}()
	return nil
}
