package uninstall

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// supervisorName is the name of the supervisor's Deployment and of most objects beside it.
	supervisorName = "chandlery-supervisor"
	// packageManifests is the Service of the aggregated API.
	packageManifests = "chandlery-packagemanifests-service"
	// packageServer is the name of the Deployment that only serves this API, and of most objects beside it.
	packageServer = "chandlery-packageserver"
	// nodeLeases is the namespace of the Leases of nodes.
	nodeLeases = "kube-node-lease"
	// labelPartOf and product label the objects of the manifests and of the chart.
	labelPartOf = "app.kubernetes.io/part-of"
	product     = "chandlery"
)

// Object names an object of the cluster.
type Object struct {
	Group     string `json:"group,omitempty"`
	Version   string `json:"version"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns the kind, the namespace and the name.
func (o Object) String() string {
	return o.Kind + " " + strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")
}

// metadata returns the object without its content, for requests.
func (o Object) metadata() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}}
	m.SetGroupVersionKind(schema.GroupVersionKind{Group: o.Group, Version: o.Version, Kind: o.Kind})
	return m
}

// Product returns the objects of the supervisor in the order of their removal, without the
// namespace. They are the objects of deploy/ and of the chart, and the Lease that supervisors
// create.
func Product(namespace string) []Object {
	const rbac, network = "rbac.authorization.k8s.io", "networking.k8s.io"
	return []Object{
		{"apps", "v1", "Deployment", namespace, packageServer},
		{"policy", "v1", "PodDisruptionBudget", namespace, packageServer},
		{"", "v1", "Service", namespace, packageServer + "-service"},
		{network, "v1", "NetworkPolicy", namespace, packageServer},
		{"apps", "v1", "Deployment", namespace, supervisorName},
		{"policy", "v1", "PodDisruptionBudget", namespace, supervisorName},
		{"", "v1", "Service", namespace, supervisorName},
		{"", "v1", "Service", namespace, packageManifests},
		{"monitoring.coreos.com", "v1", "ServiceMonitor", namespace, supervisorName},
		{"monitoring.coreos.com", "v1", "ServiceMonitor", namespace, packageServer},
		{"monitoring.coreos.com", "v1", "PodMonitor", namespace, "chandlery-catalogs"},
		{"monitoring.coreos.com", "v1", "PrometheusRule", namespace, supervisorName},
		{"", "v1", "ConfigMap", namespace, "chandlery-dashboard"},
		{network, "v1", "NetworkPolicy", namespace, supervisorName},
		{network, "v1", "NetworkPolicy", namespace, "chandlery-default-deny"},
		{"", "v1", "ResourceQuota", namespace, "chandlery-critical-pods"},
		{rbac, "v1", "ClusterRoleBinding", "", packageServer},
		{rbac, "v1", "ClusterRole", "", packageServer},
		{rbac, "v1", "RoleBinding", "kube-system", packageServer},
		{rbac, "v1", "RoleBinding", namespace, packageServer},
		{rbac, "v1", "Role", namespace, packageServer},
		{"", "v1", "ServiceAccount", namespace, packageServer},
		{"coordination.k8s.io", "v1", "Lease", namespace, packageServer},
		{rbac, "v1", "ClusterRoleBinding", "", supervisorName},
		{rbac, "v1", "ClusterRole", "", supervisorName},
		{rbac, "v1", "ClusterRoleBinding", "", "chandlery-supervisor-metrics"},
		{rbac, "v1", "ClusterRole", "", "chandlery-supervisor-metrics"},
		{rbac, "v1", "ClusterRole", "", "chandlery-metrics-reader"},
		{rbac, "v1", "RoleBinding", nodeLeases, supervisorName},
		{rbac, "v1", "Role", nodeLeases, supervisorName},
		{rbac, "v1", "RoleBinding", namespace, supervisorName},
		{rbac, "v1", "Role", namespace, supervisorName},
		{"", "v1", "ServiceAccount", namespace, supervisorName},
		{"coordination.k8s.io", "v1", "Lease", namespace, supervisorName},
	}
}

// Prerequisites returns the objects of deploy/prerequisites in the order of their removal, without those whose kinds
// are among them.
func Prerequisites(catalogNamespace string) []Object {
	const rbac = "rbac.authorization.k8s.io"
	var all []Object
	for _, resource := range []string{
		"subscriptions", "clusterserviceversions", "installplans", "operatorconditions", "operatorgroups",
		"operators", "olmconfigs", "catalogsources",
	} {
		all = append(all, Object{"apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", resource + ".operators.coreos.com"})
	}
	return append(all,
		Object{rbac, "v1", "ClusterRole", "", "aggregate-olm-edit"},
		Object{rbac, "v1", "ClusterRole", "", "aggregate-olm-view"},
		Object{"", "v1", "Namespace", "", "operators"},
		Object{"", "v1", "Namespace", "", catalogNamespace},
	)
}
