package deployment

import (
	"cmp"
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/digest"
)

// Paths and volume names in replicas that run Chandlery's registry.
const (
	// programDir holds the registry program inside the catalog's image.
	programDir  = "/utilities"
	programPath = programDir + "/registry"
	// contentDir holds the content that was copied from an image, or the mounted image.
	contentDir    = "/extracted-catalog"
	catalogCopy   = contentDir + "/catalog"
	configMapDir  = "/configmap"
	temporaryDir  = "/tmp"
	volumeProgram = "utilities"
	volumeContent = "catalog-content"
	volumeTmp     = "tmpdir"
	// flagSelection is the registry's flag for a selection.
	flagSelection = "--selection="
)

// Size limits of a replica's volumes, in bytes. A catalog has at most 4 GiB, and its index is
// smaller.
const (
	maxContent = 5 << 30
	maxIndex   = 5 << 30
	maxProgram = 256 << 20
)

// serveContent configures Chandlery's registry to serve the content of the image or of the
// ConfigMap.
func serveContent(spec *corev1.PodSpec, in *Input, s *Settings) {
	serving := &spec.Containers[0]
	serving.Image, serving.ImagePullPolicy = s.RegistryImage, registryPullPolicy(s.RegistryImage)
	serving.SecurityContext = &corev1.SecurityContext{ReadOnlyRootFilesystem: new(true)}
	serving.Ports = append(serving.Ports, corev1.ContainerPort{Name: "metrics", ContainerPort: metricsPort, Protocol: corev1.ProtocolTCP})
	addVolume(spec, emptyVolume(volumeTmp, maxIndex))
	mount(serving, corev1.VolumeMount{Name: volumeTmp, MountPath: temporaryDir})
	switch {
	case IsConfigMap(in.Source):
		addVolume(spec, corev1.Volume{Name: volumeContent, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: in.ConfigMapSnapshot},
		}}})
		mount(serving, corev1.VolumeMount{Name: volumeContent, MountPath: configMapDir, ReadOnly: true})
		serving.Args = []string{"serve", "configmap:" + configMapDir}
	case s.Content == ContentVolume || (s.Content == ContentAuto && in.mountsImages()):
		mountImage(spec, in)
	default:
		copyContent(spec, in, s)
	}
	if in.Selection != "" {
		serving.Args = append(serving.Args, flagSelection+in.Selection)
	}
}

// catalogDir returns the directory of the catalog in the image. The cache settings of
// extractContent are ignored: the registry builds its own index in less time than copying one
// takes.
func catalogDir(in *Input) string {
	if extract := ExtractContent(in.Source); extract != nil && extract.CatalogDir != "" {
		return path.Join("/", extract.CatalogDir)
	}
	return path.Join("/", cmp.Or(in.Image.CatalogDir, digest.DefaultCatalogDir))
}

// mountImage mounts the whole image, because mounting a subdirectory requires newer nodes.
func mountImage(spec *corev1.PodSpec, in *Input) {
	serving := &spec.Containers[0]
	addVolume(spec, corev1.Volume{Name: volumeContent, VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{
		Reference: in.Image.Reference(), PullPolicy: catalogPullPolicy(in.Image),
	}}})
	mount(serving, corev1.VolumeMount{Name: volumeContent, MountPath: contentDir, ReadOnly: true})
	serving.Args = []string{"serve", path.Join(contentDir, catalogDir(in))}
}

// copyContent adds two init containers. The first copies the registry program out of its image. The
// second runs it in the catalog's image to copy the catalog. This works for images without a shell.
func copyContent(spec *corev1.PodSpec, in *Input, s *Settings) {
	addVolume(spec, emptyVolume(volumeProgram, maxProgram))
	addVolume(spec, emptyVolume(volumeContent, maxContent))
	step := func(name, image string, policy corev1.PullPolicy) corev1.Container {
		return corev1.Container{
			Name: name, Image: image, ImagePullPolicy: policy,
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			SecurityContext:          &corev1.SecurityContext{ReadOnlyRootFilesystem: new(true)},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("50Mi"),
			}},
		}
	}
	program := step("extract-utilities", s.RegistryImage, registryPullPolicy(s.RegistryImage))
	program.Args = []string{"copy-content", "--program.to=" + programPath}
	mount(&program, corev1.VolumeMount{Name: volumeProgram, MountPath: programDir})
	content := step("extract-content", in.Image.Reference(), catalogPullPolicy(in.Image))
	content.Command = []string{programPath}
	content.Args = []string{"copy-content", "--catalog.from=" + catalogDir(in), "--catalog.to=" + catalogCopy}
	mount(&content, corev1.VolumeMount{Name: volumeProgram, MountPath: programDir, ReadOnly: true})
	mount(&content, corev1.VolumeMount{Name: volumeContent, MountPath: contentDir})
	spec.InitContainers = []corev1.Container{program, content}

	serving := &spec.Containers[0]
	mount(serving, corev1.VolumeMount{Name: volumeContent, MountPath: contentDir, ReadOnly: true})
	serving.Args = []string{"serve", catalogCopy}
}

// emptyVolume returns an emptyDir volume. The kubelet evicts a pod that exceeds the limit.
func emptyVolume(name string, limit int64) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
		SizeLimit: resource.NewQuantity(limit, resource.BinarySI),
	}}}
}

func addVolume(spec *corev1.PodSpec, v corev1.Volume) { spec.Volumes = append(spec.Volumes, v) }

func mount(c *corev1.Container, m corev1.VolumeMount) { c.VolumeMounts = append(c.VolumeMounts, m) }
