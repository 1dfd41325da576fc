package catalogsource

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
)

func TestPullFailingSince(t *testing.T) {
	waits := func(reason string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.CreationTimestamp = metav1.NewTime(noon)
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
		}
	}
	older := func(p *corev1.Pod) { p.Labels[api.LabelPodSpecHash] = "older" }
	for reason, tt := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"pulls":          {replica("x", waits("ContainerCreating")), false},
		"cannot pull":    {replica("x", waits("ErrImagePull")), true},
		"waits to pull":  {replica("x", waits("ImagePullBackOff")), true},
		"of older make":  {replica("x", waits("ErrImagePull"), older), false},
		"serves already": {replica("x", waits("ErrImagePull"), serving), false},
	} {
		view := catalogReplicas{deployment: rolling(), pods: []*corev1.Pod{tt.pod}}
		if got := view.pullFailingSince(); got.IsZero() == tt.want {
			t.Errorf("%s: since %s", reason, got)
		}
	}
	if got := (&catalogReplicas{}).pullFailingSince(); !got.IsZero() {
		t.Errorf("without a Deployment: since %s", got)
	}
}
