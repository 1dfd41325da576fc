package deployment

import (
	"cmp"
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/chandlery/chandlery/supervisor/catalogs"
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

// workload holds the parts of a pod that depend on what serves the catalog.
type workload struct {
	serving corev1.Container
	init    []corev1.Container
	volumes []corev1.Volume
}

// workloadOf returns the catalog's own image, or Chandlery's registry with the content of the image or
// of the ConfigMap.
func workloadOf(in *Input, s *Settings) workload {
	serving := server(in)
	if !RunsRegistry(in.Source, s) {
		serving.Image, serving.ImagePullPolicy = in.Image.Reference(), catalogPullPolicy(in.Image)
		serving.SecurityContext = &corev1.SecurityContext{ReadOnlyRootFilesystem: new(false)}
		return workload{serving: serving}
	}
	var content mountedContent
	switch {
	case catalogs.IsConfigMap(in.Source):
		content = configMapContent(in)
	case s.Content == ContentVolume || (s.Content == ContentAuto && in.mountsImages()):
		content = imageContent(in)
	default:
		content = copiedContent(in, s)
	}
	serving.Image, serving.ImagePullPolicy = s.RegistryImage, registryPullPolicy(s.RegistryImage)
	serving.SecurityContext = &corev1.SecurityContext{ReadOnlyRootFilesystem: new(true)}
	serving.Ports = append(serving.Ports, corev1.ContainerPort{Name: "metrics", ContainerPort: metricsPort, Protocol: corev1.ProtocolTCP})
	serving.VolumeMounts = []corev1.VolumeMount{{Name: volumeTmp, MountPath: temporaryDir}, {Name: volumeContent, MountPath: content.dir, ReadOnly: true}}
	serving.Args = []string{"serve", content.path}
	if in.Selection != "" {
		serving.Args = append(serving.Args, flagSelection+in.Selection)
	}
	made := workload{serving: serving, init: content.init, volumes: append([]corev1.Volume{emptyVolume(volumeTmp, maxIndex)}, content.volumes...)}
	if ServesTLS(in.Source, s) {
		return withTLS(made, in.Source)
	}
	return made
}

// mountedContent is content in a volume of a replica that runs Chandlery's registry.
type mountedContent struct {
	// dir is where the volume is mounted. path is the argument of the registry.
	dir, path string
	volumes   []corev1.Volume
	init      []corev1.Container
}

func configMapContent(in *Input) mountedContent {
	return mountedContent{dir: configMapDir, path: "configmap:" + configMapDir, volumes: []corev1.Volume{{
		Name: volumeContent, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: in.ConfigMapSnapshot},
		}},
	}}}
}

// imageContent mounts the whole image, because mounting a subdirectory requires newer nodes.
func imageContent(in *Input) mountedContent {
	return mountedContent{dir: contentDir, path: path.Join(contentDir, catalogDir(in)), volumes: []corev1.Volume{{
		Name: volumeContent, VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{
			Reference: in.Image.Reference(), PullPolicy: catalogPullPolicy(in.Image),
		}},
	}}}
}

// copiedContent has two init containers. The first copies the registry program out of its image. The
// second runs it in the catalog's image to copy the catalog. This works for images without a shell.
func copiedContent(in *Input, s *Settings) mountedContent {
	step := func(name, image string, policy corev1.PullPolicy) corev1.Container {
		return corev1.Container{
			Name: name, Image: image, ImagePullPolicy: policy, Resources: requests(),
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			SecurityContext:          &corev1.SecurityContext{ReadOnlyRootFilesystem: new(true)},
		}
	}
	program := step("extract-utilities", s.RegistryImage, registryPullPolicy(s.RegistryImage))
	program.Args = []string{"copy-content", "--program.to=" + programPath}
	program.VolumeMounts = []corev1.VolumeMount{{Name: volumeProgram, MountPath: programDir}}
	content := step("extract-content", in.Image.Reference(), catalogPullPolicy(in.Image))
	content.Command = []string{programPath}
	content.Args = []string{"copy-content", "--catalog.from=" + catalogDir(in), "--catalog.to=" + catalogCopy}
	content.VolumeMounts = []corev1.VolumeMount{{Name: volumeProgram, MountPath: programDir, ReadOnly: true}, {Name: volumeContent, MountPath: contentDir}}
	return mountedContent{
		dir: contentDir, path: catalogCopy, init: []corev1.Container{program, content},
		volumes: []corev1.Volume{emptyVolume(volumeProgram, maxProgram), emptyVolume(volumeContent, maxContent)},
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

// emptyVolume returns an emptyDir volume. The kubelet evicts a pod that exceeds the limit.
func emptyVolume(name string, limit int64) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
		SizeLimit: resource.NewQuantity(limit, resource.BinarySI),
	}}}
}
