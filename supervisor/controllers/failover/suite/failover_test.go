package suite_test

import (
	"testing"
	"time"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/controllers/failover"
	"github.com/chandlery/chandlery/test/controlplane"
)

func TestSilentReplicaIsMarkedAndTheLastIsNot(t *testing.T) {
	w := newWorld(t)
	pods := w.deploy(2)
	first, last := pods[0], pods[1]

	begin := time.Now()
	w.server(first.UID).stop()
	w.Eventually(func() string {
		pod, err := w.pod(first)
		w.Expect(err).NotTo(gomega.HaveOccurred())
		return ready(pod).Reason
	}).Should(gomega.Equal(string(failover.ReplicaUnreachable)))
	t.Logf("marked %s after its process ended", time.Since(begin).Round(10*time.Millisecond))
	if pod, err := w.pod(first); err != nil || isReady(pod) || ready(pod).Message == "" {
		t.Errorf("condition %+v (%v)", ready(pod), err)
	}
	for kind, object := range map[string]string{operatorsv1alpha1.CatalogSourceKind: name, "Pod": first.Name} {
		w.Eventually(func() []string { return w.events(kind, object) }).Should(gomega.ContainElement(string(failover.ReplicaUnreachable)), kind)
	}

	// The remaining replica stops too. It must stay ready until the first one answers and its pod
	// is ready again.
	w.server(last.UID).stop()
	w.Eventually(w.serving).Should(gomega.BeZero())
	w.revive(first.UID)
	w.Eventually(func() bool {
		pod, err := w.pod(last)
		w.Expect(err).NotTo(gomega.HaveOccurred())
		back, err := w.pod(first)
		w.Expect(err).NotTo(gomega.HaveOccurred())
		w.Expect(isReady(pod) || isReady(back)).To(gomega.BeTrue(), "no replica is ready")
		return isReady(back)
	}).Should(gomega.BeTrue())
	// Now another replica answers.
	w.Eventually(func() bool {
		pod, err := w.pod(last)
		w.Expect(err).NotTo(gomega.HaveOccurred())
		return isReady(pod)
	}).Should(gomega.BeFalse())
}

// lose stops a node and the processes of its pods. It returns when the node became not ready.
func (w *world) lose(node string) time.Time {
	w.T.Helper()
	for _, pod := range w.pods() {
		if pod.Spec.NodeName == node {
			w.server(pod.UID).stop()
		}
	}
	cp := controlplane.Get(w.T)
	if err := cp.StopNode(w.T.Context(), node); err != nil {
		w.T.Fatal(err)
	}
	var since time.Time
	w.Eventually(func() bool {
		var found corev1.Node
		w.Expect(w.Get(w.T.Context(), client.ObjectKey{Name: node}, &found)).To(gomega.Succeed())
		for _, c := range found.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
				since = time.Now()
				return true
			}
		}
		return false
	}).Should(gomega.BeTrue())
	return since
}

// restore starts a node again.
func (w *world) restore(node string) {
	w.T.Helper()
	if err := controlplane.Get(w.T).StartNode(w.T.Context(), node); err != nil {
		w.T.Error(err)
	}
}

func (w *world) gone(pod corev1.Pod) func() bool {
	return func() bool {
		_, err := w.pod(pod)
		return err != nil
	}
}

func TestPodsOfALostNodeAreReplaced(t *testing.T) {
	w := newWorld(t)
	pods := w.deploy(2)
	lost, kept := pods[0], pods[1]
	// Pods on the unreachable node that no catalog owns must stay.
	stranger := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "stranger", Labels: map[string]string{"app": "other"}},
		Spec:       spec(),
	}
	stranger.Spec.NodeName = lost.Spec.NodeName
	bare := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "bare", Labels: podLabels()}, Spec: stranger.Spec}
	w.Create(stranger, bare)

	defer w.restore(lost.Spec.NodeName)
	since := w.lose(lost.Spec.NodeName)
	w.Eventually(w.gone(lost)).Should(gomega.BeTrue())
	t.Logf("deleted %s after the node was not ready", time.Since(since).Round(10*time.Millisecond))
	w.Eventually(func() int { return len(w.owned()) }).Should(gomega.Equal(2))
	w.Eventually(w.readyOwned).Should(gomega.Equal(2))
	t.Logf("full strength %s after the node was not ready", time.Since(since).Round(10*time.Millisecond))
	if _, err := w.pod(kept); err != nil {
		t.Errorf("the replica that answered: %v", err)
	}
	for _, other := range []*corev1.Pod{stranger, bare} {
		if _, err := w.pod(*other); err != nil {
			t.Errorf("pod %s is none of ours: %v", other.Name, err)
		}
	}
	w.Eventually(func() []string { return w.events(operatorsv1alpha1.CatalogSourceKind, name) }).Should(gomega.ContainElement(string(failover.NodeNotReady)))

	w.restore(lost.Spec.NodeName)
	w.Consistently(func() int { return len(w.owned()) }).WithTimeout(2 * time.Second).Should(gomega.Equal(2))
}

// owned returns the pods of the Deployment.
func (w *world) owned() []corev1.Pod {
	var found []corev1.Pod
	for _, pod := range w.pods() {
		if metav1.GetControllerOf(&pod) != nil {
			found = append(found, pod)
		}
	}
	return found
}

func (w *world) readyOwned() int {
	n := 0
	for _, pod := range w.owned() {
		if isReady(pod) {
			n++
		}
	}
	return n
}

func TestTheOnlyReplicaOfALostNodeIsReplaced(t *testing.T) {
	w := newWorld(t)
	lost := w.deploy(1)[0]
	defer w.restore(lost.Spec.NodeName)
	since := w.lose(lost.Spec.NodeName)
	w.Eventually(w.serving).Should(gomega.Equal(1))
	w.Eventually(w.readyOwned).Should(gomega.Equal(1))
	t.Logf("serving %s after the node was not ready", time.Since(since).Round(10*time.Millisecond))
	if !w.gone(lost)() {
		t.Error("the old pod is still there")
	}
}

func TestPodsThatHangInTerminatingAreDeleted(t *testing.T) {
	w := newWorld(t)
	pods := w.deploy(2)
	lost := pods[0]
	defer w.restore(lost.Spec.NodeName)
	if err := controlplane.Get(t).StopNode(t.Context(), lost.Spec.NodeName); err != nil {
		t.Fatal(err)
	}
	if err := w.Delete(t.Context(), &lost, client.GracePeriodSeconds(600)); err != nil {
		t.Fatal(err)
	}
	if pod, err := w.pod(lost); err != nil || pod.DeletionTimestamp.IsZero() {
		t.Fatalf("the pod does not hang: %v", err)
	}
	w.lose(lost.Spec.NodeName)
	w.Eventually(w.gone(lost)).Should(gomega.BeTrue())
	w.Eventually(w.readyOwned).Should(gomega.Equal(2))
}

func TestPodsThatOLMLeftAreDeletedToo(t *testing.T) {
	w := newWorld(t)
	source := catalogs.NewObject()
	w.Expect(w.Get(t.Context(), w.key(), source)).To(gomega.Succeed())
	left := func(name string) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name, Labels: podLabels()}, Spec: spec()}
		pod.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: source.GetAPIVersion(), Kind: source.GetKind(), Name: source.GetName(), UID: source.GetUID(), Controller: new(true),
		}}
		return pod
	}
	failed, ghost := left("failed"), left("ghost")
	ghost.Spec.NodeName = "no-such-node"
	failed.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/never"}}
	w.Create(failed, ghost)
	failed.Status.Phase = corev1.PodFailed
	w.Expect(w.Status().Update(t.Context(), failed)).To(gomega.Succeed())
	for _, pod := range []*corev1.Pod{failed, ghost} {
		w.Eventually(func() bool {
			return apierrors.IsNotFound(w.Get(t.Context(), types.NamespacedName{Namespace: w.Namespace, Name: pod.Name}, &corev1.Pod{}))
		}).Should(gomega.BeTrue(), pod.Name)
	}
	w.Eventually(func() []string { return w.events(operatorsv1alpha1.CatalogSourceKind, name) }).Should(gomega.ContainElements(string(failover.Failed), string(failover.NodeGone)))
}
