package catalogs

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chandlery/chandlery/supervisor/api/olmtext"
)

// LabelManagedValue is the value of api.LabelManaged on the objects of a catalog.
const LabelManagedValue = "true"

// NewObject returns the object type for watching and listing CatalogSources. It is unstructured
// because the decoder of the API's Go type panics on a spec.updateStrategy without registryPoll.
// The CustomResourceDefinition accepts such an object, and one of them would crash the process.
// Decode converts the object to the Go type.
func NewObject() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.CatalogSourceKind))
	return u
}

// NewList returns the list form of NewObject.
func NewList() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.CatalogSourceKind + "List"))
	return list
}

// Decode converts an unstructured CatalogSource to the Go type. It drops a spec.updateStrategy
// without registryPoll.
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

// IsConfigMap reports whether the catalog of a CatalogSource is in a ConfigMap.
func IsConfigMap(source *operatorsv1alpha1.CatalogSource) bool {
	return Hosted(source) && source.Spec.SourceType != operatorsv1alpha1.SourceTypeGrpc
}

// AccountName returns the name of a catalog's ServiceAccount, as with OLM. Its pull secrets apply to the images of the
// catalog.
func AccountName(source *operatorsv1alpha1.CatalogSource) string {
	if IsConfigMap(source) {
		return source.Name + "-configmap-server"
	}
	return source.Name
}

// Hosted reports whether the supervisor runs the catalog of a CatalogSource, as replicas behind a
// Service. Otherwise the catalog runs elsewhere, at spec.address. An image takes precedence over an
// address.
func Hosted(source *operatorsv1alpha1.CatalogSource) bool {
	switch source.Spec.SourceType {
	case operatorsv1alpha1.SourceTypeInternal, operatorsv1alpha1.SourceTypeConfigmap:
		return true
	default:
		return source.Spec.Image != ""
	}
}

// SpecProblem returns the reason and the message for the status of a CatalogSource with an invalid
// spec. Both are empty for a valid spec.
func SpecProblem(source *operatorsv1alpha1.CatalogSource) (operatorsv1alpha1.ConditionReason, string) {
	problem := typeProblem(source.Spec)
	if problem == "" && Hosted(source) {
		problem = nameProblem(source)
	}
	if problem == "" {
		return "", ""
	}
	return operatorsv1alpha1.CatalogSourceSpecInvalidError, problem
}

// SpecRemedy returns what to do about a spec with one of OLM's messages, which has no remedy; empty for others.
func SpecRemedy(spec operatorsv1alpha1.CatalogSourceSpec) string {
	switch spec.SourceType {
	case operatorsv1alpha1.SourceTypeInternal, operatorsv1alpha1.SourceTypeConfigmap:
		if spec.ConfigMap == "" {
			return "set spec.configMap"
		}
	case operatorsv1alpha1.SourceTypeGrpc:
		if spec.Image == "" && spec.Address == "" {
			return "set spec.image or spec.address"
		}
	default:
		return "set spec.sourceType to grpc, configmap or internal"
	}
	return ""
}

// typeProblem returns a message if a field that the source type requires is missing or invalid;
// otherwise empty.
func typeProblem(spec operatorsv1alpha1.CatalogSourceSpec) string {
	switch spec.SourceType {
	case operatorsv1alpha1.SourceTypeInternal, operatorsv1alpha1.SourceTypeConfigmap:
		if spec.ConfigMap == "" {
			return olmtext.ConfigMapUnset(string(spec.SourceType))
		}
	case operatorsv1alpha1.SourceTypeGrpc:
		if spec.Image == "" && spec.Address == "" {
			return olmtext.AddressUnset
		}
		if spec.Image == "" {
			return addressProblem(spec.Address)
		}
	default:
		return olmtext.UnknownSourceType(string(spec.SourceType))
	}
	return ""
}

// addressProblem returns a message if an address cannot be dialled; otherwise empty. gRPC accepts
// further kinds of addresses, which begin with the name of a resolver. Those of sockets are refused:
// a user could make the supervisor connect to sockets in its own pod.
func addressProblem(address string) string {
	for _, finder := range []string{"dns:", "passthrough:"} {
		if strings.HasPrefix(address, finder) {
			return ""
		}
	}
	host, port, err := net.SplitHostPort(address)
	if err == nil && host != "" && port != "" && !strings.Contains(address, "/") {
		return ""
	}
	return fmt.Sprintf("spec.address %q cannot be dialled; write it as host:port without scheme, such as shop.olm.svc:%d", address, Port)
}

// nameProblem returns a message if the name of a CatalogSource is not valid as the name of a
// Service and as a label value.
func nameProblem(source *operatorsv1alpha1.CatalogSource) string {
	name := ServiceName(source)
	if problems := validation.IsDNS1035Label(name); len(problems) > 0 {
		return fmt.Sprintf("metadata.name %s cannot be used: its Service would be called %s: %s; make a CatalogSource with another name",
			source.Name, name, strings.Join(problems, "; "))
	}
	return ""
}
