package catalogsource

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/deployment"
)

// autoscalerInterval is how soon the controller detects the deletion of an autoscaler. It detects a
// new autoscaler at its first scaling, which changes the Deployment.
const autoscalerInterval = 30 * time.Second

// autoscalerOf returns the name of the HorizontalPodAutoscaler that scales the Deployment of a
// catalog; empty if there is none. If there are several, it returns the first by name. An
// autoscaler with a deletion timestamp counts, because it scales until its finalizers are removed.
func autoscalerOf(all []autoscalingv2.HorizontalPodAutoscaler, name string) string {
	found := ""
	for i := range all {
		target := &all[i].Spec.ScaleTargetRef
		group := schema.FromAPIVersionAndKind(target.APIVersion, target.Kind).Group
		scales := group == appsv1.GroupName && target.Kind == deployment.KindDeployment.Kind && target.Name == name
		if scales && (found == "" || all[i].Name < found) {
			found = all[i].Name
		}
	}
	return found
}

// withAutoscaler returns h with the autoscaler of the catalog in Available, and with the time of the
// next check for it.
func (h reconcileResult) withAutoscaler(in *deployment.Input) reconcileResult {
	if in.Scaled() == 0 {
		return h
	}
	text := "; HorizontalPodAutoscaler " + in.Autoscaler + " sets the number of replicas"
	if _, given := in.Source.Annotations[api.AnnotationReplicas]; given {
		text += ", and annotation " + api.AnnotationReplicas + " has no effect"
	}
	h.conditions = slices.Clone(h.conditions)
	for i := range h.conditions {
		if h.conditions[i].Type == api.ConditionAvailable {
			h.conditions[i].Message += text
		}
	}
	return h.requeueWithin(autoscalerInterval)
}
