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
)

// imageOf returns what a copy of a version is to say, wherever it is. It shares spec and
// status with the version and is only to be read.
func imageOf(csv *operatorsv1alpha1.ClusterServiceVersion) *operatorsv1alpha1.ClusterServiceVersion {
	image := &operatorsv1alpha1.ClusterServiceVersion{
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
		if shownLabel(key) {
			image.Labels[key] = value
		}
	}
	for key, value := range csv.Annotations {
		if shownAnnotation(key) {
			image.Annotations[key] = value
		}
	}
	image.Status.Reason = operatorsv1alpha1.CSVReasonCopied
	image.Status.Message = fmt.Sprintf("The operator is running in %s but is managing this namespace", csv.Namespace)
	return image
}

// digest stands for a content. It is half of a SHA-256, which is enough to tell contents
// of one object apart.
type digest [sha256.Size / 2]byte

// fingerprint stands for what a copy says, in the two parts that are written apart.
type fingerprint struct {
	content, status digest
}

// fingerprintOf gives the fingerprint of an image.
func fingerprintOf(image *operatorsv1alpha1.ClusterServiceVersion) (fingerprint, error) {
	content, err := digestOf([]any{image.Labels, image.Annotations, &image.Spec})
	if err != nil {
		return fingerprint{}, fmt.Errorf("encoding ClusterServiceVersion %s: %w", image.Name, err)
	}
	status, err := digestOf(&image.Status)
	if err != nil {
		return fingerprint{}, fmt.Errorf("encoding the status of ClusterServiceVersion %s: %w", image.Name, err)
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

// sameContent says whether a copy says what its image does, but for the status.
func sameContent(have, want *operatorsv1alpha1.ClusterServiceVersion) bool {
	return equality.Semantic.DeepEqual(have.Labels, want.Labels) &&
		equality.Semantic.DeepEqual(have.Annotations, want.Annotations) &&
		equality.Semantic.DeepEqual(have.Spec, want.Spec)
}

func sameStatus(have, want *operatorsv1alpha1.ClusterServiceVersion) bool {
	return equality.Semantic.DeepEqual(have.Status, want.Status)
}

// applied is an image as it is applied to a namespace: without its status, which the API
// takes separately.
func applied(image *operatorsv1alpha1.ClusterServiceVersion, namespace string) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(image)
	if err != nil {
		return nil, fmt.Errorf("encoding ClusterServiceVersion %s: %w", image.Name, err)
	}
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	u := &unstructured.Unstructured{Object: content}
	u.SetNamespace(namespace)
	return u, nil
}
