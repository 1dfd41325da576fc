package catalogs

import (
	"cmp"
	"net"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
)

// portName is the name of the gRPC port of a catalog's Service.
const portName = "grpc"

// Endpoints returns the replicas in the EndpointSlices of a catalog's Service, sorted by pod. A pod
// with addresses of two families is one replica with its IPv4 address.
func Endpoints(slicesOfService []discoveryv1.EndpointSlice) []replicas.Endpoint {
	ordered := slices.Clone(slicesOfService)
	slices.SortFunc(ordered, func(a, b discoveryv1.EndpointSlice) int {
		return cmp.Or(cmp.Compare(a.AddressType, b.AddressType), cmp.Compare(a.Name, b.Name))
	})
	var found []replicas.Endpoint
	seen := map[types.UID]bool{}
	for _, slice := range ordered {
		port := portOf(slice)
		if slice.AddressType == discoveryv1.AddressTypeFQDN || port == "" {
			continue
		}
		for _, e := range slice.Endpoints {
			endpoint := endpointOf(slice.Namespace, port, e)
			if endpoint.UID != "" && seen[endpoint.UID] {
				continue
			}
			seen[endpoint.UID] = true
			found = append(found, endpoint)
		}
	}
	slices.SortStableFunc(found, func(a, b replicas.Endpoint) int {
		return cmp.Or(cmp.Compare(a.Pod.Name, b.Pod.Name), cmp.Compare(a.Address, b.Address))
	})
	return slices.Compact(found)
}

// labelTemplateHash is the label that names the ReplicaSet revision of a pod.
const labelTemplateHash = appsv1.DefaultDeploymentUniqueLabelKey

// slicesOfCatalog returns the slices that hold replicas of a catalog. Slices of the supervisor's own
// Services carry the catalog's name in a label. Slices of OLM's Services do not: of these, only
// endpoints of the catalog's own pods count, because another catalog may use a Service of the same
// name.
func slicesOfCatalog(found []discoveryv1.EndpointSlice, catalog string, pods map[types.UID]*corev1.Pod) []discoveryv1.EndpointSlice {
	var kept []discoveryv1.EndpointSlice
	for _, slice := range found {
		label, labelled := slice.Labels[api.LabelCatalogSource]
		switch {
		case labelled && label == catalog:
			kept = append(kept, slice)
		case !labelled:
			slice.Endpoints = slices.DeleteFunc(slices.Clone(slice.Endpoints), func(e discoveryv1.Endpoint) bool {
				return e.TargetRef == nil || pods[e.TargetRef.UID] == nil
			})
			kept = append(kept, slice)
		}
	}
	return kept
}

// withPodInfo sets the revision and the creation time of each endpoint from its pod.
func withPodInfo(endpoints []replicas.Endpoint, pods map[types.UID]*corev1.Pod) []replicas.Endpoint {
	for i, e := range endpoints {
		if pod := pods[e.UID]; pod != nil {
			endpoints[i].Revision, endpoints[i].Created = pod.Labels[labelTemplateHash], pod.CreationTimestamp.Time
		}
	}
	return endpoints
}

// servesTLS reports whether a Service has a port for TLS.
func servesTLS(slicesOfService []discoveryv1.EndpointSlice) bool {
	return slices.ContainsFunc(slicesOfService, func(s discoveryv1.EndpointSlice) bool {
		return slices.ContainsFunc(s.Ports, func(p discoveryv1.EndpointPort) bool { return p.Name != nil && *p.Name == PortNameTLS })
	})
}

// withTLS changes the endpoints of pods that serve TLS to that port. In a rollout, some do not. Endpoints whose pods are not
// known yet are left out.
func withTLS(endpoints []replicas.Endpoint, pods map[types.UID]*corev1.Pod) []replicas.Endpoint {
	kept := slices.DeleteFunc(endpoints, func(e replicas.Endpoint) bool { return pods[e.UID] == nil })
	for i, e := range kept {
		host, _, err := net.SplitHostPort(e.Address)
		if err == nil && pods[e.UID].Labels[api.LabelServeTLS] == "true" {
			kept[i].Address, kept[i].Secured = net.JoinHostPort(host, strconv.Itoa(PortTLS)), true
		}
	}
	return kept
}

// portOf returns the port of a slice's endpoints; empty if it has none.
func portOf(slice discoveryv1.EndpointSlice) string {
	for _, p := range slice.Ports {
		if p.Port != nil && (len(slice.Ports) == 1 || (p.Name != nil && *p.Name == portName)) {
			return strconv.Itoa(int(*p.Port))
		}
	}
	return ""
}

func endpointOf(namespace, port string, e discoveryv1.Endpoint) replicas.Endpoint {
	is := func(condition *bool) bool { return condition != nil && *condition }
	endpoint := replicas.Endpoint{
		// EndpointSlices without this condition count as ready.
		Ready:       e.Conditions.Ready == nil || *e.Conditions.Ready,
		Terminating: is(e.Conditions.Terminating),
	}
	if len(e.Addresses) > 0 {
		endpoint.Address = net.JoinHostPort(e.Addresses[0], port)
	}
	if e.NodeName != nil {
		endpoint.Node = *e.NodeName
	}
	if e.Zone != nil {
		endpoint.Zone = *e.Zone
	}
	if e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
		endpoint.Pod = types.NamespacedName{Namespace: namespace, Name: e.TargetRef.Name}
		endpoint.UID = e.TargetRef.UID
	}
	return endpoint
}
