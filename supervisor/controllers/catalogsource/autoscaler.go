package catalogsource

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
)

// autoscalerInterval is how soon it is noticed that an autoscaler has gone. That one
// has come is noticed as soon as it scales, for the Deployment changes.
const autoscalerInterval = 30 * time.Second

// autoscalerOf names the HorizontalPodAutoscaler that scales the Deployment of a
// catalog, the first by name; empty when there is none. One that is being deleted
// scales until it is gone, and a finalizer may keep it for long.
func autoscalerOf(all []autoscalingv2.HorizontalPodAutoscaler, deployment string) string {
	found := ""
	for i := range all {
		target := &all[i].Spec.ScaleTargetRef
		group := schema.FromAPIVersionAndKind(target.APIVersion, target.Kind).Group
		scales := group == appsv1.GroupName && target.Kind == kindDeployment.Kind && target.Name == deployment
		if scales && (found == "" || all[i].Name < found) {
			found = all[i].Name
		}
	}
	return found
}

// lookForAutoscaler finds what scales the Deployment of a catalog. They are read from
// the API server and not from a copy: a Deployment that shows what an autoscaler did
// has to be seen together with that autoscaler, or its work would be undone.
func (r *Reconciler) lookForAutoscaler(ctx context.Context, o *Observation) error {
	if o.Deployment == nil {
		return nil
	}
	var list autoscalingv2.HorizontalPodAutoscalerList
	err := r.children.live.List(ctx, &list, client.InNamespace(o.Source.Namespace))
	switch {
	case apierrors.IsForbidden(err):
		o.AutoscalersHidden = true
	case apierrors.IsNotFound(err), apimeta.IsNoMatchError(err):
		// This API server has none at all.
	case err != nil:
		return fmt.Errorf("listing the HorizontalPodAutoscalers of namespace %s: %w", o.Source.Namespace, err)
	default:
		o.Autoscaler = autoscalerOf(list.Items, o.Deployment.Name)
	}
	return nil
}

// scaled is how many replicas an autoscaler gave the Deployment; 0 when none did. At
// 0 replicas an autoscaler does nothing, and the catalog would stay away.
func (o *Observation) scaled() int {
	if o.Autoscaler == "" || o.Deployment == nil || o.Deployment.Spec.Replicas == nil {
		return 0
	}
	return int(*o.Deployment.Spec.Replicas)
}

// tellAutoscaler says that an autoscaler sets the number of replicas, and looks again
// whether it still does.
func (h *hosted) tellAutoscaler(o *Observation) {
	if o.scaled() == 0 {
		return
	}
	h.soonest(autoscalerInterval)
	who := "; HorizontalPodAutoscaler " + o.Autoscaler + " sets the number of replicas"
	if _, given := o.Source.Annotations[api.AnnotationReplicas]; given {
		who += ", and annotation " + api.AnnotationReplicas + " has no effect"
	}
	for i := range h.conditions {
		if h.conditions[i].Type == api.ConditionAvailable {
			h.conditions[i].Message += who
		}
	}
}

// undoesScaling says what it is that applying a Deployment undoes; empty when nobody
// has scaled it, or when another number is wanted than was applied.
func (o *Observation) undoesScaling(wanted *unstructured.Unstructured) string {
	d := o.Deployment
	if d == nil || d.Spec.Replicas == nil || d.Annotations[api.AnnotationAppliedHash] != wanted.GetAnnotations()[api.AnnotationAppliedHash] {
		return ""
	}
	replicas, _, err := unstructured.NestedFieldNoCopy(wanted.Object, "spec", "replicas")
	if err != nil || number(replicas) == number(*d.Spec.Replicas) {
		return ""
	}
	return fmt.Sprintf("from %d to %v replicas", *d.Spec.Replicas, replicas)
}

// tellUndone makes an Event of a number of replicas that was set back while nobody
// could tell whether an autoscaler had set it.
func (r *Reconciler) tellUndone(o *Observation, all []*unstructured.Unstructured) {
	if !o.AutoscalersHidden {
		return
	}
	for _, wanted := range all {
		if wanted.GroupVersionKind() != kindDeployment {
			continue
		}
		if undone := o.undoesScaling(wanted); undone != "" {
			r.recorder.Eventf(reference(o.Source), nil, corev1.EventTypeWarning, "ScalingUndone", "Host", "%s",
				api.EventNote("Deployment "+wanted.GetName()+" was set back "+undone+
					"; if a HorizontalPodAutoscaler had scaled it, allow the supervisor to list horizontalpodautoscalers of API group autoscaling, which it may not"))
		}
	}
}
