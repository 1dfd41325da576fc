package deployment

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandlery/chandlery/supervisor/api"
)

func TestScaledReplicas(t *testing.T) {
	const asked = 3
	for _, tt := range []struct {
		reason, autoscaler string
		live               *appsv1.Deployment
		want               int
	}{
		{"an autoscaler has scaled it", "a", scaledTo(7), 7},
		{"the autoscaler has gone", "", scaledTo(7), asked},
		{"no Deployment yet", "a", nil, asked},
		{"an autoscaler does nothing at 0", "a", scaledTo(0), asked},
	} {
		o := input(annotated(api.AnnotationReplicas, "3"))
		o.Deployment, o.Autoscaler = tt.live, tt.autoscaler
		if got := o.replicas(&corev1.PodSpec{}, &Settings{}); got != tt.want {
			t.Errorf("%s: %d replicas, want %d", tt.reason, got, tt.want)
		}
	}
}

func scaledTo(replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "olm", UID: "u-2", ResourceVersion: "7"},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas},
	}
}

func TestUndoneScaling(t *testing.T) {
	for _, tt := range []struct {
		reason string
		change func(*appsv1.Deployment)
		want   string
	}{
		{"as it was applied", func(*appsv1.Deployment) {}, ""},
		{"scaled up", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(5)) }, "from 5 to 3 replicas"},
		{"scaled to nothing", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) }, "from 0 to 3 replicas"},
		{"another number was applied: it is we who change it", func(d *appsv1.Deployment) {
			d.Spec.Replicas, d.Annotations = new(int32(2)), map[string]string{api.AnnotationAppliedHash: "other"}
		}, ""},
	} {
		o := input(annotated(api.AnnotationReplicas, "3"))
		wanted := desiredDeployment(t, o)
		o.Deployment = scaledTo(3)
		o.Deployment.Annotations = wanted.GetAnnotations()
		tt.change(o.Deployment)
		if got := o.UndoneScaling(wanted); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.reason, got, tt.want)
		}
	}
	if got := input().UndoneScaling(desiredDeployment(t, input())); got != "" {
		t.Errorf("no Deployment yet: %q", got)
	}
}

// desiredDeployment returns the Deployment for an input.
func desiredDeployment(t *testing.T, o *Input) *unstructured.Unstructured {
	t.Helper()
	all, err := Desired(o, settings())
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range all {
		if u.GroupVersionKind() == KindDeployment {
			return u
		}
	}
	t.Fatal("no Deployment is wanted")
	return nil
}
