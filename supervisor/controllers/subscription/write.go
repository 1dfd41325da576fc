package subscription

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/apply"
)

// Pauses before the next pass over a namespace. Most events arrive before.
const (
	// afterConflict is the pause after a conflict with another client.
	afterConflict = 100 * time.Millisecond
	// afterCacheLag is the pause where the caches lack objects.
	afterCacheLag = time.Second
	// retryAfter is the pause after a failure that may pass without an event.
	retryAfter = 5 * time.Second
)

// errCacheLag reports that the API server has objects that the caches lack. Each kind has its own
// watch. After an outage of the API server, versions may arrive half a minute later than their
// plans. They would then seem to be missing.
var errCacheLag = errors.New("the cache lacks objects of the namespace")

// stale reports whether a decision depends on an outdated state of the namespace: another client
// has written an object, or the caches lack one. That is no failure, and the status does not show
// it.
func stale(err error) bool { return apierrors.IsConflict(err) || errors.Is(err, errCacheLag) }

// absorbConflict returns when to retry instead of an error that shows an outdated state: not every
// conflict comes with an event. It returns other errors unchanged.
func absorbConflict(err error, now time.Time) (retry time.Time, other error) {
	switch {
	case errors.Is(err, errCacheLag):
		return now.Add(afterCacheLag), nil
	case stale(err) || apierrors.IsNotFound(err):
		return now.Add(afterConflict), nil
	default:
		return time.Time{}, err
	}
}

// earliest returns the earliest of some times; zero times do not count.
func earliest(times ...time.Time) time.Time {
	times = slices.DeleteFunc(times, time.Time.IsZero)
	if len(times) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(times, time.Time.Compare)
}

// verifyCache returns errCacheLag if the caches lack an existing version or plan. It has to run
// before the first plan is created: a version that seems to be missing would be installed twice.
func verifyCache(ctx context.Context, live client.Reader, o *namespaceState) error {
	cached := map[string]bool{}
	for _, csv := range o.versions {
		cached[string(csv.UID)] = true
	}
	for _, p := range o.plans {
		cached[string(p.UID)] = true
	}
	for _, kind := range []string{operatorsv1alpha1.ClusterServiceVersionKind, operatorsv1alpha1.InstallPlanKind} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(kind + "List"))
		if err := live.List(ctx, list, client.InNamespace(o.namespace)); err != nil {
			return fmt.Errorf("listing every %s of namespace %s: %w", kind, o.namespace, err)
		}
		for i := range list.Items {
			m := &list.Items[i]
			_, copied := m.Labels[operatorsv1alpha1.CopiedLabelKey]
			if !cached[string(m.UID)] && !copied && m.DeletionTimestamp == nil {
				return fmt.Errorf("%w: %s %s/%s", errCacheLag, kind, o.namespace, m.Name)
			}
		}
	}
	return nil
}

// patch writes the changes of an object, and fails if the object has changed since it was read.
func patch(ctx context.Context, c client.Client, before, after client.Object) error {
	return apply.Patch(ctx, c, after, apply.MergeFromLocked(before))
}

// patchStatus writes a Subscription's status when it differs, and returns the Subscription with the
// status and the version that it has then.
func patchStatus(
	ctx context.Context, c client.Client, before *operatorsv1alpha1.Subscription, status operatorsv1alpha1.SubscriptionStatus, now metav1.Time,
) (*operatorsv1alpha1.Subscription, error) {
	if !changed(before.Status, status, equality.Semantic.DeepEqual) {
		return before, nil
	}
	after := before.DeepCopy()
	after.Status = status
	after.Status.LastUpdated = now
	// The list of conditions is replaced as a whole. The write must therefore fail if another client
	// has changed it.
	patch := apply.MergeFromLocked(before)
	content, err := patch.Data(after)
	if err != nil {
		return nil, fmt.Errorf("encoding the status of Subscription %s/%s: %w", before.Namespace, before.Name, err)
	}
	written := metadataOf(before)
	if err := apply.PatchStatus(ctx, c, written, client.RawPatch(patch.Type(), content), apply.UserAgent); err != nil {
		return nil, fmt.Errorf("writing the status of Subscription %s/%s: %w", before.Namespace, before.Name, err)
	}
	after.ResourceVersion = written.ResourceVersion
	return after, nil
}

// changed reports whether a status differs, apart from the time of its update.
func changed(before, after operatorsv1alpha1.SubscriptionStatus, equal func(a, b any) bool) bool {
	after.LastUpdated = before.LastUpdated
	return !equal(before, after)
}

// metadataOf returns the identity of a Subscription for a write that the API server answers with
// the metadata of the object alone. A namespace may have many Subscriptions, each with a large
// configuration.
func metadataOf(sub *operatorsv1alpha1.Subscription) *metav1.PartialObjectMetadata {
	meta := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: sub.Namespace, Name: sub.Name}}
	meta.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.SubscriptionKind))
	return meta
}
