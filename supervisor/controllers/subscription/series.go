package subscription

import (
	"sync"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/chandlery/chandlery/supervisor/api"
)

// seriesRecorder holds the series of each Subscription. It is safe for concurrent use; the zero value is
// ready to use.
type seriesRecorder struct {
	mu sync.Mutex
	// shown holds the series by namespace and name.
	shown map[string]map[string]series
	// sharing is the number of Subscriptions with the same labels of syncs.
	sharing map[syncLabels]int
	// totals is the number of Subscriptions by namespace.
	totals map[string]int
}

// series are the series of one Subscription.
type series struct {
	sync syncLabels
	wait wait
}

// syncLabels are the values of the labels of syncs.
type syncLabels struct{ name, installed, channel, pkg, approval string }

func (l syncLabels) values() []string {
	return []string{l.name, l.installed, l.channel, l.pkg, l.approval}
}

// wait is what a Subscription waits for, and since when. It is zero for nothing.
type wait struct {
	what, reason string
	since        time.Time
}

// sameCause reports whether two waits have the same cause.
func (w wait) sameCause(other wait) bool { return w.what == other.what && w.reason == other.reason }

// record updates the series of a namespace after a pass. total is the number of its Subscriptions,
// including those that are being deleted.
func (r *seriesRecorder) record(namespace string, decisions []*decision, total int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shown == nil {
		r.shown, r.sharing, r.totals = map[string]map[string]series{}, map[syncLabels]int{}, map[string]int{}
	}
	subscriptionCount.Add(float64(total - r.totals[namespace]))
	r.totals[namespace] = total
	before, after := r.shown[namespace], map[string]series{}
	for _, d := range decisions {
		name := d.subscription.Name
		previous, known := before[name]
		after[name] = r.replace(namespace, name, previous, known, d)
	}
	for name, gone := range before {
		if _, exists := after[name]; !exists {
			r.release(gone.sync)
			deleteWait(namespace, name, gone.wait)
		}
	}
	r.shown[namespace] = after
	if total == 0 {
		delete(r.shown, namespace)
		delete(r.totals, namespace)
	}
}

// replace updates the series of a Subscription and returns them. The caller holds the lock.
func (r *seriesRecorder) replace(namespace, name string, before series, known bool, d *decision) series {
	after := series{sync: syncLabelsOf(d.subscription), wait: waitOf(d)}
	if !known || before.sync != after.sync {
		r.sharing[after.sync]++
		if known {
			r.release(before.sync)
		}
	}
	syncs.WithLabelValues(after.sync.values()...).Inc()
	if after.wait.sameCause(before.wait) {
		// A changed message changes the time of a condition.
		after.wait.since = before.wait.since
	}
	if after.wait.what != "" {
		waitingSince.WithLabelValues(namespace, name, after.wait.what, after.wait.reason).Set(float64(after.wait.since.Unix()))
	}
	if !after.wait.sameCause(before.wait) {
		deleteWait(namespace, name, before.wait)
	}
	return after
}

// release deletes a series of syncs that no Subscription has anymore. The caller holds the lock.
func (r *seriesRecorder) release(labels syncLabels) {
	r.sharing[labels]--
	if r.sharing[labels] == 0 {
		delete(r.sharing, labels)
		syncs.DeleteLabelValues(labels.values()...)
	}
}

func deleteWait(namespace, name string, w wait) {
	if w.what != "" {
		waitingSince.DeleteLabelValues(namespace, name, w.what, w.reason)
	}
}

func syncLabelsOf(sub *operatorsv1alpha1.Subscription) syncLabels {
	return syncLabels{
		name: sub.Name, installed: sub.Status.InstalledCSV, channel: sub.Spec.Channel, pkg: sub.Spec.Package,
		approval: string(sub.Spec.InstallPlanApproval),
	}
}

// waitTypes are the conditions that a Subscription with an unfinished installation or update may wait for. The
// first one that is true counts.
var waitTypes = []operatorsv1alpha1.SubscriptionConditionType{
	operatorsv1alpha1.SubscriptionResolutionFailed,
	operatorsv1alpha1.SubscriptionBundleUnpackFailed,
	operatorsv1alpha1.SubscriptionInstallPlanFailed,
	api.ConditionVersionUnhealthy,
	operatorsv1alpha1.SubscriptionBundleUnpacking,
	operatorsv1alpha1.SubscriptionInstallPlanPending,
	api.ConditionNewerVersionHeld,
	operatorsv1alpha1.SubscriptionCatalogSourcesUnhealthy,
}

// waitOf returns what the Subscription of a decision waits for, according to its status. A condition
// precedes the phase of the version that is being installed.
func waitOf(d *decision) wait {
	status := &d.subscription.Status
	for _, kind := range waitTypes {
		if c := status.GetCondition(kind); c.Status == corev1.ConditionTrue {
			return waitFor(c, status.GetCondition(api.ConditionBlocked), d.subscription)
		}
	}
	if status.State == operatorsv1alpha1.SubscriptionStateAtLatest {
		return wait{}
	}
	if c := status.GetCondition(operatorsv1alpha1.SubscriptionInstallPlanMissing); c.Status == corev1.ConditionTrue {
		return waitFor(c, operatorsv1alpha1.SubscriptionCondition{}, d.subscription)
	}
	switch csv := d.present.current; {
	case csv != nil && csv != d.present.installed:
		return wait{operatorsv1alpha1.ClusterServiceVersionKind, string(csv.Status.Reason), phaseSince(csv).Time}
	case !status.LastUpdated.IsZero():
		return wait{"Resolution", "", status.LastUpdated.Time}
	default:
		return wait{"Resolution", "", d.subscription.CreationTimestamp.Time}
	}
}

// waitFor returns the wait that a condition shows. If the resolution or a bundle is blocked, blocked has
// the exact reason.
func waitFor(c, blocked operatorsv1alpha1.SubscriptionCondition, sub *operatorsv1alpha1.Subscription) wait {
	w := wait{string(c.Type), c.Reason, sub.CreationTimestamp.Time}
	if c.LastTransitionTime != nil {
		w.since = c.LastTransitionTime.Time
	}
	failed := c.Type == operatorsv1alpha1.SubscriptionResolutionFailed || c.Type == operatorsv1alpha1.SubscriptionBundleUnpackFailed
	if failed && blocked.Status == corev1.ConditionTrue {
		w.reason = blocked.Reason
	}
	return w
}
