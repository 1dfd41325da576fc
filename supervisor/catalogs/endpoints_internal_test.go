package catalogs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
)

func TestBelonging(t *testing.T) {
	slice := func(labels map[string]string) discoveryv1.EndpointSlice {
		found := discoveryv1.EndpointSlice{Endpoints: []discoveryv1.Endpoint{{}}}
		found.Labels = labels
		for _, uid := range []types.UID{"ours", "theirs"} {
			found.Endpoints = append(found.Endpoints, discoveryv1.Endpoint{TargetRef: &corev1.ObjectReference{Kind: "Pod", UID: uid}})
		}
		return found
	}
	pods := map[types.UID]*corev1.Pod{"ours": {}}
	for _, tt := range []struct {
		reason string
		labels map[string]string
		want   []types.UID
	}{
		{"the Service is the catalog's own", map[string]string{api.LabelCatalogSource: "shop"}, []types.UID{"", "ours", "theirs"}},
		{"the Service is another catalog's", map[string]string{api.LabelCatalogSource: "other"}, nil},
		{"the Service is one of OLM's: the catalog's pods", nil, []types.UID{"ours"}},
	} {
		var got []types.UID
		for _, s := range slicesOfCatalog([]discoveryv1.EndpointSlice{slice(tt.labels)}, "shop", pods) {
			for _, e := range s.Endpoints {
				uid := types.UID("")
				if e.TargetRef != nil {
					uid = e.TargetRef.UID
				}
				got = append(got, uid)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
		}
	}
}

// TestTLSOfEndpoints has pods of several revisions.
func TestTLSOfEndpoints(t *testing.T) {
	slice := discoveryv1.EndpointSlice{Ports: []discoveryv1.EndpointPort{{Name: new(portName), Port: new(int32(Port))}}}
	if servesTLS(nil) || servesTLS([]discoveryv1.EndpointSlice{slice, {Ports: []discoveryv1.EndpointPort{{}}}}) {
		t.Error("a Service without the port serves TLS")
	}
	slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: new(PortNameTLS), Port: new(int32(PortTLS))})
	if !servesTLS([]discoveryv1.EndpointSlice{slice}) {
		t.Error("a Service with the port serves no TLS")
	}
	labelled := &corev1.Pod{}
	labelled.Labels = map[string]string{api.LabelServeTLS: "true"}
	got := withTLS([]replicas.Endpoint{
		{UID: "old", Address: "10.0.0.1:50051"}, {UID: "unknown", Address: "10.0.0.2:50051"}, {UID: "new", Address: "[fd00::3]:50051"},
	}, map[types.UID]*corev1.Pod{"old": {}, "new": labelled})
	want := []replicas.Endpoint{{UID: "old", Address: "10.0.0.1:50051"}, {UID: "new", Address: "[fd00::3]:50052", Secured: true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
