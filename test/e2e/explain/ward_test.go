package explain_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/pause"
)

// wardName is the node whose kubelet the test simulates, for pod failures that kwok cannot simulate.
const wardName = "ward"

// ward simulates the kubelet of one node: it keeps the node alive and sets the statuses of its pods
// as requested for their namespace.
type ward struct {
	client client.Client
	mu     sync.Mutex
	// ills are the statuses by namespace. Pods of other namespaces are healthy.
	ills map[string]ill
}

// ill is the failure of a container.
type ill struct {
	state corev1.ContainerState
	last  corev1.ContainerState
	// restarts is the number of restarts.
	restarts int32
	// warning is the reason and the message of the kubelet's Event.
	warning [2]string
}

// openWard adds the node and keeps it alive until the test ends.
func openWard(t *testing.T, c client.Client) *ward {
	t.Helper()
	w := &ward{client: c, ills: map[string]ill{}}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: wardName, Labels: map[string]string{corev1.LabelHostname: wardName, corev1.LabelOSStable: "linux"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: wardName, Effect: corev1.TaintEffectNoSchedule}}},
	}
	if err := c.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	bare, now := node.DeepCopy(), metav1.Now()
	node.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: quantity("8"), corev1.ResourceMemory: quantity("16Gi"), corev1.ResourcePods: quantity("110")}
	node.Status.Allocatable = node.Status.Capacity
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: now}}
	// The controller manager also writes to the node, to other fields.
	if err := c.Status().Patch(t.Context(), node, client.MergeFrom(bare)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var rounds sync.WaitGroup
	rounds.Go(func() {
		const pause1 = 300 * time.Millisecond
		for begun := time.Now(); pause.For(ctx, pause1); {
			if time.Since(begun) > time.Second {
				begun = time.Now()
				w.breathe(ctx, t)
			}
			w.visit(ctx, t)
		}
	})
	t.Cleanup(func() {
		cancel()
		rounds.Wait()
	})
	return w
}

// breathe renews the Lease of the node.
func (w *ward) breathe(ctx context.Context, t *testing.T) {
	t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: wardName}}
	err := w.client.Get(ctx, client.ObjectKeyFromObject(lease), lease)
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = new(wardName), new(int32(40))
	lease.Spec.RenewTime = new(metav1.NowMicro())
	if apierrors.IsNotFound(err) {
		err = w.client.Create(ctx, lease)
	} else if err == nil {
		err = w.client.Update(ctx, lease)
	}
	if err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
		t.Errorf("keeping node %s alive: %v", wardName, err)
	}
}

// visit sets the status of every pod of the node.
func (w *ward) visit(ctx context.Context, t *testing.T) {
	t.Helper()
	var pods corev1.PodList
	if err := w.client.List(ctx, &pods, client.MatchingFields{"spec.nodeName": wardName}); err != nil {
		if ctx.Err() == nil {
			t.Errorf("listing the pods of node %s: %v", wardName, err)
		}
		return
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		var err error
		if pod.DeletionTimestamp != nil {
			err = w.client.Delete(ctx, pod, client.GracePeriodSeconds(0))
		} else {
			err = w.treat(ctx, pod)
		}
		if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			t.Errorf("seeing to pod %s/%s: %v", pod.Namespace, pod.Name, err)
		}
	}
}

// annotationSeen on a pod names the status that the ward has set.
const annotationSeen = "ward.example.com/seen"

// treat writes the status of a pod, once for each requested one.
func (w *ward) treat(ctx context.Context, pod *corev1.Pod) error {
	w.mu.Lock()
	has, is := w.ills[pod.Namespace]
	w.mu.Unlock()
	text, err := json.Marshal([]any{is, has.state, has.last, has.warning})
	if err != nil || pod.Annotations[annotationSeen] == string(text) {
		return err
	}
	next := pod.DeepCopy()
	status := corev1.ContainerStatus{Name: pod.Spec.Containers[0].Name, Image: pod.Spec.Containers[0].Image, Ready: !is, State: has.state, LastTerminationState: has.last, RestartCount: has.restarts}
	ready := corev1.ConditionFalse
	next.Status.Phase = corev1.PodPending
	if !is {
		ready, status.State = corev1.ConditionTrue, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
	}
	if status.RestartCount > 0 || status.State.Running != nil {
		next.Status.Phase = corev1.PodRunning
	}
	next.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	for _, kind := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		setPodCondition(next, kind, ready)
	}
	if err := w.client.Status().Patch(ctx, next, client.MergeFrom(pod)); err != nil {
		return err
	}
	if has.warning[0] != "" {
		if err := w.warn(ctx, pod, has.warning); err != nil {
			return err
		}
	}
	seen := next.DeepCopy()
	metav1.SetMetaDataAnnotation(&seen.ObjectMeta, annotationSeen, string(text))
	return w.client.Patch(ctx, seen, client.MergeFrom(next))
}

func setPodCondition(pod *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus) {
	c := corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: metav1.Now()}
	if status != corev1.ConditionTrue {
		c.Reason, c.Message = "ContainersNotReady", "containers with unready status: ["+pod.Spec.Containers[0].Name+"]"
	}
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			pod.Status.Conditions[i] = c
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, c)
}

func (w *ward) warn(ctx context.Context, pod *corev1.Pod, warning [2]string) error {
	now := metav1.Now()
	return client.IgnoreAlreadyExists(w.client.Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name + ".ward"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, APIVersion: "v1"},
		Type:           corev1.EventTypeWarning, Reason: warning[0], Message: warning[1],
		FirstTimestamp: now, LastTimestamp: now, Count: 1, Source: corev1.EventSource{Component: "kubelet", Host: wardName},
	}))
}

// ails makes the pods of a namespace fail.
func (w *ward) ails(namespace string, has ill) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ills[namespace] = has
}

// heals makes the pods of a namespace healthy.
func (w *ward) heals(namespace string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.ills, namespace)
}

func waiting(reason, message string) ill {
	return ill{state: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
}

// crashed returns the failure of a container that ends repeatedly.
func crashed(reason string, code int32, message string) ill {
	i := waiting("CrashLoopBackOff", "back-off 40s restarting failed container")
	i.restarts = 4
	i.last.Terminated = &corev1.ContainerStateTerminated{Reason: reason, ExitCode: code, Message: message}
	return i
}
