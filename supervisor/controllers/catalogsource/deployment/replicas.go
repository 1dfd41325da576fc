package deployment

import (
	"fmt"
	"strconv"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandlery/chandlery/supervisor/api"
)

// replicas returns the number of replicas: the one that an autoscaler, the annotation or the
// settings determine. Otherwise it is two once two nodes are ready, and one before. It stays two
// while two nodes exist, ready or not. Reducing it after the failure of a node could delete the
// replica that still serves.
func (in *Input) replicas(pod *corev1.PodSpec, s *Settings) int {
	if scaled := in.Scaled(); scaled > 0 {
		return scaled
	}
	if requested, err := RequestedReplicas(in.Source); err == nil && requested > 0 {
		return requested
	}
	if s.Replicas > 0 {
		return s.Replicas
	}
	present, ready := in.usableNodes(pod)
	had := in.Deployment != nil && in.Deployment.Spec.Replicas != nil && *in.Deployment.Spec.Replicas > 1
	if ready >= 2 || (had && present >= 2) {
		return 2
	}
	return 1
}

// RequestedReplicas returns the number of replicas in the annotation of a CatalogSource; 0 without
// annotation.
func RequestedReplicas(source *operatorsv1alpha1.CatalogSource) (int, error) {
	text, given := source.Annotations[api.AnnotationReplicas]
	if !given {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > MaxReplicas {
		return 0, &annotationError{value: text}
	}
	return n, nil
}

type annotationError struct{ value string }

// Error returns the annotation, its value and the remedy.
func (e *annotationError) Error() string {
	return "annotation " + api.AnnotationReplicas + " is " + strconv.Quote(e.value) + ", and the default is used instead; set it to a whole number from 1 to " + strconv.Itoa(MaxReplicas)
}

// Scaled returns the number of replicas that an autoscaler has set; 0 if there is none. An
// autoscaler ignores a Deployment with 0 replicas, so 0 counts as unset.
func (in *Input) Scaled() int {
	if in.Autoscaler == "" || in.Deployment == nil || in.Deployment.Spec.Replicas == nil {
		return 0
	}
	return int(*in.Deployment.Spec.Replicas)
}

// UndoneScaling describes the change that applying a Deployment makes to its scaling. It is empty
// if the number of replicas matches, or if the applied configuration changes too.
func (in *Input) UndoneScaling(wanted *unstructured.Unstructured) string {
	d := in.Deployment
	if d == nil || d.Spec.Replicas == nil || d.Annotations[api.AnnotationAppliedHash] != wanted.GetAnnotations()[api.AnnotationAppliedHash] {
		return ""
	}
	replicas, _, err := unstructured.NestedFieldNoCopy(wanted.Object, "spec", "replicas")
	if err != nil || number(replicas) == number(*d.Spec.Replicas) {
		return ""
	}
	return fmt.Sprintf("from %d to %v replicas", *d.Spec.Replicas, replicas)
}
