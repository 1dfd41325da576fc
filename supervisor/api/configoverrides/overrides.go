// Package configoverrides parses the overrides for an operator's Deployments that spec.config of a Subscription has
// no field for. They are in the annotation chandlery.dev/config.
package configoverrides

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/chandlery/chandlery/supervisor/api"
)

// Overrides are changes to the Deployments of an operator.
type Overrides struct {
	// Replicas is the number of pods of each Deployment.
	Replicas *int32 `json:"replicas,omitempty"`
	// Args are arguments appended to those of a container or init container, by its name.
	Args map[string][]string `json:"args,omitempty"`
	// ImagePullSecrets are Secrets in the operator's namespace. The annotation may have a name alone.
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
	// PriorityClassName is the priority class of the pods.
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// TopologySpreadConstraints replace those of the pods.
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
	// PodLabels are added to the labels of the pods. A label of the bundle keeps its value, because the Deployment may
	// select its pods by it.
	PodLabels map[string]string `json:"podLabels,omitempty"`
	// PodSecurityContext replaces that of the pods.
	PodSecurityContext *corev1.PodSecurityContext `json:"podSecurityContext,omitempty"`
	// Containers are the changes to single containers and init containers, by their names.
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
// Subscription, each invalid field with its path, what is allowed, and the remedy.
func Parse(subscription metav1.Object) (Overrides, error) {
	text, ok := subscription.GetAnnotations()[api.AnnotationConfig]
	if !ok {
		return Overrides{}, nil
	}
	o, err := parse([]byte(text))
	if err != nil {
		return Overrides{}, inAnnotation(subscription, fmt.Errorf("%w; correct or remove it", err))
	}
	return o, nil
}

// inAnnotation returns an error about the annotation of a Subscription.
func inAnnotation(subscription metav1.Object, err error) error {
	return fmt.Errorf("annotation %s of Subscription %s/%s: %w", api.AnnotationConfig, subscription.GetNamespace(), subscription.GetName(), err)
}

// parse validates a text by the schema and decodes it.
func parse(text []byte) (Overrides, error) {
	var values any
	strict, err := kjson.UnmarshalStrict(text, &values, kjson.DisallowDuplicateFields)
	if err != nil {
		return Overrides{}, syntaxError(text, err)
	}
	s, err := annotationSchema()
	if err != nil {
		return Overrides{}, err
	}
	expandPullSecrets(values)
	list := slices.Concat(strict, schemaErrors(nil, values, s))
	if len(list) > 0 {
		return Overrides{}, joined(list)
	}
	// Encode the validated values, since 2.0 is an integer by the schema and none for the decoder.
	if text, err = json.Marshal(values); err != nil {
		return Overrides{}, fmt.Errorf("encoding the settings: %w", err)
	}
	var o Overrides
	if err := json.Unmarshal(text, &o); err != nil {
		return Overrides{}, fmt.Errorf("decoding the settings: %w", err)
	}
	return o, joined(labelErrors(o.PodLabels))
}

// syntaxError returns an error with the position in a text at which it is no JSON.
func syntaxError(text []byte, err error) error {
	_, offset := kjson.SyntaxErrorOffset(err)
	before := text[:min(max(int(offset)-1, 0), len(text))]
	line, column := bytes.Count(before, []byte("\n"))+1, len(before)-bytes.LastIndexByte(before, '\n')
	return fmt.Errorf("the JSON is invalid at line %d, column %d: %w", line, column, err)
}

// expandPullSecrets replaces names in the list of pull secrets by references, as pods have them: {"name": "mirror"}.
func expandPullSecrets(values any) {
	object, _ := values.(map[string]any)
	list, _ := object["imagePullSecrets"].([]any)
	for i, item := range list {
		if name, is := item.(string); is {
			list[i] = map[string]any{"name": name}
		}
	}
}

// labelErrors returns an error for each label that every API server refuses.
func labelErrors(labels map[string]string) []error {
	var list []error
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		path := field.NewPath("podLabels").Key(key)
		for _, err := range validation.ValidateLabels(map[string]string{key: labels[key]}, path) {
			list = append(list, err)
		}
	}
	return list
}

// joined returns one error with the texts of a list; nil for an empty list.
func joined(list []error) error {
	if len(list) == 0 {
		return nil
	}
	texts := make([]string, 0, len(list))
	for _, err := range list {
		texts = append(texts, err.Error())
	}
	return errors.New(strings.Join(texts, "; ")) //nolint:err113 // the errors of users' fields have no types
}
