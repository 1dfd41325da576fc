package catalogs

import (
	"fmt"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// Port is the port of a catalog's replicas and of their Service.
const Port = 50051

// LabelManagedValue is the value of api.LabelManaged on the objects of a catalog.
const LabelManagedValue = "true"

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

// ServiceName returns the name of the Service of a hosted catalog. Dots are invalid in Service
// names, so they become hyphens. Services of ConfigMap catalogs have always had the unchanged name.
func ServiceName(source *operatorsv1alpha1.CatalogSource) string {
	if source.Spec.SourceType == operatorsv1alpha1.SourceTypeGrpc {
		return strings.ReplaceAll(source.Name, ".", "-")
	}
	return source.Name
}

// Address returns the address of a catalog inside the cluster: its Service if it is hosted,
// otherwise spec.address.
func Address(source *operatorsv1alpha1.CatalogSource) string {
	if !Hosted(source) {
		return source.Spec.Address
	}
	return fmt.Sprintf("%s.%s.svc:%d", ServiceName(source), source.Namespace, Port)
}
