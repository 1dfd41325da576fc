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
// It replaces volumes and mounts of the template with these names or paths, as operators expect. It names the default
// service account if the template names none, as OLM does: otherwise a takeover or a handback would replace the pods.
func Mount(template *corev1.PodTemplateSpec, s Server, c *Certificate) {
	mounts := []corev1.VolumeMount{
		{Name: volumeAPI, MountPath: pathAPI},
		{Name: volumeWebhook, MountPath: pathWebhook},
	}
	spec := &template.Spec
	if spec.ServiceAccountName == "" {
		spec.ServiceAccountName = DefaultServiceAccount
	}
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == volumeAPI || v.Name == volumeWebhook })
	spec.Volumes = append(spec.Volumes,
		secretVolume(volumeAPI, s.SecretName(), "apiserver.crt", "apiserver.key"),
		secretVolume(volumeWebhook, s.SecretName(), corev1.TLSCertKey, corev1.TLSPrivateKeyKey))
	for i := range spec.Containers {
		container := &spec.Containers[i]
		container.VolumeMounts = slices.DeleteFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool {
			return slices.ContainsFunc(mounts, func(ours corev1.VolumeMount) bool { return ours.Name == m.Name || ours.MountPath == m.MountPath })
		})
		container.VolumeMounts = append(container.VolumeMounts, mounts...)
	}
	if template.Annotations == nil {
		template.Annotations = map[string]string{}
	}
	template.Annotations[api.AnnotationCAHash] = c.CAHash()
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
