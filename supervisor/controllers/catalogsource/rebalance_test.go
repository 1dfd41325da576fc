package catalogsource

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestReplicaToMove(t *testing.T) {
	on := func(node string, minute int) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.NodeName = node
			p.CreationTimestamp = metav1.NewTime(noon.Add(time.Duration(minute) * time.Minute))
		}
	}
	together := []*corev1.Pod{replica("x", serving, on("a", 1)), replica("y", serving, on("a", 0))}
	two := []*corev1.Node{node("a"), node("b")}
	for _, tt := range []struct {
		reason     string
		nodes      []*corev1.Node
		deployment *appsv1.Deployment
		pods       []*corev1.Pod
		want       string
	}{
		{reason: "the younger one moves", nodes: two, deployment: rolling(complete), pods: together, want: "x"},
		{reason: "apart", nodes: two, deployment: rolling(complete), pods: []*corev1.Pod{replica("x", serving, on("a", 1)), replica("y", serving, on("b", 0))}},
		{reason: "in a roll-out", nodes: two, deployment: rolling(), pods: together},
		{reason: "one does not serve", nodes: two, deployment: rolling(complete), pods: []*corev1.Pod{together[0], replica("y", on("a", 0))}},
		{reason: "nowhere to go", deployment: rolling(complete), pods: together, nodes: []*corev1.Node{node("a")}},
		{reason: "the other is lost", deployment: rolling(complete), pods: together, nodes: []*corev1.Node{node("a"), node("b", lost)}},
		{reason: "the other is drained", deployment: rolling(complete), pods: together, nodes: []*corev1.Node{node("a"), node("b", cordoned)}},
		{reason: "the other is for others", deployment: rolling(complete), pods: together, nodes: []*corev1.Node{node("a"), node("b", reserved)}},
	} {
		got := ""
		if pod := replicaToMove(&catalogReplicas{deployment: tt.deployment, pods: tt.pods, nodes: tt.nodes}); pod != nil {
			got = pod.Name
		}
		if got != tt.want {
			t.Errorf("%s: %q moves, want %q", tt.reason, got, tt.want)
		}
	}
}

func TestIsSpread(t *testing.T) {
	on := func(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }
	together := []*corev1.Pod{replica("x", serving, on("a")), replica("y", serving, on("a"))}
	spread := []*corev1.Pod{replica("x", serving, on("a")), replica("y", serving, on("b"))}
	for reason, tt := range map[string]struct {
		view catalogReplicas
		want bool
	}{
		"spread":        {catalogReplicas{deployment: rolling(complete), pods: spread}, true},
		"together":      {catalogReplicas{deployment: rolling(complete), pods: together}, false},
		"in a roll-out": {catalogReplicas{deployment: rolling(), pods: spread}, false},
	} {
		if got := tt.view.isSpread(); got != tt.want {
			t.Errorf("%s: %t, want %t", reason, got, tt.want)
		}
	}
}

func TestMovesAreDelayed(t *testing.T) {
	var last move
	pod := replica("x", func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(noon) })
	want := minStay
	now := noon
	for range 5 {
		if left := last.stay(pod, now); left != want {
			t.Fatalf("the replica stays for %s, want %s", left, want)
		}
		now = now.Add(want)
		if left := last.stay(pod, now); left != 0 {
			t.Fatalf("the replica still stays for %s", left)
		}
		last = move{count: last.count + 1, at: now}
		want *= 2
	}
	if left := (move{}).stay(pod, noon); left != minStay {
		t.Errorf("the replica stays for %s", left)
	}
}
