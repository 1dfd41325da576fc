package deployment

import "cmp"

// Values of Settings.Server. They apply to catalog images without extractContent.
const (
	// ServerImage runs the catalog's image unchanged.
	ServerImage = "image"
	// ServerRegistry serves the content of the image with Chandlery's registry.
	ServerRegistry = "registry"
)

// Values of Settings.Content: how the content of an image gets into a replica that runs Chandlery's
// registry.
const (
	// ContentAuto mounts the image if every node supports that, and copies the content otherwise.
	ContentAuto = "auto"
	// ContentVolume mounts the image.
	ContentVolume = "image-volume"
	// ContentCopy copies the content in init containers.
	ContentCopy = "init-container"
)

// DefaultMemoryLimit is several times the memory for the largest known catalog.
const DefaultMemoryLimit = "1Gi"

// MaxReplicas limits the number of replicas in an annotation or a flag.
const MaxReplicas = 32

// Settings holds the settings for the objects of all catalogs.
type Settings struct {
	// RegistryImage is the image of Chandlery's registry.
	RegistryImage string
	// Server is ServerImage or ServerRegistry.
	Server string
	// Replicas is the number of replicas of a catalog. 0 means two if two nodes can run them,
	// otherwise one.
	Replicas int
	// Content is ContentAuto, ContentVolume or ContentCopy.
	Content string
	// SetWorkloadUserID sets a user ID for restricted pods. Disable it on platforms that assign
	// user IDs.
	SetWorkloadUserID bool
	// MemoryLimit is the memory limit of each container with Chandlery's registry, such as 1Gi; "0"
	// for none.
	MemoryLimit string
	// TLS makes catalogs serve TLS on a second port, unless an annotation decides.
	TLS bool
}

// DefaultRegistryImage returns the image of Chandlery's registry for a version of the supervisor.
func DefaultRegistryImage(version string) string {
	if version == "" || version == "devel" {
		version = "latest"
	}
	return "chandlery/registry:" + version
}

// WithDefaults returns the settings with defaults for empty fields.
func (s Settings) WithDefaults() Settings {
	s.RegistryImage = cmp.Or(s.RegistryImage, DefaultRegistryImage(""))
	s.Server = cmp.Or(s.Server, ServerImage)
	s.Content = cmp.Or(s.Content, ContentAuto)
	s.MemoryLimit = cmp.Or(s.MemoryLimit, DefaultMemoryLimit)
	return s
}
