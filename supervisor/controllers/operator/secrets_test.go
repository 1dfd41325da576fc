package operator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestSecretsThatAreMentioned(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "kettle"}
	named := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	deployment := &appsv1.Deployment{ObjectMeta: meta}
	deployment.Spec.Template.Spec.Volumes = []corev1.Volume{
		{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "kettle-service-cert"}}},
		{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named("settings")}}},
		{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{Secret: &corev1.SecretProjection{LocalObjectReference: named("password")}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: named("settings")}},
		}}}},
	}
	step := func(group, kind, name string) *operatorsv1alpha1.Step {
		return &operatorsv1alpha1.Step{Resource: operatorsv1alpha1.StepResource{Group: group, Kind: kind, Name: name}}
	}
	brings := &operatorsv1alpha1.InstallPlan{ObjectMeta: meta, Status: operatorsv1alpha1.InstallPlanStatus{Plan: []*operatorsv1alpha1.Step{
		step("", "Secret", "licence"), nil, step("", "BundleSecret", "token"), step("", "ConfigMap", "settings"), step("vault.example", "Secret", "other"),
	}}}
	got := secretRefs{}
	for _, o := range []client.Object{deployment, brings, &corev1.ConfigMap{ObjectMeta: meta}} {
		got.add(o)
	}
	want := secretRefs{}
	for _, name := range []string{"kettle-service-cert", "password", "licence", "token"} {
		want[client.ObjectKey{Namespace: "shop", Name: name}] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("refs (-want +got):\n%s", diff)
	}
}
