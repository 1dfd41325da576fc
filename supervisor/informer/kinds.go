package informer

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Creator is who may create objects of a kind, and so determines their number and size.
type Creator string

// The creators.
const (
	// ByEdit are users with the ClusterRole edit in a namespace.
	ByEdit Creator = "edit"
	// ByAdmin are users with the ClusterRole admin in a namespace.
	ByAdmin Creator = "admin"
	// ByCluster are components of the cluster, for objects that tenants create.
	ByCluster Creator = "the cluster for `edit`"
	// ByAdministrators are administrators of the cluster, and the supervisor for bundles of catalogs that the
	// administrators chose.
	ByAdministrators Creator = "administrators"
)

// Form is the form in which a kind is watched.
type Form string

// The forms.
const (
	// Whole means the whole object.
	Whole Form = "whole"
	// Metadata means only the metadata of the object.
	Metadata Form = "metadata"
)

// Watched is a kind that the supervisor watches in the whole cluster.
type Watched struct {
	Group, Resource, Kind string
	Form                  Form
	// Selector is the label that selects objects; empty for all. A tenant who can create an object can set its label.
	Selector string
	Creator  Creator
	// Bytes is the maximum memory of a decoded object; 0 if only the API server's limit of 1.5 MiB applies.
	Bytes int
	// Kept describes the fields that are kept.
	Kept string
}

// Maximum sizes of kept metadata, in bytes, including the names of every object.
const (
	metadataBytes = 8 << 10
	wholeBytes    = 12 << 10
)

// Watches returns all kinds that the supervisor watches, in the order of the documentation.
func Watches() []Watched {
	return slices.Concat(ofTenants(), ofAdministrators())
}

func ofTenants() []Watched {
	const (
		managed = "olm.managed"
		apps    = "apps"
		rbac    = "rbac.authorization.k8s.io"
		bounded = "the object up to 6 KiB, else the metadata"
		halves  = "the object without parts above 3 KiB"
		ruled   = "the object up to 16 KiB, else the metadata"
		names   = "names, owners, bounded labels"
	)
	return []Watched{
		{apps, "deployments", "Deployment", Whole, "", ByEdit, maxDeployment + wholeBytes, "of versions and catalogs the object up to 64 KiB; of others the metadata, the state, and what shows another lifecycle manager"},
		{"", "pods", "Pod", Whole, "olm.managed=true", ByEdit, maxPod, "metadata, node, conditions"},
		{"", "pods", "Pod", Whole, "olm.catalogSource", ByEdit, maxPod, "metadata, node, conditions, states of containers"},
		{"", "services", "Service", Whole, managed, ByEdit, maxPart + wholeBytes, bounded},
		{"", "services", "Service", Whole, "olm.managed=true", ByEdit, maxPart + wholeBytes, bounded},
		{"", "services", "Service", Metadata, "olm.managed=true", ByEdit, metadataBytes, names},
		{"", "serviceaccounts", "ServiceAccount", Whole, managed, ByEdit, maxPart + wholeBytes, halves},
		{"", "serviceaccounts", "ServiceAccount", Metadata, "", ByEdit, metadataBytes, names},
		{"", "configmaps", "ConfigMap", Metadata, managed, ByEdit, metadataBytes, names},
		{"", "configmaps", "ConfigMap", Metadata, "olm.managed=true", ByEdit, metadataBytes, names},
		{"networking.k8s.io", "networkpolicies", "NetworkPolicy", Whole, managed, ByEdit, maxPart + wholeBytes, bounded},
		{"policy", "poddisruptionbudgets", "PodDisruptionBudget", Whole, managed, ByEdit, maxPart + wholeBytes, halves},
		{"operators.coreos.com", "subscriptions", "Subscription", Whole, "", ByEdit, maxTransitionLog + maxConfig + wholeBytes, "the object; no `spec.config` above 8 KiB, no name above 512 bytes"},
		{"discovery.k8s.io", "endpointslices", "EndpointSlice", Whole, "olm.managed=true", ByCluster, 0, "metadata; of each endpoint one address and the pod"},
		{rbac, "roles", "Role", Whole, "", ByAdmin, maxRules + wholeBytes, ruled},
		{rbac, "rolebindings", "RoleBinding", Whole, "", ByAdmin, maxRules + wholeBytes, ruled},
	}
}

func ofAdministrators() []Watched {
	const (
		rbac      = "rbac.authorization.k8s.io"
		admission = "admissionregistration.k8s.io"
		operators = "operators.coreos.com"
		object    = "the object"
	)
	return []Watched{
		{rbac, "clusterroles", "ClusterRole", Whole, "", ByAdministrators, 0, object},
		{rbac, "clusterrolebindings", "ClusterRoleBinding", Whole, "", ByAdministrators, 0, object},
		{"", "namespaces", "Namespace", Metadata, "", ByAdministrators, 0, "metadata"},
		{"", "nodes", "Node", Whole, "", ByAdministrators, 0, "metadata, conditions, taints, versions"},
		{"apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", Whole, "", ByAdministrators, 0, "the object without schemas"},
		{"apiregistration.k8s.io", "apiservices", "APIService", Whole, "olm.managed=true", ByAdministrators, 0, object},
		{"apiregistration.k8s.io", "apiservices", "APIService", Metadata, "", ByAdministrators, 0, "metadata"},
		{"apiregistration.k8s.io", "apiservices", "APIService", Metadata, "olm.managed=true", ByAdministrators, 0, "metadata"},
		{admission, "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", Whole, "olm.managed=true", ByAdministrators, 0, object},
		{admission, "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", Whole, "olm.managed=true", ByAdministrators, 0, object},
		{operators, "catalogsources", "CatalogSource", Whole, "", ByAdministrators, 0, object},
		{operators, "clusterserviceversions", "ClusterServiceVersion", Whole, "!olm.copiedFrom", ByAdministrators, 0, object},
		{operators, "clusterserviceversions", "ClusterServiceVersion", Metadata, "olm.copiedFrom", ByAdministrators, 0, "names"},
		{operators, "installplans", "InstallPlan", Whole, "", ByAdministrators, 0, object},
		{operators, "operatorgroups", "OperatorGroup", Whole, "", ByAdministrators, 0, object},
		{operators, "operatorconditions", "OperatorCondition", Whole, "", ByAdministrators, 0, object},
		{operators, "operators", "Operator", Whole, "", ByAdministrators, 0, object},
		{operators, "olmconfigs", "OLMConfig", Whole, "", ByAdministrators, 0, object},
	}
}

// createdByTenants reports whether users other than administrators create objects of a kind.
func createdByTenants(kind schema.GroupKind) bool {
	return slices.ContainsFunc(ofTenants(), func(w Watched) bool { return w.Group == kind.Group && w.Kind == kind.Kind })
}
