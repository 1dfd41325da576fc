package catalogsource

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

// TestNetworkPoliciesAdmitMonitoringAlone has the policies of catalogs and of the supervisor:
// metrics are for monitoring, probes for kubelets, which need no policy.
func TestNetworkPoliciesAdmitMonitoringAlone(t *testing.T) {
	text, err := os.ReadFile("../../deploy/supervisor/networkpolicies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var shipped *networkingv1.NetworkPolicy
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		shipped = &networkingv1.NetworkPolicy{}
		if err := yaml.UnmarshalStrict([]byte(document), shipped); err != nil {
			t.Fatal(err)
		}
	}
	source := &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "shop"}}
	for _, tt := range []struct {
		reason string
		policy *networkingv1.NetworkPolicy
		want   []networkingv1.NetworkPolicyIngressRule
	}{
		{"the supervisor", shipped, []networkingv1.NetworkPolicyIngressRule{rule(8080, monitoring()...)}},
		{"a catalog that our registry serves", networkPolicy(source, true), []networkingv1.NetworkPolicyIngressRule{rule(50051), rule(9090, monitoring()...)}},
		{"another catalog", networkPolicy(source, false), []networkingv1.NetworkPolicyIngressRule{rule(50051)}},
	} {
		if diff := cmp.Diff(tt.want, tt.policy.Spec.Ingress); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
		}
	}
}
