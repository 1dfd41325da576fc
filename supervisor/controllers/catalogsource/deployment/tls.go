package deployment

import (
	"fmt"
	"path"
	"strconv"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
)

const (
	// KeyCA is the key of the authorities in the ConfigMap of a catalog.
	KeyCA = "ca.crt"

	certificateDir    = "/serving-certificate"
	volumeCertificate = "serving-certificate"
)

// CertificateName returns the name of the Secret with the server certificate of a catalog.
func CertificateName(source *operatorsv1alpha1.CatalogSource) string {
	return source.Name + "-catalog-cert"
}

// ServesTLS reports whether the replicas of a catalog serve TLS on a second port. The server of a catalog's own image has
// no such port.
func ServesTLS(source *operatorsv1alpha1.CatalogSource, s *Settings) bool {
	wanted := s.TLS
	if value, err := strconv.ParseBool(source.Annotations[api.AnnotationServeTLS]); err == nil {
		wanted = value
	}
	return wanted && RunsRegistry(source, s)
}

// ServeTLSProblem returns why the annotation about TLS has no effect; empty if it has one, or is not set.
func ServeTLSProblem(source *operatorsv1alpha1.CatalogSource, s *Settings) string {
	text, set := source.Annotations[api.AnnotationServeTLS]
	wanted, err := strconv.ParseBool(text)
	switch {
	case !set:
		return ""
	case err != nil:
		return fmt.Sprintf("the annotation %s is %q, and the default is used: set it to true or false", api.AnnotationServeTLS, text)
	case wanted && !RunsRegistry(source, s):
		return fmt.Sprintf("the annotation %s has no effect, because the catalog's image runs its own server: set spec.grpcPodConfig.extractContent, or remove the annotation", api.AnnotationServeTLS)
	}
	return ""
}

// withTLS adds the port with TLS and the certificate to a workload. The kubelet updates the files, and the registry reads
// them again.
func withTLS(w workload, source *operatorsv1alpha1.CatalogSource) workload {
	w.serving.Ports = append(w.serving.Ports, corev1.ContainerPort{Name: catalogs.PortNameTLS, ContainerPort: catalogs.PortTLS, Protocol: corev1.ProtocolTCP})
	w.serving.VolumeMounts = append(w.serving.VolumeMounts, corev1.VolumeMount{Name: volumeCertificate, MountPath: certificateDir, ReadOnly: true})
	w.serving.Args = append(w.serving.Args,
		"--tls-port="+strconv.Itoa(catalogs.PortTLS),
		"--tls-cert="+path.Join(certificateDir, corev1.TLSCertKey), "--tls-key="+path.Join(certificateDir, corev1.TLSPrivateKeyKey))
	w.volumes = append(w.volumes, corev1.Volume{Name: volumeCertificate, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: CertificateName(source),
		Items:      []corev1.KeyToPath{{Key: corev1.TLSCertKey, Path: corev1.TLSCertKey}, {Key: corev1.TLSPrivateKeyKey, Path: corev1.TLSPrivateKeyKey}},
	}}})
	return w
}
