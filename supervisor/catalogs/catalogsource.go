package catalogs

import (
	"encoding/json"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// NewObject gives the object to watch and list CatalogSources with. It is not
// the API's Go type: that one's decoder panics on a spec.updateStrategy without
// registryPoll, which the CustomResourceDefinition lets pass, so that one such
// object would stop the whole process. Decode turns it into the Go type.
func NewObject() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.CatalogSourceKind))
	return u
}

// NewList is the list form of NewObject.
func NewList() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.CatalogSourceKind + "List"))
	return list
}

// Decode reads a CatalogSource.
func Decode(u *unstructured.Unstructured) (*operatorsv1alpha1.CatalogSource, error) {
	content := u.Object
	if _, found, _ := unstructured.NestedMap(content, "spec", "updateStrategy", "registryPoll"); !found {
		content = u.DeepCopy().Object
		unstructured.RemoveNestedField(content, "spec", "updateStrategy")
	}
	text, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encoding CatalogSource %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	source := &operatorsv1alpha1.CatalogSource{}
	if err := json.Unmarshal(text, source); err != nil {
		return nil, fmt.Errorf("decoding CatalogSource %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	return source, nil
}

// SpecProblem says what keeps a CatalogSource from being used, with the reason
// for its status; both are empty when nothing does.
func SpecProblem(source *operatorsv1alpha1.CatalogSource) (operatorsv1alpha1.ConditionReason, string) {
	spec := source.Spec
	switch spec.SourceType {
	case operatorsv1alpha1.SourceTypeInternal, operatorsv1alpha1.SourceTypeConfigmap:
		if spec.ConfigMap == "" {
			return operatorsv1alpha1.CatalogSourceSpecInvalidError,
				fmt.Sprintf("configmap name unset: must be set for sourcetype: %s", spec.SourceType)
		}
		return operatorsv1alpha1.CatalogSourceRegistryServerError,
			fmt.Sprintf("couldn't ensure registry server - this version of the supervisor does not serve spec.sourceType %s; serve the catalog with registry and set spec.sourceType grpc and spec.address", spec.SourceType)
	case operatorsv1alpha1.SourceTypeGrpc:
		return grpcProblem(spec)
	default:
		return operatorsv1alpha1.CatalogSourceSpecInvalidError, fmt.Sprintf("unknown sourcetype: %s", spec.SourceType)
	}
}

func grpcProblem(spec operatorsv1alpha1.CatalogSourceSpec) (operatorsv1alpha1.ConditionReason, string) {
	switch {
	case spec.Image != "":
		return operatorsv1alpha1.CatalogSourceRegistryServerError,
			"couldn't ensure registry server - this version of the supervisor does not run catalog images; run the image of spec.image yourself, set spec.address to where it listens and remove spec.image"
	case spec.Address == "":
		return operatorsv1alpha1.CatalogSourceSpecInvalidError, "image and address unset: at least one must be set for sourcetype: grpc"
	default:
		return "", ""
	}
}
