package clusterserviceversion

import (
	"context"
	"fmt"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
	"github.com/chandlery/chandlery/supervisor/informer/cachelag"
)

// versionWriter writes ClusterServiceVersions, and knows which of its writes the cache lacks.
type versionWriter struct {
	client client.Client
	clock  clock.PassiveClock
	lag    cachelag.Tracker
}

// isStale reports whether the cache lacks a write of csv.
func (w *versionWriter) isStale(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	return w.lag.Behind(csv, w.clock.Now())
}

// write writes the status of a version and its cause, each if it differs. A cause is written before
// the status that it explains and removed after it, so that an interrupted write can be continued.
func (w *versionWriter) write(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion,
	want operatorsv1alpha1.ClusterServiceVersionStatus, cause *api.Cause,
) error {
	written, err := csv, error(nil)
	if cause != nil {
		written, err = writeCause(ctx, w.client, written, cause)
	}
	if err == nil {
		written, err = writeStatus(ctx, w.client, written, want)
	}
	if err == nil && cause == nil {
		written, err = writeCause(ctx, w.client, written, nil)
	}
	if err == nil && written != csv {
		w.lag.Wrote(written, w.clock.Now())
	}
	return err
}

// writeCause patches only the annotation of the cause, and returns the version with it. The lock is
// that of writeStatus.
func writeCause(ctx context.Context, writer client.Client, csv *operatorsv1alpha1.ClusterServiceVersion,
	cause *api.Cause,
) (*operatorsv1alpha1.ClusterServiceVersion, error) {
	value, differs := causeValue(csv, cause)
	if !differs {
		return csv, nil
	}
	patch := apply.MergePatch{"metadata": map[string]any{
		"resourceVersion": csv.ResourceVersion, "annotations": map[string]*string{api.AnnotationCause: value},
	}}
	changed := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: csv.Namespace, Name: csv.Name}}
	if err := apply.Patch(ctx, writer, changed, patch); err != nil {
		return nil, fmt.Errorf("writing the cause of ClusterServiceVersion %s/%s: %w", csv.Namespace, csv.Name, err)
	}
	return changed, nil
}

// causeValue returns the value of the annotation of a cause, nil for none, and whether csv has another.
func causeValue(csv *operatorsv1alpha1.ClusterServiceVersion, cause *api.Cause) (value *string, differs bool) {
	wanted := &metav1.ObjectMeta{}
	api.SetCause(wanted, cause)
	before, found := csv.Annotations[api.AnnotationCause]
	text, set := wanted.Annotations[api.AnnotationCause]
	if set {
		value = &text
	}
	return value, before != text || found != set
}

// writeStatus patches only the status, so that specs with large icons and examples are not sent. It
// returns the version with the status. The optimistic lock makes the write fail if another client,
// in particular another supervisor, has written since csv was read. A merge patch replaces whole
// lists, and a phase must follow from the one before it.
func writeStatus(ctx context.Context, writer client.Client, csv *operatorsv1alpha1.ClusterServiceVersion,
	want operatorsv1alpha1.ClusterServiceVersionStatus,
) (*operatorsv1alpha1.ClusterServiceVersion, error) {
	if equality.Semantic.DeepEqual(want, csv.Status) {
		return csv, nil
	}
	meta := metav1.ObjectMeta{Namespace: csv.Namespace, Name: csv.Name, ResourceVersion: csv.ResourceVersion}
	base := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: meta, Status: csv.Status}
	changed := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: meta, Status: want}
	if err := apply.PatchStatus(ctx, writer, changed, apply.MergeFromLocked(base)); err != nil {
		return nil, fmt.Errorf("writing phase %s of ClusterServiceVersion %s/%s: %w", want.Phase, csv.Namespace, csv.Name, err)
	}
	return changed, nil
}

// setFinalizer adds or removes the finalizer. It uses an optimistic lock because a merge patch
// replaces the whole list of finalizers.
func (w *versionWriter) setFinalizer(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion,
	change func(client.Object, string) bool,
) error {
	changed := csv.DeepCopy()
	if !change(changed, api.FinalizerCleanup) {
		return nil
	}
	if err := apply.Patch(ctx, w.client, changed, apply.MergeFromLocked(csv)); err != nil {
		return fmt.Errorf("changing finalizers of ClusterServiceVersion %s/%s: %w", csv.Namespace, csv.Name, err)
	}
	if csv.DeletionTimestamp.IsZero() {
		w.lag.Wrote(changed, w.clock.Now())
	} else {
		w.lag.Forget(csv.UID)
	}
	return nil
}

// annotate writes labels and annotations of a version in its OperatorGroup, and a cause. Without
// a cause, that of csv stays: only write removes it.
func (w *versionWriter) annotate(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion,
	group *operatorsv1.OperatorGroup, cause *api.Cause,
) error {
	changes := phase.MetadataChanges(csv, group)
	if value, differs := causeValue(csv, cause); cause != nil && differs {
		changes.Annotations[api.AnnotationCause] = value
	}
	patch := apply.MergePatch{"metadata": map[string]any{
		"resourceVersion": csv.ResourceVersion,
		"annotations":     changes.Annotations,
		"labels":          changes.Labels,
	}}
	target := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: csv.Namespace, Name: csv.Name}}
	if err := apply.Patch(ctx, w.client, target, patch); err != nil {
		return fmt.Errorf("annotating ClusterServiceVersion %s/%s: %w", csv.Namespace, csv.Name, err)
	}
	w.lag.Wrote(target, w.clock.Now())
	return nil
}

// delete deletes a ClusterServiceVersion if it has not changed since it was read.
func (w *versionWriter) delete(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion) error {
	target := csv.DeepCopy()
	target.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.ClusterServiceVersionKind))
	return apply.Delete(ctx, w.client, target)
}
