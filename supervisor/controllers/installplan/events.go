package installplan

import (
	"fmt"

	"github.com/go-logr/logr"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply/warnings"
)

// actionInstall is the action of all Events of this package.
const actionInstall = "Install"

// reporter publishes what a pass finds about the objects of a plan.
type reporter interface {
	// warned reports the warnings about a step that was applied.
	warned(index int, step *operatorsv1alpha1.Step, w stepWarnings)
	// adopted reports an object that had no owner and that a version owns now.
	adopted(object, version string)
	// invalid reports a custom resource that is invalid in a new version that has its own
	// conversion webhook.
	invalid(message string)
}

// eventReporter creates Events of a plan.
type eventReporter struct {
	recorder events.EventRecorder
	plan     *operatorsv1alpha1.InstallPlan
	// notes holds the last note about each step, by index.
	notes map[int]string
}

// warned creates an Event unless the last one of the step has the same note.
func (r *eventReporter) warned(index int, s *operatorsv1alpha1.Step, w stepWarnings) {
	note := warnings.Note(s.Resolving, s.Resource.Kind, s.Resource.Name, w.texts, w.count())
	last, warnedBefore := r.notes[index]
	if last == note {
		return
	}
	r.notes[index] = note
	if !warnedBefore {
		warnedSteps.Inc()
	}
	if n := w.dropped(); n > 0 {
		droppedFields.WithLabelValues(s.Resource.Kind).Add(float64(n))
	}
	p := r.plan
	ref := &corev1.ObjectReference{
		APIVersion: operatorsv1alpha1.InstallPlanAPIVersion, Kind: operatorsv1alpha1.InstallPlanKind,
		Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion,
		FieldPath: fmt.Sprintf("status.plan[%d]", index),
	}
	r.recorder.Eventf(ref, nil, corev1.EventTypeWarning, api.ReasonAppliedWithWarnings, actionInstall, "%s", api.EventNote(note))
}

func (r *eventReporter) adopted(object, version string) {
	r.recorder.Eventf(r.plan, nil, corev1.EventTypeWarning, api.ReasonObjectTakenOver, actionInstall, "%s", api.EventNote(fmt.Sprintf(
		"%s existed without an owner; it now has the content of %s, and is deleted with that version: if you need your own object, create it with another name", object, version)))
}

func (r *eventReporter) invalid(message string) {
	r.recorder.Eventf(r.plan, nil, corev1.EventTypeWarning, api.ReasonCRDValidation, actionInstall, "%s", api.EventNote(message))
}

// logReporter logs what a pass that writes nothing finds.
type logReporter struct{ logger logr.Logger }

func (logReporter) warned(int, *operatorsv1alpha1.Step, stepWarnings) {}

func (logReporter) adopted(string, string) {}

func (r logReporter) invalid(message string) {
	r.logger.Info("Custom resource would not be valid", "complaint", message)
}

// recordFailure creates an Event of a failed plan. The Subscriptions have Events of the other phases.
func recordFailure(recorder events.EventRecorder, p *operatorsv1alpha1.InstallPlan) {
	message := p.Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled).Message
	recorder.Eventf(p, nil, corev1.EventTypeWarning, string(p.Status.Phase), actionInstall, "%s", api.EventNote(message))
}
