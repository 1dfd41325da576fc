package catalogs

import (
	"fmt"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// Port is the port of a catalog's replicas and of their Service.
const Port = 50051

// PortTLS is the port for TLS of those that have one, and PortNameTLS its name.
const (
	PortTLS     = 50052
	PortNameTLS = "grpc-tls"
)

// AuthorityName returns the name of the ConfigMap with the authorities that clients of a hosted catalog trust.
func AuthorityName(source *operatorsv1alpha1.CatalogSource) string {
	return source.Name + "-catalog-ca"
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
	return fmt.Sprintf("%s:%d", serverName(source), Port)
}

// serverName returns the name in the certificates of a hosted catalog.
func serverName(source *operatorsv1alpha1.CatalogSource) string {
	return ServiceName(source) + "." + source.Namespace + ".svc"
}
