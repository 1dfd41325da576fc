package suite_test

import (
	"context"
	"testing"

	"github.com/onsi/gomega"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/testenv"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// TestTheSupervisorReplacesPodsOfALostNode runs the whole supervisor. The catalog controller
// deploys the catalog, and the caches hold the reduced pods of production.
func TestTheSupervisorReplacesPodsOfALostNode(t *testing.T) {
	w := &world{World: testenv.New(t)}
	var o supervisor.Options
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(flags)
	err := flags.Parse([]string{"--leader-election-namespace=" + w.Namespace, "--metrics-address=0", "--health-address=0", "--catalog-replicas=2"})
	if err != nil {
		t.Fatal(err)
	}
	w.Run(func(ctx context.Context) error { return supervisor.Run(ctx, w.Config, o) })
	// No registry listens there. An image whose digest cannot be resolved runs by its tag.
	w.Create(fixtures.ImageCatalog(w.Namespace, name, "127.0.0.1:1/example/catalog:1"))
	running := func() []corev1.Pod {
		var pods corev1.PodList
		if err := w.List(t.Context(), &pods, client.InNamespace(w.Namespace), client.MatchingLabels(podLabels())); err != nil {
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
	w.Eventually(count).Should(gomega.Equal(2))
	lost := running()[0]
	defer w.restore(lost.Spec.NodeName)
	if err := controlplane.Get(t).StopNode(t.Context(), lost.Spec.NodeName); err != nil {
		t.Fatal(err)
	}
	w.Eventually(w.gone(lost)).Should(gomega.BeTrue())
	w.Eventually(count).Should(gomega.Equal(2))
	for _, pod := range running() {
		if pod.Spec.NodeName == lost.Spec.NodeName {
			t.Errorf("pod %s runs on the node that is lost", pod.Name)
		}
	}
}
