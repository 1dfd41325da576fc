package clusterserviceversion

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
)

// status returns the status after a transition. The list of conditions grows only when the phase or
// the reason changes, and keeps the newest twenty.
func status(before operatorsv1alpha1.ClusterServiceVersionStatus, t Transition, o Observation) operatorsv1alpha1.ClusterServiceVersionStatus {
	scratch := operatorsv1alpha1.ClusterServiceVersion{Status: *before.DeepCopy()}
	// The API stores whole seconds; finer times would differ from the stored ones in each
	// comparison.
	at := metav1.NewTime(o.Now.Truncate(time.Second))
	if before.Phase != t.Phase || before.Reason != t.Reason || before.Message != t.Message {
		scratch.SetPhase(t.Phase, t.Reason, t.Message, &at)
	}
	if !equality.Semantic.DeepEqual(before.RequirementStatus, o.Requirements.Statuses) {
		scratch.SetRequirementStatus(o.Requirements.Statuses)
		scratch.Status.LastUpdateTime = &at
	}
	if issued, rotate := o.Serving.IssuedAt, o.Serving.RotateAt; !rotate.IsZero() {
		scratch.Status.CertsLastUpdated = secondsOf(issued, before.CertsLastUpdated)
		scratch.Status.CertsRotateAt = secondsOf(rotate, before.CertsRotateAt)
	}
	return scratch.Status
}

// secondsOf returns a time as the API stores it, or the previous pointer when it is equal.
func secondsOf(t time.Time, before *metav1.Time) *metav1.Time {
	at := metav1.NewTime(t.Truncate(time.Second))
	if before.Equal(&at) {
		return before
	}
	return &at
}

// write writes the status of a version and its cause, each if it differs. A cause is written before
// the status that it explains and removed after it, so that an interrupted write can be continued.
func (r *reconciler) write(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion,
	want operatorsv1alpha1.ClusterServiceVersionStatus, cause *api.Cause,
) error {
	written, err := csv, error(nil)
	if cause != nil {
		written, err = writeCause(ctx, r.client, written, cause)
	}
	if err == nil {
		written, err = writeStatus(ctx, r.client, written, want)
	}
	if err == nil && cause == nil {
		written, err = writeCause(ctx, r.client, written, nil)
	}
	if err == nil && written != csv {
		r.lag.Wrote(written, r.clock.Now())
	}
	return err
}

// writeCause patches only the annotation of the cause, and returns the version with it. The lock is
// that of writeStatus.
func writeCause(ctx context.Context, writer client.Client, csv *operatorsv1alpha1.ClusterServiceVersion,
	cause *api.Cause,
) (*operatorsv1alpha1.ClusterServiceVersion, error) {
	wanted := &metav1.ObjectMeta{}
	api.SetCause(wanted, cause)
	before, found := csv.Annotations[api.AnnotationCause]
	text, set := wanted.Annotations[api.AnnotationCause]
	if before == text && found == set {
		return csv, nil
	}
	value := &text
	if !set {
		value = nil // removes the annotation
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": csv.ResourceVersion, "annotations": map[string]*string{api.AnnotationCause: value},
	}})
	if err != nil {
		return nil, fmt.Errorf("encoding the cause: %w", err)
	}
	changed := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: csv.Namespace, Name: csv.Name}}
	if err := writer.Patch(ctx, changed, client.RawPatch(types.MergePatchType, body), client.FieldOwner(api.FieldManager)); err != nil {
		return nil, fmt.Errorf("writing the cause of ClusterServiceVersion %s/%s: %w", csv.Namespace, csv.Name, err)
	}
	return changed, nil
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
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	if err := writer.Status().Patch(ctx, changed, patch, client.FieldOwner(api.FieldManager)); err != nil {
		return nil, fmt.Errorf("writing phase %s of ClusterServiceVersion %s/%s: %w", want.Phase, csv.Namespace, csv.Name, err)
	}
	return changed, nil
}
