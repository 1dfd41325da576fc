package copiedcsv

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
)

// templateOf returns the wanted content of a version's copies, which is independent of the namespace.
// It shares spec and status with the version and must not be modified.
func templateOf(csv *operatorsv1alpha1.ClusterServiceVersion) *operatorsv1alpha1.ClusterServiceVersion {
	template := &operatorsv1alpha1.ClusterServiceVersion{
		TypeMeta: metav1.TypeMeta{
			APIVersion: operatorsv1alpha1.ClusterServiceVersionAPIVersion,
			Kind:       operatorsv1alpha1.ClusterServiceVersionKind,
		},
		ObjectMeta: metav1.ObjectMeta{
			Name:        csv.Name,
			Labels:      map[string]string{api.LabelCopiedFrom: csv.Namespace},
			Annotations: map[string]string{},
		},
		Spec:   csv.Spec,
		Status: csv.Status,
	}
	for key, value := range csv.Labels {
		if isCopiedLabel(key) {
			template.Labels[key] = value
		}
	}
	for key, value := range csv.Annotations {
		if isCopiedAnnotation(key) {
			template.Annotations[key] = value
		}
	}
	template.Status.Reason = operatorsv1alpha1.CSVReasonCopied
	template.Status.Message = olmtext.Copied(csv.Namespace)
	return template
}

// digest identifies content. It is half of a SHA-256, which suffices to distinguish the contents of
// one object.
type digest [sha256.Size / 2]byte

// fingerprint identifies the content of a copy and its status, which are written separately.
type fingerprint struct {
	content, status digest
}

// fingerprintOf returns the fingerprint of a template.
func fingerprintOf(template *operatorsv1alpha1.ClusterServiceVersion) (fingerprint, error) {
	content, err := digestOf([]any{template.Labels, template.Annotations, &template.Spec})
	if err != nil {
		return fingerprint{}, fmt.Errorf("encoding ClusterServiceVersion %s: %w", template.Name, err)
	}
	status, err := digestOf(&template.Status)
	if err != nil {
		return fingerprint{}, fmt.Errorf("encoding the status of ClusterServiceVersion %s: %w", template.Name, err)
	}
	return fingerprint{content: content, status: status}, nil
}

func digestOf(value any) (digest, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return digest{}, err
	}
	sum := sha256.Sum256(text)
	return digest(sum[:len(digest{})]), nil
}

// sameContent reports whether a copy equals its template, ignoring the status.
func sameContent(have, want *operatorsv1alpha1.ClusterServiceVersion) bool {
	return equality.Semantic.DeepEqual(have.Labels, want.Labels) &&
		equality.Semantic.DeepEqual(have.Annotations, want.Annotations) &&
		equality.Semantic.DeepEqual(have.Spec, want.Spec)
}

func sameStatus(have, want *operatorsv1alpha1.ClusterServiceVersion) bool {
	return equality.Semantic.DeepEqual(have.Status, want.Status)
}

// manifestFor returns a template as it is applied to a namespace. It has no status, because the API has a
// separate subresource for it.
func manifestFor(template *operatorsv1alpha1.ClusterServiceVersion, namespace string) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(template)
	if err != nil {
		return nil, fmt.Errorf("encoding ClusterServiceVersion %s: %w", template.Name, err)
	}
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	u := &unstructured.Unstructured{Object: content}
	u.SetNamespace(namespace)
	return u, nil
}
