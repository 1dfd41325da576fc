// Package configoverrides parses the overrides for an operator's Deployments that spec.config of a Subscription has
// no field for. They are in the annotation chandlery.dev/config.
package configoverrides

import (
	"bytes"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
)

// Overrides are changes to the Deployments of an operator.
type Overrides struct {
	// Replicas is the number of pods of each Deployment.
	Replicas *int32 `json:"replicas,omitempty"`
	// Args are arguments appended to those of a container, by the container's name.
	Args map[string][]string `json:"args,omitempty"`
	// ImagePullSecrets are Secrets in the operator's namespace.
	ImagePullSecrets []PullSecret `json:"imagePullSecrets,omitempty"`
	// PriorityClassName is the priority class of the pods.
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// TopologySpreadConstraints replace those of the pods.
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
}

// Parse returns the overrides of a Subscription; the zero Overrides if it has no annotation. The error names the
// Subscription and the remedy.
func Parse(subscription metav1.Object) (Overrides, error) {
	text, ok := subscription.GetAnnotations()[api.AnnotationConfig]
	if !ok {
		return Overrides{}, nil
	}
	var o Overrides
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&o); err != nil {
		return Overrides{}, fmt.Errorf("annotation %s of Subscription %s/%s: %w; correct or remove it",
			api.AnnotationConfig, subscription.GetNamespace(), subscription.GetName(), err)
	}
	if o.Replicas != nil && *o.Replicas < 0 {
		return Overrides{}, fmt.Errorf("annotation %s of Subscription %s/%s: replicas is %d and must not be negative; correct or remove it",
			api.AnnotationConfig, subscription.GetNamespace(), subscription.GetName(), *o.Replicas)
	}
	return o, nil
}
