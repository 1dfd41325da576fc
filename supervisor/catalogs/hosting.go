package catalogs

import (
	"fmt"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// Port is where replicas of a catalog and their Service listen.
const Port = 50051

// LabelManagedValue is the value of api.LabelManaged on the objects of a catalog.
const LabelManagedValue = "true"

// Hosted says whether the supervisor runs the catalog of a CatalogSource, as
// replicas behind a Service, instead of dialling where somebody else runs it. An
// image wins over an address.
func Hosted(source *operatorsv1alpha1.CatalogSource) bool {
	switch source.Spec.SourceType {
	case operatorsv1alpha1.SourceTypeInternal, operatorsv1alpha1.SourceTypeConfigmap:
		return true
	default:
		return source.Spec.Image != ""
	}
}

// ServiceName is the name of the Service of a catalog that is hosted. Dots, which
// names of Services cannot have, become hyphens, except for catalogs in a
// ConfigMap, whose Services have always kept the name as it is.
func ServiceName(source *operatorsv1alpha1.CatalogSource) string {
	if source.Spec.SourceType == operatorsv1alpha1.SourceTypeGrpc {
		return strings.ReplaceAll(source.Name, ".", "-")
	}
	return source.Name
}

// Address is where a catalog is reached by anybody in the cluster: at its Service
// when it is hosted, else at spec.address.
func Address(source *operatorsv1alpha1.CatalogSource) string {
	if !Hosted(source) {
		return source.Spec.Address
	}
	return fmt.Sprintf("%s.%s.svc:%d", ServiceName(source), source.Namespace, Port)
}
