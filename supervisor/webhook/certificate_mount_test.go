package webhook

import (
	"testing"

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
