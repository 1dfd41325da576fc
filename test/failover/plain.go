package failover

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/chandlery/chandlery/supervisor/catalogs"
)

// Plain runs a catalog image without a supervisor: a Deployment with a readiness probe, spread over
// nodes, and a Service. All other settings are the defaults of Kubernetes.
func (s *Scene) Plain(ctx context.Context, name, image string, replicas int) (Target, error) {
	labels := map[string]string{"app": name}
	target := Target{Namespace: name, Service: name, Labels: labels, Replicas: replicas, Hanging: true}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name},
		Spec: corev1.ServiceSpec{
			Selector: labels,
			Ports:    []corev1.ServicePort{{Port: catalogs.Port, TargetPort: intstr.FromInt32(catalogs.Port)}},
		},
	}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(replicas)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
						MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
						LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
					}},
					Containers: []corev1.Container{{
						Name: "registry", Image: image,
						ReadinessProbe: &corev1.Probe{
							ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: catalogs.Port}},
						},
					}},
				},
			},
		},
	}
	if err := s.Client.Create(ctx, namespace); err != nil {
		return target, fmt.Errorf("creating namespace %s: %w", name, err)
	}
	if err := s.Client.Create(ctx, service); err != nil {
		return target, fmt.Errorf("creating the Service of %s: %w", target, err)
	}
	if err := s.Client.Create(ctx, deployment); err != nil {
		return target, fmt.Errorf("creating the Deployment of %s: %w", target, err)
	}
	return target, s.Strong(ctx, target)
}
