package competing

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
)

// MaxLeaseDuration is the longest duration of a Lease that counts.
const MaxLeaseDuration = 60 * time.Second

const (
	// leaseSlack is how long after its expiry a Lease is watched for a renewal.
	leaseSlack = time.Second
	// maxHolderLength is the maximum length of a stored holder identity: the name of a pod, and the suffix that makes
	// it unique.
	maxHolderLength = 300
)

// leaseObserver observes the Leases of other supervisors. It records when it saw them change. The times in a
// Lease are those of another clock, and a Lease whose holder has died looks like one that is held.
type leaseObserver struct {
	client  client.Client
	clock   clock.PassiveClock
	own     types.NamespacedName
	trusted []string
	access  *AccessReviewer
	seen    map[types.NamespacedName]leaseState
	pods    map[types.NamespacedName]holderPod
	// pending is the number of holders that have not been reviewed yet.
	pending int
}

// leaseState is what was observed of a Lease.
type leaseState struct {
	version string
	holder  string
	// verdict is whether the holder may be a supervisor.
	verdict  Verdict
	first    time.Time
	changed  time.Time
	duration time.Duration
}

// holderPod is the pod that holds a Lease.
type holderPod struct {
	holder string
	// account is the service account of the pod; empty if there is no such pod.
	account string
	at      time.Time
}

// Identity returns the name of the process that holds a Lease. In a cluster, this is the name of its pod.
func Identity(holder string) string {
	if i := strings.LastIndex(holder, "_"); i >= 0 {
		return holder[:i]
	}
	return holder
}

// observe reads the Leases and adds those that are renewed to an observation.
func (l *leaseObserver) observe(ctx context.Context, o *Input) error {
	var list coordinationv1.LeaseList
	err := l.client.List(ctx, &list, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", api.LeaseName)})
	switch {
	case apierrors.IsForbidden(err):
		o.Hidden = append(o.Hidden, "Leases "+api.LeaseName+" of other namespaces: "+err.Error())
		return nil
	case err != nil:
		return fmt.Errorf("looking for supervisors of other namespaces: %w", err)
	}
	present := map[types.NamespacedName]leaseState{}
	for i := range list.Items {
		lease := &list.Items[i]
		if key := client.ObjectKeyFromObject(lease); key != l.own && ptr.Deref(lease.Spec.HolderIdentity, "") != "" {
			present[key] = l.nextState(lease)
		}
	}
	l.seen = present
	hidden, err := l.review(ctx)
	if err != nil {
		return err
	}
	o.Hidden = append(o.Hidden, hidden...)
	l.report(o)
	return nil
}

// report adds the Leases that are renewed to an observation.
func (l *leaseObserver) report(o *Input) {
	for key, held := range l.seen {
		if held.changed.IsZero() || l.clock.Since(held.changed) >= held.duration+leaseSlack {
			continue
		}
		one := Supervisor{Namespace: key.Namespace, Holder: held.holder}
		switch held.verdict {
		case Competes:
			o.Supervisors = append(o.Supervisors, one)
		case Suspect:
			o.SuspectLeases = append(o.SuspectLeases, one)
		case NotReviewed:
		}
	}
}

// nextState compares a Lease with its previous observation.
func (l *leaseObserver) nextState(lease *coordinationv1.Lease) leaseState {
	holder := *lease.Spec.HolderIdentity
	duration := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
	now := leaseState{
		version:  lease.ResourceVersion,
		holder:   holder[:min(len(holder), maxHolderLength)],
		first:    l.clock.Now(),
		duration: min(max(duration, 0), MaxLeaseDuration),
	}
	before, known := l.seen[client.ObjectKeyFromObject(lease)]
	if !known {
		return now
	}
	now.first, now.changed = before.first, before.changed
	if before.version != now.version {
		now.changed = l.clock.Now()
	}
	return now
}

// review determines which Leases count. In trusted namespaces all do. Elsewhere those count whose holder is a
// pod in the same namespace with a service account that may act as a supervisor.
func (l *leaseObserver) review(ctx context.Context) ([]string, error) {
	hidden, err := l.findPods(ctx)
	if err != nil {
		return nil, err
	}
	var accounts []types.NamespacedName
	for key, pod := range l.pods {
		if pod.account != "" {
			accounts = append(accounts, types.NamespacedName{Namespace: key.Namespace, Name: pod.account})
		}
	}
	access, err := l.access.Review(ctx, accounts)
	if err != nil {
		return nil, err
	}
	l.pending += access.Pending
	if access.Hidden != "" {
		l.pending = 0
		hidden = append(hidden, "the permissions of the holders of Leases "+api.LeaseName+": "+access.Hidden)
	}
	for key, held := range l.seen {
		held.verdict = l.classify(key, held.holder, access)
		l.seen[key] = held
	}
	return hidden, nil
}

// classify returns the verdict of the holder of a Lease.
func (l *leaseObserver) classify(key types.NamespacedName, holder string, access Access) Verdict {
	if slices.Contains(l.trusted, key.Namespace) {
		return Competes
	}
	pod := l.pods[key]
	writes, reviewed := access.Writers[types.NamespacedName{Namespace: key.Namespace, Name: pod.account}]
	switch {
	case pod.holder != holder:
		return NotReviewed
	case pod.account == "":
		return Suspect
	case !reviewed:
		return NotReviewed
	case writes:
		return Competes
	default:
		return Suspect
	}
}

// findPods reads the pods of at most maxReviews holders, those first that have never been read or not for the
// longest time.
func (l *leaseObserver) findPods(ctx context.Context) ([]string, error) {
	due, pods := l.duePods()
	l.pending = 0
	for _, key := range due[min(len(due), maxReviews):] {
		if _, known := pods[key]; !known {
			// The time of the last holder determines the position in the order.
			pods[key] = holderPod{at: l.pods[key].at}
			l.pending++
		}
	}
	for _, key := range due[:min(len(due), maxReviews)] {
		account, err := l.accountOf(ctx, key.Namespace, Identity(l.seen[key].holder))
		if apierrors.IsForbidden(err) {
			l.pods, l.pending = pods, 0
			return []string{"the pods that hold Leases " + api.LeaseName + ": " + err.Error()}, nil
		}
		if err != nil {
			return nil, err
		}
		pods[key] = holderPod{holder: l.seen[key].holder, account: account, at: l.clock.Now()}
	}
	l.pods = pods
	return nil, nil
}

// duePods returns the Leases whose holders must be read, in order, and the known pods of all unchanged holders.
func (l *leaseObserver) duePods() ([]types.NamespacedName, map[types.NamespacedName]holderPod) {
	var due []types.NamespacedName
	pods := map[types.NamespacedName]holderPod{}
	for key, held := range l.seen {
		if slices.Contains(l.trusted, key.Namespace) {
			continue
		}
		known := l.pods[key]
		if known.holder == held.holder {
			pods[key] = known
		}
		if known.holder != held.holder || l.clock.Since(known.at) >= reviewLifetime {
			due = append(due, key)
		}
	}
	slices.SortFunc(due, func(a, b types.NamespacedName) int {
		return cmp.Or(l.pods[a].at.Compare(l.pods[b].at), strings.Compare(a.Namespace, b.Namespace))
	})
	return due, pods
}

// accountOf returns the service account of a pod; empty if there is no such pod or it has ended.
func (l *leaseObserver) accountOf(ctx context.Context, namespace, name string) (string, error) {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "", nil
	}
	var pod corev1.Pod
	err := l.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &pod)
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("reading pod %s/%s, which may be a supervisor: %w", namespace, name, err)
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return "", nil
	}
	return serviceAccount(&pod.Spec), nil
}

// unconfirmed returns the Leases that count and were not seen to be renewed for their whole duration, as
// NAMESPACE/NAME.
func (l *leaseObserver) unconfirmed() []string {
	var unconfirmed []string
	for key, held := range l.seen {
		if held.verdict == Competes && held.changed.IsZero() && l.clock.Since(held.first) < held.duration+leaseSlack {
			unconfirmed = append(unconfirmed, key.String())
		}
	}
	slices.Sort(unconfirmed)
	return unconfirmed
}
