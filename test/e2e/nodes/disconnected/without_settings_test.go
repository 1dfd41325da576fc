package disconnected_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestWithoutSettings installs three operators after the supervisors have lost their settings for registries and let only
// nodes pull. The nodes know the mirror. No supervisor asks it.
func TestWithoutSettings(t *testing.T) {
	s := newScene(t)
	removeSettings(s)
	s.mirror.forgetClients()

	s.create(s.hosted("by-nodes", 0))
	s.ready("by-nodes")
	for name := range operators {
		s.subscribe("by-nodes-"+name, name, head(name), "by-nodes")
	}
	for name := range operators {
		namespace := "by-nodes-" + name
		s.succeeded(namespace, name, head(name))
		if installed := planned(s, namespace); !slices.Equal(installed, []string{head(name)}) {
			t.Errorf("InstallPlans of %s have %v, want %s", name, installed, head(name))
		}
		checkPulledByNode(s, namespace)
	}

	clients, addresses := s.mirror.allClients(), nodeAddresses(s)
	for name := range operators {
		if nodes := s.mirror.clientsOf("acme/" + name + "-bundle"); len(nodes) == 0 {
			t.Errorf("no pull of the bundle of %s was found", name)
		}
	}
	for _, address := range clients {
		if !slices.Contains(addresses, address) {
			t.Errorf("the mirror was asked by %s, want only nodes %v", address, addresses)
		}
	}
}

// removeSettings installs the manifest of the release again, without settings for registries. Nodes pull all bundles.
func removeSettings(s *scene) {
	s.t.Helper()
	dir, err := nodesOnly(releaseDir())
	must(s.t, err)
	ctx := s.t.Context()
	must(s.t, kubectl(ctx, s.bed, "apply", "--server-side", "-k", dir))
	must(s.t, kubectl(ctx, s.bed, "--namespace", systemNamespace, "rollout", "status", "deployment/"+supervisorName, "--timeout", patience.String()))
	must(s.t, s.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: settingsName}}))
	s.eventually("the supervisors without settings", func() string {
		var pods corev1.PodList
		if err := s.List(ctx, &pods, client.InNamespace(systemNamespace), client.MatchingLabels{"app.kubernetes.io/name": supervisorName}); err != nil {
			return err.Error()
		}
		for i := range pods.Items {
			text, err := json.Marshal(pods.Items[i].Spec)
			must(s.t, err)
			if !strings.Contains(string(text), "--image-pull=node") || strings.Contains(string(text), "image-registries") {
				return fmt.Sprintf("pod %s has %s", pods.Items[i].Name, text)
			}
		}
		return ""
	})
}

// checkPulledByNode checks that the InstallPlans of a namespace name the node that pulled their bundles, and why.
func checkPulledByNode(s *scene, namespace string) {
	s.t.Helper()
	var plans operatorsv1alpha1.InstallPlanList
	must(s.t, s.List(s.t.Context(), &plans, client.InNamespace(namespace)))
	for i := range plans.Items {
		lookups := plans.Items[i].Status.BundleLookups
		if len(lookups) != 1 {
			s.t.Errorf("InstallPlan %s/%s has lookups %+v, want one", namespace, plans.Items[i].Name, lookups)
			continue
		}
		pulled := lookups[0].GetCondition("PulledByNode")
		if pulled.Status != corev1.ConditionTrue || pulled.Reason != "NodeOnly" || !strings.HasPrefix(pulled.Message, "node ") {
			s.t.Errorf("InstallPlan %s/%s has condition %+v, want a node", namespace, plans.Items[i].Name, pulled)
		}
	}
}
