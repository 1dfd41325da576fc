package competing

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxText is the maximum length of the texts of a Deployment that Reduce keeps, in bytes.
const maxText = 1 << 10

// Reduce removes from a Deployment the fields that recognize does not read. From a Deployment that is not a
// lifecycle manager it removes the whole spec. It is for caches, which hold the Deployments of a whole cluster,
// and changes the Deployment in place.
func Reduce(d *appsv1.Deployment) {
	found := recognize(d)
	if found == nil {
		d.Annotations, d.Spec = nil, appsv1.DeploymentSpec{}
		return
	}
	template := d.Spec.Template
	var labels map[string]string
	if app, labelled := template.Labels["app"]; labelled {
		labels = map[string]string{"app": clip(app)}
	}
	d.Annotations = releaseAnnotation(d.Annotations)
	d.Spec = appsv1.DeploymentSpec{
		Replicas: d.Spec.Replicas,
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{
				ServiceAccountName: clip(cmp.Or(template.Spec.ServiceAccountName, template.Spec.DeprecatedServiceAccount)),
				Containers:         []corev1.Container{reduced(programContainer(d, found.Program))},
			},
		},
	}
}

// reduced returns the fields of a container that recognize reads.
func reduced(c *corev1.Container) corev1.Container {
	out := corev1.Container{Name: clip(c.Name), Image: lastOf(c.Image)}
	if len(c.Command) > 0 {
		out.Command = []string{lastOf(c.Command[0])}
	}
	for _, env := range c.Env {
		if env.Name == envRelease && env.Value != "" {
			out.Env = []corev1.EnvVar{{Name: envRelease, Value: clip(env.Value)}}
			break
		}
	}
	return out
}

// releaseAnnotation returns one annotation of OpenShift's releases; nil if there is none.
func releaseAnnotation(annotations map[string]string) map[string]string {
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if strings.HasPrefix(key, annotationRelease) {
			return map[string]string{key: clip(annotations[key])}
		}
	}
	return nil
}

// clip returns the beginning of a text. It copies the bytes, so that the rest is not kept in memory.
func clip(text string) string {
	return strings.Clone(strings.ToValidUTF8(text[:min(len(text), maxText)], ""))
}

// lastOf returns the end of a text, by which images and commands are recognized.
func lastOf(text string) string {
	return strings.Clone(strings.ToValidUTF8(text[max(0, len(text)-maxText):], ""))
}
