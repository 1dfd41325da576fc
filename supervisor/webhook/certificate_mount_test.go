package webhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestMountAccount checks that a template names the account that its pods get, as with OLM.
func TestMountAccount(t *testing.T) {
	for have, want := range map[string]string{"": "default", "kettle": "kettle"} {
		template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{ServiceAccountName: have}}
		Mount(template, Server{}, &Certificate{})
		if got := template.Spec.ServiceAccountName; got != want {
			t.Errorf("%q becomes %q, want %q", have, got, want)
		}
	}
}

// TestMountPlaces checks that volumes and mounts of a template are replaced in their place, as with OLM.
func TestMountPlaces(t *testing.T) {
	const own = "/own"
	template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Volumes: []corev1.Volume{{Name: volumeWebhook}, {Name: "cert"}, {Name: "cache"}},
		Containers: []corev1.Container{
			{VolumeMounts: []corev1.VolumeMount{{Name: "cert", MountPath: pathWebhook}, {Name: "cache", MountPath: "/cache"}}},
			{VolumeMounts: []corev1.VolumeMount{{Name: volumeWebhook, MountPath: own}}},
			{},
		},
	}}
	Mount(template, Server{Deployment: "kettle"}, &Certificate{})
	var got []string
	for _, v := range template.Spec.Volumes {
		got = append(got, v.Name)
	}
	if diff := cmp.Diff([]string{volumeWebhook, "cert", "cache", volumeAPI}, got); diff != "" || template.Spec.Volumes[0].Secret == nil {
		t.Errorf("volumes (-want +got):\n%s", diff)
	}
	want := [][]corev1.VolumeMount{
		{{Name: volumeWebhook, MountPath: pathWebhook}, {Name: "cache", MountPath: "/cache"}, {Name: volumeAPI, MountPath: pathAPI}},
		{{Name: volumeWebhook, MountPath: own}, {Name: volumeAPI, MountPath: pathAPI}},
		{{Name: volumeAPI, MountPath: pathAPI}, {Name: volumeWebhook, MountPath: pathWebhook}},
	}
	for i, c := range template.Spec.Containers {
		if diff := cmp.Diff(want[i], c.VolumeMounts); diff != "" {
			t.Errorf("mounts of container %d (-want +got):\n%s", i, diff)
		}
	}
}
