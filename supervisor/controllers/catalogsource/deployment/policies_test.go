package deployment

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

func rule(port int32, from ...networkingv1.NetworkPolicyPeer) networkingv1.NetworkPolicyIngressRule {
	return networkingv1.NetworkPolicyIngressRule{
		Ports: []networkingv1.NetworkPolicyPort{{Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromInt32(port))}}, From: from,
	}
}

// TestNetworkPoliciesAdmitMonitoringAlone checks the policies of catalogs and of the supervisor.
// Only monitoring may read metrics. API servers, which no selector names, read PackageManifests. The kubelet's probes need no policy.
func TestNetworkPoliciesAdmitMonitoringAlone(t *testing.T) {
	shipped := shippedPolicies(t)
	source := &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "shop"}}
	for _, tt := range []struct {
		reason string
		policy *networkingv1.NetworkPolicy
		want   []networkingv1.NetworkPolicyIngressRule
	}{
		{"the supervisor", shipped["chandlery-supervisor"], []networkingv1.NetworkPolicyIngressRule{rule(10250), rule(8080, monitoring()...)}},
		{"a catalog that our registry serves", networkPolicy(source, true, false), []networkingv1.NetworkPolicyIngressRule{rule(50051), rule(9090, monitoring()...)}},
		{"a catalog with TLS", networkPolicy(source, false, true), []networkingv1.NetworkPolicyIngressRule{{Ports: append(rule(50051).Ports, rule(50052).Ports...)}}},
		{"another catalog", networkPolicy(source, false, false), []networkingv1.NetworkPolicyIngressRule{rule(50051)}},
	} {
		if diff := cmp.Diff(tt.want, tt.policy.Spec.Ingress); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
		}
	}
	// Policies are additive, so no other policy may select these pods.
	all := networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}}
	if diff := cmp.Diff(all, shipped["chandlery-default-deny"].Spec); diff != "" || len(shipped) != 2 {
		t.Errorf("%d policies; the one that admits nothing to any pod (-want +got):\n%s", len(shipped), diff)
	}
}

// shippedPolicies returns the NetworkPolicies in the manifests by name.
func shippedPolicies(t *testing.T) map[string]*networkingv1.NetworkPolicy {
	t.Helper()
	text, err := os.ReadFile("../../../../deploy/supervisor/networkpolicies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*networkingv1.NetworkPolicy{"chandlery-default-deny": {}, "chandlery-supervisor": {}}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		policy := &networkingv1.NetworkPolicy{}
		if err := yaml.UnmarshalStrict([]byte(document), policy); err != nil {
			t.Fatal(err)
		}
		found[policy.Name] = policy
	}
	return found
}
