package suite_test

import (
	"context"
	"testing"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/test/controlplane"
)

// TestTheSupervisorReplacesPodsOfALostNode runs the whole supervisor. The catalog controller
// deploys the catalog, and the caches hold the reduced pods of production.
func TestTheSupervisorReplacesPodsOfALostNode(t *testing.T) {
	w := &world{Client: controlplane.Client(t), WithT: gomega.NewWithT(t), t: t, namespace: controlplane.Namespace(t)}
	var o supervisor.Options
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(flags)
	err := flags.Parse([]string{"--leader-election-namespace=" + w.namespace, "--metrics-address=0", "--health-address=0", "--catalog-replicas=2"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- supervisor.Run(ctx, controlplane.Get(t).Config(), o) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	w.create(&operatorsv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		// No registry listens there. An image whose digest cannot be resolved runs by its tag.
		Spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Image: "127.0.0.1:1/example/catalog:1"},
	})
	running := func() []corev1.Pod {
		var pods corev1.PodList
		if err := w.List(t.Context(), &pods, client.InNamespace(w.namespace), client.MatchingLabels(podLabels())); err != nil {
			t.Fatal(err)
		}
		var found []corev1.Pod
		for _, pod := range pods.Items {
			if isReady(pod) {
				found = append(found, pod)
			}
		}
		return found
	}
	count := func() int { return len(running()) }
	w.Eventually(count).WithTimeout(patience).WithPolling(polling).Should(gomega.Equal(2))
	lost := running()[0]
	defer w.restore(lost.Spec.NodeName)
	if err := controlplane.Get(t).StopNode(t.Context(), lost.Spec.NodeName); err != nil {
		t.Fatal(err)
	}
	w.Eventually(w.gone(lost)).WithTimeout(patience).WithPolling(polling).Should(gomega.BeTrue())
	w.Eventually(count).WithTimeout(patience).WithPolling(polling).Should(gomega.Equal(2))
	for _, pod := range running() {
		if pod.Spec.NodeName == lost.Spec.NodeName {
			t.Errorf("pod %s runs on the node that is lost", pod.Name)
		}
	}
}
