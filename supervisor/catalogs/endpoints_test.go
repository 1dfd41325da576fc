package catalogs_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
)

func TestEndpoints(t *testing.T) {
	at := func(address, pod, node string, conditions discoveryv1.EndpointConditions) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{
			Addresses: []string{address}, Conditions: conditions, NodeName: new(node),
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: pod, UID: types.UID(pod)},
		}
	}
	of := func(name string, family discoveryv1.AddressType, endpoints ...discoveryv1.Endpoint) discoveryv1.EndpointSlice {
		return discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: name}, AddressType: family, Endpoints: endpoints,
			Ports: []discoveryv1.EndpointPort{{Name: new("other"), Port: new(int32(8080))}, {Name: new("grpc"), Port: new(int32(50051))}},
		}
	}
	wanted := func(address, pod, node string, ready, terminating bool) replicas.Endpoint {
		return replicas.Endpoint{
			Address: address, Pod: types.NamespacedName{Namespace: "olm", Name: pod}, UID: types.UID(pod), Node: node,
			Ready: ready, Terminating: terminating,
		}
	}
	unready := discoveryv1.EndpointConditions{Ready: new(false)}
	ending := discoveryv1.EndpointConditions{Ready: new(false), Terminating: new(true)}
	portless := of("portless", discoveryv1.AddressTypeIPv4, at("10.0.0.9", "shop-9", "n", unready))
	portless.Ports = nil
	zoned := at("10.0.0.5", "shop-5", "five", discoveryv1.EndpointConditions{})
	zoned.Zone = new("north")
	bare := discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "olm"}, AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{{Port: new(int32(1234))}}, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.4"}}},
	}
	for _, tt := range []struct {
		reason string
		slices []discoveryv1.EndpointSlice
		want   []replicas.Endpoint
	}{
		{reason: "none"},
		{
			reason: "two slices, sorted by pod",
			slices: []discoveryv1.EndpointSlice{
				of("b", discoveryv1.AddressTypeIPv4, at("10.0.0.2", "shop-2", "two", unready)),
				of("a", discoveryv1.AddressTypeIPv4, at("10.0.0.3", "shop-3", "three", ending), at("10.0.0.1", "shop-1", "one", discoveryv1.EndpointConditions{})),
			},
			want: []replicas.Endpoint{
				wanted("10.0.0.1:50051", "shop-1", "one", true, false), wanted("10.0.0.2:50051", "shop-2", "two", false, false),
				wanted("10.0.0.3:50051", "shop-3", "three", false, true),
			},
		},
		{
			reason: "both families are one replica",
			slices: []discoveryv1.EndpointSlice{
				of("a", discoveryv1.AddressTypeIPv6, at("fd00::1", "shop-1", "one", unready)),
				of("b", discoveryv1.AddressTypeIPv4, at("10.0.0.1", "shop-1", "one", unready)),
			},
			want: []replicas.Endpoint{wanted("10.0.0.1:50051", "shop-1", "one", false, false)},
		},
		{
			reason: "IPv6 alone", slices: []discoveryv1.EndpointSlice{of("a", discoveryv1.AddressTypeIPv6, at("fd00::1", "shop-1", "one", unready))},
			want: []replicas.Endpoint{wanted("[fd00::1]:50051", "shop-1", "one", false, false)},
		},
		{
			reason: "names and slices without a port cannot be dialled",
			slices: []discoveryv1.EndpointSlice{of("a", discoveryv1.AddressTypeFQDN, at("shop.example", "shop-1", "one", unready)), portless},
		},
		{
			reason: "the zone of the node", slices: []discoveryv1.EndpointSlice{of("a", discoveryv1.AddressTypeIPv4, zoned)},
			want: []replicas.Endpoint{{
				Address: "10.0.0.5:50051", Pod: types.NamespacedName{Namespace: "olm", Name: "shop-5"}, UID: "shop-5", Node: "five", Zone: "north", Ready: true,
			}},
		},
		{reason: "no pod, one port without a name", slices: []discoveryv1.EndpointSlice{bare}, want: []replicas.Endpoint{{Address: "10.0.0.4:1234", Ready: true}}},
	} {
		if diff := cmp.Diff(tt.want, catalogs.Endpoints(tt.slices)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
		}
	}
}
