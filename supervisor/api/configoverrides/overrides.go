// Package configoverrides parses the overrides for an operator's Deployments that spec.config of a Subscription has
// no field for. They are in the annotation chandlery.dev/config.
package configoverrides

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

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
	// PodLabels are added to the labels of the pods. A label of the bundle keeps its value, because the Deployment may
	// select its pods by it.
	PodLabels map[string]string `json:"podLabels,omitempty"`
	// PodSecurityContext replaces that of the pods.
	PodSecurityContext *corev1.PodSecurityContext `json:"podSecurityContext,omitempty"`
	// Containers are the changes to single containers, by the container's name.
	Containers map[string]Container `json:"containers,omitempty"`
	// CertificateIssuer is the issuer of cert-manager for the certificates of the operator's webhooks and APIs; nil for
	// certificates of the supervisor.
	CertificateIssuer *CertificateIssuer `json:"certificateIssuer,omitempty"`
}

// CertificateIssuer is a reference to an issuer of cert-manager.
type CertificateIssuer struct {
	// Name is the name of the issuer.
	Name string `json:"name"`
	// Kind is Issuer or ClusterIssuer, or a kind of another group; Issuer if empty.
	Kind string `json:"kind,omitempty"`
	// Group is the API group of the issuer; that of cert-manager if empty.
	Group string `json:"group,omitempty"`
}

// Container is the changes to one container.
type Container struct {
	// Resources replace those of the container, also those from spec.config.
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// SecurityContext replaces that of the container.
	SecurityContext *corev1.SecurityContext `json:"securityContext,omitempty"`
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
	err := decoder.Decode(&o)
	if err == nil {
		err = o.validate()
	}
	if err != nil {
		return Overrides{}, fmt.Errorf("annotation %s of Subscription %s/%s: %w; correct or remove it",
			api.AnnotationConfig, subscription.GetNamespace(), subscription.GetName(), err)
	}
	return o, nil
}

// validate returns an error for the first value that every API server refuses.
func (o Overrides) validate() error {
	if o.Replicas != nil && *o.Replicas < 0 {
		return fmt.Errorf("replicas is %d and must not be negative", *o.Replicas)
	}
	if refused := validation.ValidateLabels(o.PodLabels, field.NewPath("podLabels")); len(refused) > 0 {
		return refused[0]
	}
	if o.CertificateIssuer != nil && o.CertificateIssuer.Name == "" {
		return errors.New("certificateIssuer.name is empty")
	}
	return nil
}
