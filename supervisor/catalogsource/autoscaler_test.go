package catalogsource

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

func TestAutoscalerOf(t *testing.T) {
	hpa := func(name, version, kind, target string) autoscalingv2.HorizontalPodAutoscaler {
		return autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: version, Kind: kind, Name: target},
			},
		}
	}
	going := hpa("going", "apps/v1", "Deployment", "shop")
	going.DeletionTimestamp = new(metav1.Now())
	for _, tt := range []struct {
		reason string
		all    []autoscalingv2.HorizontalPodAutoscaler
		want   string
	}{
		{"none", nil, ""},
		{"ours", []autoscalingv2.HorizontalPodAutoscaler{hpa("a", "apps/v1", "Deployment", "shop")}, "a"},
		{"another Deployment", []autoscalingv2.HorizontalPodAutoscaler{hpa("a", "apps/v1", "Deployment", "other")}, ""},
		{"another kind", []autoscalingv2.HorizontalPodAutoscaler{hpa("a", "apps/v1", "StatefulSet", "shop")}, ""},
		{"another group", []autoscalingv2.HorizontalPodAutoscaler{hpa("a", "example.com/v1", "Deployment", "shop")}, ""},
		{"being deleted", []autoscalingv2.HorizontalPodAutoscaler{going}, ""},
		{"first by name", []autoscalingv2.HorizontalPodAutoscaler{hpa("b", "apps/v1", "Deployment", "shop"), hpa("a", "apps/v1", "Deployment", "shop")}, "a"},
	} {
		if got := autoscalerOf(tt.all, "shop"); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.reason, got, tt.want)
		}
	}
}

func TestScaledReplicas(t *testing.T) {
	const asked = 3
	for _, tt := range []struct {
		reason, autoscaler string
		live               *appsv1.Deployment
		want               int
	}{
		{"an autoscaler has scaled it", "a", &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: new(int32(7))}}, 7},
		{"the autoscaler has gone", "", &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: new(int32(7))}}, asked},
		{"no Deployment yet", "a", nil, asked},
		{"an autoscaler does nothing at 0", "a", &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: new(int32(0))}}, asked},
	} {
		source := &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AnnotationReplicas: "3"}}}
		o := &Observation{Source: source, Deployment: tt.live, Autoscaler: tt.autoscaler}
		if got := o.replicas(&corev1.PodSpec{}, &Hosting{}); got != tt.want {
			t.Errorf("%s: %d replicas, want %d", tt.reason, got, tt.want)
		}
	}
}
