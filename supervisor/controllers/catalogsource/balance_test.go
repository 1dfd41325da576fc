package catalogsource

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestCrowded(t *testing.T) {
	on := func(node string, minute int) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.NodeName = node
			p.CreationTimestamp = metav1.NewTime(noon.Add(time.Duration(minute) * time.Minute))
		}
	}
	together := []*corev1.Pod{replica("x", serving, on("a", 1)), replica("y", serving, on("a", 0))}
	nodes := func(all ...*corev1.Node) func(*Observation) { return func(o *Observation) { o.Nodes = all } }
	for _, tt := range []struct {
		reason     string
		change     []func(*Observation)
		deployment *appsv1.Deployment
		pods       []*corev1.Pod
		want       string
	}{
		{reason: "the younger one moves", deployment: rolling(complete), pods: together, want: "x"},
		{reason: "apart", deployment: rolling(complete), pods: []*corev1.Pod{replica("x", serving, on("a", 1)), replica("y", serving, on("b", 0))}},
		{reason: "in a roll-out", deployment: rolling(), pods: together},
		{reason: "one does not serve", deployment: rolling(complete), pods: []*corev1.Pod{together[0], replica("y", on("a", 0))}},
		{reason: "nowhere to go", deployment: rolling(complete), pods: together, change: []func(*Observation){nodes(node("a"))}},
		{reason: "the other is lost", deployment: rolling(complete), pods: together, change: []func(*Observation){nodes(node("a"), node("b", lost))}},
		{reason: "the other is drained", deployment: rolling(complete), pods: together, change: []func(*Observation){nodes(node("a"), node("b", cordoned))}},
		{reason: "the other is for others", deployment: rolling(complete), pods: together, change: []func(*Observation){nodes(node("a"), node("b", reserved))}},
	} {
		got := ""
		if pod := crowded(observed(tt.change...), &replicasOf{deployment: tt.deployment, pods: tt.pods}); pod != nil {
			got = pod.Name
		}
		if got != tt.want {
			t.Errorf("%s: %q moves, want %q", tt.reason, got, tt.want)
		}
	}
}

func TestApart(t *testing.T) {
	on := func(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }
	together := []*corev1.Pod{replica("x", serving, on("a")), replica("y", serving, on("a"))}
	spread := []*corev1.Pod{replica("x", serving, on("a")), replica("y", serving, on("b"))}
	for reason, tt := range map[string]struct {
		view replicasOf
		want bool
	}{
		"spread":        {replicasOf{deployment: rolling(complete), pods: spread}, true},
		"together":      {replicasOf{deployment: rolling(complete), pods: together}, false},
		"in a roll-out": {replicasOf{deployment: rolling(), pods: spread}, false},
	} {
		if got := tt.view.apart(); got != tt.want {
			t.Errorf("%s: %t, want %t", reason, got, tt.want)
		}
	}
}

func TestMovesBecomeRarer(t *testing.T) {
	m, key := &moves{made: map[types.NamespacedName]move{}}, types.NamespacedName{Name: "shop"}
	pod := replica("x", func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(noon) })
	want := settleTime
	now := noon
	for range 5 {
		if left := m.allowed(key, pod, now); left != want {
			t.Fatalf("the replica stays for %s, want %s", left, want)
		}
		now = now.Add(want)
		if left := m.allowed(key, pod, now); left != 0 {
			t.Fatalf("the replica still stays for %s", left)
		}
		m.note(key, now)
		want *= 2
	}
	m.forget(key)
	if left := m.allowed(key, pod, noon); left != settleTime {
		t.Errorf("the replica stays for %s", left)
	}
}
