package failover

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func pod(name, node string, status corev1.ConditionStatus, terminating bool) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{NodeName: node}}
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
	if terminating {
		p.DeletionTimestamp = new(metav1.Now())
	}
	return p
}

func TestWeakness(t *testing.T) {
	for _, tt := range []struct {
		name string
		pods []corev1.Pod
		want string
	}{
		{name: "full strength", pods: []corev1.Pod{pod("a", "x", corev1.ConditionTrue, false), pod("b", "y", corev1.ConditionTrue, false)}},
		{name: "none", want: "there are 0 pods instead of 2"},
		{
			name: "one Terminating beside the others",
			pods: []corev1.Pod{pod("a", "x", corev1.ConditionTrue, false), pod("b", "y", corev1.ConditionTrue, false), pod("c", "z", corev1.ConditionTrue, true)},
			want: "pod c on z is Terminating; there are 3 pods instead of 2",
		},
		{
			name: "one not ready", pods: []corev1.Pod{pod("a", "x", corev1.ConditionTrue, false), pod("b", "y", corev1.ConditionFalse, false)},
			want: "pod b on y is Running and not ready",
		},
		{
			name: "both on a node", pods: []corev1.Pod{pod("a", "x", corev1.ConditionTrue, false), pod("b", "x", corev1.ConditionTrue, false)},
			want: "2 pods are on 1 nodes",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := weakness(tt.pods, 2); got != tt.want {
				t.Errorf("weakness %q, want %q", got, tt.want)
			}
		})
	}
}
