package suite_test

import (
	"testing"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/testenv"
)

// installed reports whether a test has applied everything. No test deletes it.
var installed bool

// install applies everything unless another test has done so.
func install(t *testing.T) {
	t.Helper()
	if !installed {
		apply(t)
		installed = true
	}
}

// apply applies the prerequisites and then the product, as the documentation describes.
func apply(t *testing.T) {
	t.Helper()
	if len(kubectl(t, "get", "namespace", "olm", "--ignore-not-found")) == 0 {
		t.Logf("%s", kubectl(t, "create", "-f", "../prerequisites/namespace.yaml"))
	}
	t.Logf("%s", kubectl(t, "apply", "--server-side", "-k", "../prerequisites"))
	t.Logf("%s", kubectl(t, "apply", "-k", ".."))
	if len(kubectl(t, "get", "namespace", "operators", "--ignore-not-found")) == 0 {
		t.Logf("%s", kubectl(t, "create", "-f", "../prerequisites/defaults"))
	}
}

// kubectl runs kubectl as an administrator and returns what it prints.
func kubectl(t *testing.T, args ...string) []byte {
	t.Helper()
	cp := controlplane.Get(t)
	return output(t, cp.Kubectl(), append([]string{"--kubeconfig", cp.Kubeconfig()}, args...)...)
}

// TestOneApplyIsEnough applies everything to an empty cluster, and applies it again, as an update
// does. Admission enforces the restricted standard on the pods, and the scheduler spreads them.
func TestOneApplyIsEnough(t *testing.T) {
	w := testenv.New(t)
	install(t)
	apply(t)
	deployment := &appsv1.Deployment{}
	w.EventuallySucceeds(func(g gomega.Gomega) {
		g.Expect(w.Get(t.Context(), client.ObjectKey{Namespace: "chandlery-system", Name: "chandlery-supervisor"}, deployment)).To(gomega.Succeed())
		g.Expect(deployment.Status.AvailableReplicas).To(gomega.BeEquivalentTo(2), "conditions: %+v", deployment.Status.Conditions)
	})

	var pods corev1.PodList
	if err := w.List(t.Context(), &pods, client.InNamespace("chandlery-system")); err != nil {
		t.Fatal(err)
	}
	nodes := map[string]bool{}
	for i := range pods.Items {
		nodes[pods.Items[i].Spec.NodeName] = true
	}
	if len(nodes) != 2 {
		t.Errorf("two replicas run on %d nodes: %v", len(nodes), nodes)
	}
}
