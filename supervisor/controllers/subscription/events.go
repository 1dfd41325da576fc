package subscription

import (
	"cmp"
	"context"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/transitionlog"
)

// announceTransitions counts transitions and emits an Event for each.
func announceTransitions(emitter events.EventRecorder, sub *operatorsv1alpha1.Subscription, added []transitionlog.Transition) {
	for _, t := range added {
		transitions.WithLabelValues(cmp.Or(t.Phase, "None"), string(t.Observed)).Inc()
		kind := corev1.EventTypeNormal
		if t.Phase == string(operatorsv1alpha1.InstallPlanPhaseFailed) || t.Phase == transitionlog.PhaseMissing {
			kind = corev1.EventTypeWarning
		}
		// Events of one object and reason are counted together unless they relate to
		// different ones.
		about := &corev1.ObjectReference{
			APIVersion: operatorsv1alpha1.SchemeGroupVersion.String(), Kind: operatorsv1alpha1.InstallPlanKind,
			Namespace: sub.Namespace, Name: t.Plan,
		}
		note := fmt.Sprintf("InstallPlan %s: %s", t.Plan, cmp.Or(t.Phase, "created"))
		if t.Phase == string(operatorsv1alpha1.InstallPlanPhaseRequiresApproval) {
			note += "; to approve it, set its spec.approved to true"
		}
		emitter.Eventf(sub, about, kind, cmp.Or(t.Reason, t.Phase), "Install", "%s", note)
	}
}

// announceStatus logs a written status and emits Events about new problems, and about a version that
// is installed or adopted.
func announceStatus(ctx context.Context, emitter events.EventRecorder, adopts bool, before, after *operatorsv1alpha1.Subscription) {
	if before == after {
		return
	}
	log.FromContext(ctx).Info("Wrote status", "subscription", after.Name, "state", after.Status.State,
		"currentCSV", after.Status.CurrentCSV, "installedCSV", after.Status.InstalledCSV)
	for _, c := range after.Status.Conditions {
		problem := c.Type == operatorsv1alpha1.SubscriptionResolutionFailed || c.Type == operatorsv1alpha1.SubscriptionBundleUnpackFailed ||
			c.Type == api.ConditionConfigInvalid
		if problem && !before.Status.GetCondition(c.Type).Equals(c) {
			emitter.Eventf(after, nil, corev1.EventTypeWarning, string(c.Type), "Resolve", "%s", api.EventNote(c.Message+remedyIn(after, c.Type)))
			if c.Type == operatorsv1alpha1.SubscriptionResolutionFailed {
				announceUnresolved(emitter, after.Namespace, c.Message)
			}
		}
	}
	if adopts && before.Status.CurrentCSV == "" {
		emitter.Eventf(after, nil, corev1.EventTypeNormal, "Adopted", "Resolve", "%s existed already and now belongs to this Subscription", after.Status.CurrentCSV)
		return
	}
	if before.Status.InstalledCSV != after.Status.InstalledCSV && after.Status.InstalledCSV != "" {
		emitter.Eventf(after, nil, corev1.EventTypeNormal, "Installed", "Install", "%s is installed", after.Status.InstalledCSV)
	}
}

// announceUnresolved emits the Event that OLM emits about the namespace of Subscriptions that cannot be resolved.
func announceUnresolved(emitter events.EventRecorder, namespace, message string) {
	about := &corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: namespace}
	emitter.Eventf(about, nil, corev1.EventTypeWarning, string(operatorsv1alpha1.SubscriptionResolutionFailed), "Resolve", "%s", api.EventNote(message))
}
