package competing

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestReduceKeepsWhatIsRecognised compares the workload of a Deployment before and after Reduce, and bounds the
// reduced size.
func TestReduceKeepsWhatIsRecognised(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	bloat := func(d *appsv1.Deployment) {
		template := &d.Spec.Template
		template.Annotations = map[string]string{"note": large}
		template.Spec.ServiceAccountName = "manager"
		template.Spec.Containers = append([]corev1.Container{{Name: "side", Image: large, Command: []string{large}}}, template.Spec.Containers...)
		template.Spec.Containers[1].Args = []string{large}
		template.Spec.Containers[1].Env = append(template.Spec.Containers[1].Env, corev1.EnvVar{Name: "FILL", Value: large})
		d.Annotations = map[string]string{"note": large}
	}
	for _, tt := range []struct {
		reason string
		change func(*appsv1.Deployment)
		want   bool
	}{
		{"OLM as it is released", nil, true},
		{"renamed, with the label of the template", func(d *appsv1.Deployment) { d.Name, d.Labels = "vendor-olm", nil }, true},
		{"renamed, by program and image", func(d *appsv1.Deployment) { d.Name, d.Labels, d.Spec.Template.Labels = "vendor-olm", nil, nil }, true},
		{"the image runs the program", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Command = nil }, true},
		{"a version of OpenShift", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: envRelease, Value: "4.19.3"}}
			d.OwnerReferences = []metav1.OwnerReference{{APIVersion: "config.openshift.io/v1", Kind: "ClusterVersion", Name: "version"}}
		}, true},
		{"a container before it has the image and not the program", func(d *appsv1.Deployment) {
			first := d.Spec.Template.Spec.Containers[0]
			first.Command = nil
			d.Name, d.Labels, d.Spec.Template.Labels = "vendor-olm", nil, nil
			d.Spec.Template.Spec.Containers = append([]corev1.Container{first}, d.Spec.Template.Spec.Containers...)
		}, true},
		{"another program", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Command = []string{"/manager"} }, false},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			d := deployment("olm-operator", tt.change)
			bloat(&d)
			before := recognize(&d)
			if (before != nil) != tt.want {
				t.Fatalf("recognized before: %v, want %t", before, tt.want)
			}
			Reduce(&d)
			if diff := cmp.Diff(before, recognize(&d)); diff != "" {
				t.Errorf("recognized after it was reduced (-before +after):\n%s", diff)
			}
			if size := d.Size(); size > 4<<10 {
				t.Errorf("%d bytes are left", size)
			}
			if account := d.Spec.Template.Spec.ServiceAccountName; tt.want && account != "manager" {
				t.Errorf("service account %q is left, want manager", account)
			}
			again := d.DeepCopy()
			Reduce(again)
			if diff := cmp.Diff(&d, again); diff != "" {
				t.Errorf("reduced twice (-once +twice):\n%s", diff)
			}
		})
	}
}
