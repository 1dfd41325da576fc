package catalogsource

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// autoscalerInterval is how soon it is noticed that an autoscaler has gone. That one
// has come is noticed as soon as it scales, for the Deployment changes.
const autoscalerInterval = 30 * time.Second

// autoscalerOf names the HorizontalPodAutoscaler that scales the Deployment of a
// catalog, the first by name; empty when there is none.
func autoscalerOf(all []autoscalingv2.HorizontalPodAutoscaler, deployment string) string {
	found := ""
	for i := range all {
		target := &all[i].Spec.ScaleTargetRef
		group := schema.FromAPIVersionAndKind(target.APIVersion, target.Kind).Group
		scales := group == appsv1.GroupName && target.Kind == kindDeployment.Kind && target.Name == deployment
		if scales && all[i].DeletionTimestamp == nil && (found == "" || all[i].Name < found) {
			found = all[i].Name
		}
	}
	return found
}

// autoscaler finds what scales a catalog. Where autoscalers may not be read, or are
// not served, there is none. They are read from the API server and not watched: a
// copy that lags behind the Deployment would undo what an autoscaler just did.
func (r *Reconciler) autoscaler(ctx context.Context, catalog client.ObjectKey) (string, error) {
	var list autoscalingv2.HorizontalPodAutoscalerList
	err := r.children.live.List(ctx, &list, client.InNamespace(catalog.Namespace))
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err), apimeta.IsNoMatchError(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("listing the HorizontalPodAutoscalers of namespace %s: %w", catalog.Namespace, err)
	}
	return autoscalerOf(list.Items, catalog.Name), nil
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
func (h *hosted) tellAutoscaler(name string) {
	if name == "" {
		return
	}
	h.soonest(autoscalerInterval)
	for i := range h.conditions {
		h.conditions[i].Message += "; HorizontalPodAutoscaler " + name + " sets the number of replicas"
	}
}
