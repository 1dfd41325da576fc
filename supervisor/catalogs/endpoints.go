package catalogs

import (
	"cmp"
	"net"
	"slices"
	"strconv"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/replicas"
)

// portName is the name of the port of a catalog's Service.
const portName = "grpc"

// Endpoints gives the replicas that the EndpointSlices of a catalog's Service
// name, sorted by pod. A pod with addresses of two families is one replica, and
// reached by IPv4.
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

// portOf is the port at which the endpoints of a slice listen; empty when it has
// none.
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
		// Without a word on it an endpoint counts as ready.
		Ready:       e.Conditions.Ready == nil || *e.Conditions.Ready,
		Terminating: is(e.Conditions.Terminating),
	}
	if len(e.Addresses) > 0 {
		endpoint.Address = net.JoinHostPort(e.Addresses[0], port)
	}
	if e.NodeName != nil {
		endpoint.Node = *e.NodeName
	}
	if e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
		endpoint.Pod = types.NamespacedName{Namespace: namespace, Name: e.TargetRef.Name}
		endpoint.UID = e.TargetRef.UID
	}
	return endpoint
}
