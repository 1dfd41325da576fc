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
	"github.com/chandlery/chandlery/supervisor/pager"
)

// autoscalerInterval is how soon the controller detects the deletion of an autoscaler. It detects a
// new autoscaler at its first scaling, which changes the Deployment.
const autoscalerInterval = 30 * time.Second

// autoscalerOf returns the name of the HorizontalPodAutoscaler that scales the Deployment of a
// catalog; empty if there is none. If there are several, it returns the first by name. An
// autoscaler with a deletion timestamp counts, because it scales until its finalizers are removed.
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

// lookForAutoscaler finds the autoscaler of a catalog's Deployment. It lists autoscalers from the
// API server instead of a cache. With a stale list, the controller could undo the scaling that the
// Deployment already shows.
func (r *Reconciler) lookForAutoscaler(ctx context.Context, o *Observation) error {
	if o.Deployment == nil {
		return nil
	}
	newPage := func() *autoscalingv2.HorizontalPodAutoscalerList { return &autoscalingv2.HorizontalPodAutoscalerList{} }
	err := pager.EachPage(ctx, r.children.live, newPage, func(page *autoscalingv2.HorizontalPodAutoscalerList) bool {
		// The API server lists by name, so that the first one found has the first name.
		o.Autoscaler = autoscalerOf(page.Items, o.Deployment.Name)
		return o.Autoscaler == ""
	}, client.InNamespace(o.Source.Namespace))
	switch {
	case apierrors.IsForbidden(err):
		o.AutoscalersHidden = true
		return nil
	case apierrors.IsNotFound(err), apimeta.IsNoMatchError(err):
		return nil // This API server has no autoscaling API.
	case err != nil:
		return fmt.Errorf("listing the HorizontalPodAutoscalers of namespace %s: %w", o.Source.Namespace, err)
	}
	return nil
}

// scaled returns the number of replicas that an autoscaler has set; 0 if there is none. An
// autoscaler ignores a Deployment with 0 replicas, so 0 counts as unset.
func (o *Observation) scaled() int {
	if o.Autoscaler == "" || o.Deployment == nil || o.Deployment.Spec.Replicas == nil {
		return 0
	}
	return int(*o.Deployment.Spec.Replicas)
}

// tellAutoscaler adds the autoscaler to the Available condition and schedules the next check for
// it.
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

// undoesScaling describes the change that applying a Deployment makes to its scaling. It is empty
// if the number of replicas matches, or if the applied configuration changes too.
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

// tellUndone emits an Event if the controller has reset the number of replicas without permission
// to list autoscalers.
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
