package clusterserviceversion

import (
	"fmt"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply/warnings"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/cleanup"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
)

// emitPhaseChange records an Event when the phase or its reason has changed. A new message alone is only
// in the status.
func emitPhaseChange(recorder events.EventRecorder, csv *operatorsv1alpha1.ClusterServiceVersion, t phase.Transition) {
	before := csv.Status
	if before.Phase == t.Phase && before.Reason == t.Reason {
		return
	}
	kind := corev1.EventTypeNormal
	if t.Phase == operatorsv1alpha1.CSVPhaseFailed {
		kind = corev1.EventTypeWarning
	}
	recorder.Eventf(csv, nil, kind, string(t.Reason), string(t.Phase), "%s", api.EventNote(t.Message))
}

// emitDetail records the detail of a new cause. Its Event has another reason than the one of the phase, whose
// note clients compare. Errors that may be temporary get no Event.
func emitDetail(recorder events.EventRecorder, csv *operatorsv1alpha1.ClusterServiceVersion, cause *api.Cause) {
	before, _ := api.CauseOf(csv)
	if cause == nil || cause.Detail == "" || cause.PhaseMessage != "" || cause.Detail == before.Detail {
		return
	}
	note := cause.Detail
	if cause.Remedy != "" {
		note += "; " + cause.Remedy
	}
	recorder.Eventf(csv, nil, corev1.EventTypeWarning, api.ReasonBlocked, "Install", "%s", api.EventNote(note))
}

// emitProxiesUnknown records why a version does not change. It does so once for each time that the
// status did not show it.
func emitProxiesUnknown(recorder events.EventRecorder, csv *operatorsv1alpha1.ClusterServiceVersion, err error) {
	if before, _ := api.CauseOf(csv); before.Reason != api.ReasonProxiesUnknown {
		recorder.Eventf(csv, nil, corev1.EventTypeWarning, api.ReasonProxiesUnknown, "Install", "%s", api.EventNote(err.Error()))
	}
}

// emitCleanup records that a clean-up waits, and again when it needs a user.
func emitCleanup(recorder events.EventRecorder, csv *operatorsv1alpha1.ClusterServiceVersion, report *cleanup.Report) {
	const reason = operatorsv1alpha1.CSVReasonWaitingForCleanupToComplete
	kind := corev1.EventTypeNormal
	before, _ := api.CauseOf(csv)
	switch {
	case report.Cause != nil && report.Cause.Reason != before.Reason:
		kind = corev1.EventTypeWarning
	case csv.Status.Reason == reason:
		return
	}
	recorder.Eventf(csv, nil, kind, string(reason), "Cleanup", "%s", api.EventNote(report.Message))
}

// emitResourcesKept records that custom resources stay although the version requests their removal.
func emitResourcesKept(recorder events.EventRecorder, csv *operatorsv1alpha1.ClusterServiceVersion, left []string) {
	if len(left) > 0 {
		recorder.Eventf(csv, nil, corev1.EventTypeNormal, "CustomResourcesLeft", "Cleanup", "%s",
			api.EventNote("custom resources stay: "+strings.Join(left, "; ")))
	}
}

// emitWarnings records the warnings of the API server about a Deployment of a version. The
// field path of the Event names the Deployment.
func emitWarnings(recorder events.EventRecorder, csv *operatorsv1alpha1.ClusterServiceVersion, index int, name string, texts []string) {
	if len(texts) == 0 {
		return
	}
	about := &corev1.ObjectReference{
		APIVersion: operatorsv1alpha1.ClusterServiceVersionAPIVersion, Kind: operatorsv1alpha1.ClusterServiceVersionKind,
		Namespace: csv.Namespace, Name: csv.Name, UID: csv.UID, FieldPath: fmt.Sprintf("spec.install.spec.deployments[%d]", index),
	}
	recorder.Eventf(about, nil, corev1.EventTypeWarning, api.ReasonAppliedWithWarnings, "Install", "%s",
		api.EventNote(warnings.Note(csv.Name, "Deployment", name, texts, len(texts))))
}
