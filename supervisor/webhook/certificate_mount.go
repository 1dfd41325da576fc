package webhook

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/chandlery/chandlery/supervisor/api"
)

// The volumes for the certificates of pods, in the directories of the library for aggregated API servers and of
// the library for webhooks.
const (
	volumeAPI     = "apiservice-cert"
	volumeWebhook = "webhook-cert"
	pathAPI       = "/apiserver.local.config/certificates"
	pathWebhook   = "/tmp/k8s-webhook-server/serving-certs"
)

// DefaultServiceAccount is the service account of pods whose template names none.
const DefaultServiceAccount = "default"

// Mount adds the certificate of s to the containers of its pods, and replaces pods when its authority changes.
// It changes volumes, mounts and the account as OLM does: otherwise a takeover or a handback would replace the pods.
// Volumes with these names and mounts at these paths are replaced in their place, and a mount with one of these names stays.
// A template without a service account gets the default one.
func Mount(template *corev1.PodTemplateSpec, s Server, c *Certificate) {
	spec := &template.Spec
	if spec.ServiceAccountName == "" {
		spec.ServiceAccountName = DefaultServiceAccount
	}
	mount(spec, secretVolume(volumeAPI, s.SecretName(), "apiserver.crt", "apiserver.key"), pathAPI)
	mount(spec, secretVolume(volumeWebhook, s.SecretName(), corev1.TLSCertKey, corev1.TLSPrivateKeyKey), pathWebhook)
	if template.Annotations == nil {
		template.Annotations = map[string]string{}
	}
	template.Annotations[api.AnnotationCAHash] = c.CAHash()
}

// mount adds a volume to a pod, and mounts it at a path in its containers.
func mount(spec *corev1.PodSpec, volume corev1.Volume, path string) {
	if i := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == volume.Name }); i >= 0 {
		spec.Volumes[i] = volume
	} else {
		spec.Volumes = append(spec.Volumes, volume)
	}
	added := corev1.VolumeMount{Name: volume.Name, MountPath: path}
	for i := range spec.Containers {
		mounts := &spec.Containers[i].VolumeMounts
		switch at := slices.IndexFunc(*mounts, func(m corev1.VolumeMount) bool { return m.Name == added.Name || m.MountPath == path }); {
		case at < 0:
			*mounts = append(*mounts, added)
		case (*mounts)[at].Name != added.Name:
			(*mounts)[at] = added
		}
	}
}

func secretVolume(name, secret, certFile, keyFile string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: secret,
		Items: []corev1.KeyToPath{
			{Key: corev1.TLSCertKey, Path: certFile},
			{Key: corev1.TLSPrivateKeyKey, Path: keyFile},
		},
	}}}
}
