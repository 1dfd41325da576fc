package phase

import (
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
)

// Status returns the status after a transition. The list of conditions grows only when the phase or
// the reason changes, and keeps the newest twenty.
func Status(before operatorsv1alpha1.ClusterServiceVersionStatus, t Transition, o Input) operatorsv1alpha1.ClusterServiceVersionStatus {
	scratch := operatorsv1alpha1.ClusterServiceVersion{Status: *before.DeepCopy()}
	// The API stores whole seconds; finer times would differ from the stored ones in each
	// comparison.
	at := metav1.NewTime(o.Now.Truncate(time.Second))
	if before.Phase != t.Phase || before.Reason != t.Reason || before.Message != t.Message {
		scratch.SetPhase(t.Phase, t.Reason, t.Message, &at)
	}
	if t.Cause != nil && t.Cause.PhaseMessage != "" && newError(o.CSV, t.Cause) {
		scratch.Status.LastUpdateTime = &at
	}
	if !equality.Semantic.DeepEqual(before.RequirementStatus, o.Requirements.Statuses) {
		scratch.SetRequirementStatus(o.Requirements.Statuses)
		scratch.Status.LastUpdateTime = &at
	}
	if issued, rotate := o.Webhooks.Certificates.IssuedAt, o.Webhooks.Certificates.RotateAt; !rotate.IsZero() {
		scratch.Status.CertsLastUpdated = secondsOf(issued, before.CertsLastUpdated)
		scratch.Status.CertsRotateAt = secondsOf(rotate, before.CertsRotateAt)
	}
	return scratch.Status
}

// newError reports whether a cause has another error than the one that csv shows.
func newError(csv *operatorsv1alpha1.ClusterServiceVersion, cause *api.Cause) bool {
	shown, _ := api.CauseOf(csv)
	return cause.Detail != shown.Detail
}

// secondsOf returns a time as the API stores it, or the previous pointer when it is equal.
func secondsOf(t time.Time, before *metav1.Time) *metav1.Time {
	at := metav1.NewTime(t.Truncate(time.Second))
	if before.Equal(&at) {
		return before
	}
	return &at
}
