// Package extras reads the settings for an operator's Deployments that spec.config of a Subscription has no
// field for.
package extras

import (
	"bytes"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
)

// Extras are changes to Deployments that users need and the API of Subscriptions does not offer.
type Extras struct {
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

// Of returns the settings of a Subscription; the zero Extras if it has no annotation. The error names the
// Subscription and the remedy.
func Of(subscription metav1.Object) (Extras, error) {
	text, ok := subscription.GetAnnotations()[api.AnnotationConfig]
	if !ok {
		return Extras{}, nil
	}
	var e Extras
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&e); err != nil {
		return Extras{}, fmt.Errorf("annotation %s of Subscription %s/%s: %w; correct or remove it",
			api.AnnotationConfig, subscription.GetNamespace(), subscription.GetName(), err)
	}
	if e.Replicas != nil && *e.Replicas < 0 {
		return Extras{}, fmt.Errorf("annotation %s of Subscription %s/%s: replicas is %d and must not be negative; correct or remove it",
			api.AnnotationConfig, subscription.GetNamespace(), subscription.GetName(), *e.Replicas)
	}
	return e, nil
}
