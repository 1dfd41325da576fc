package catalogsource

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/supervisor/api"
)

// What runs in the replicas of a catalog with an image, where the CatalogSource
// does not decide it by extractContent.
const (
	// ServerImage runs the image of the catalog as it is.
	ServerImage = "image"
	// ServerRegistry serves the content of the image with our registry.
	ServerRegistry = "registry"
)

// How content gets from an image into a replica that runs our registry.
const (
	// ContentAuto mounts the image where every node can do that, and copies
	// elsewhere.
	ContentAuto = "auto"
	// ContentVolume mounts the image.
	ContentVolume = "image-volume"
	// ContentCopy copies the content in init containers.
	ContentCopy = "init-container"
)

// defaultMemoryLimit is several times what the largest known catalog takes.
const defaultMemoryLimit = "1Gi"

// maxReplicas bounds what an annotation or a flag may ask for.
const maxReplicas = 32

// Hosting says how catalogs are run that the supervisor hosts.
type Hosting struct {
	// RegistryImage is the image of our registry.
	RegistryImage string
	// Server is ServerImage or ServerRegistry.
	Server string
	// Replicas is how many replicas a catalog has; 0 for two where two nodes
	// are there to run them, else one.
	Replicas int
	// Content is ContentAuto, ContentVolume or ContentCopy.
	Content string
	// SetWorkloadUserID gives restricted pods a user; platforms that assign one
	// themselves want it off.
	SetWorkloadUserID bool
	// MemoryLimit is that of each container that runs our registry, as 1Gi; "0"
	// for none.
	MemoryLimit string
	// PlainHTTP and SkipTLSVerify loosen how registries are asked for digests.
	PlainHTTP, SkipTLSVerify bool
}

// DefaultRegistryImage is the image of our registry that belongs to a version of
// the supervisor.
func DefaultRegistryImage(version string) string {
	if version == "" || version == "devel" {
		version = "latest"
	}
	return "chandlery/registry:" + version
}

func (h *Hosting) setDefaults() {
	h.RegistryImage = cmp.Or(h.RegistryImage, DefaultRegistryImage(""))
	h.Server = cmp.Or(h.Server, ServerImage)
	h.Content = cmp.Or(h.Content, ContentAuto)
	h.MemoryLimit = cmp.Or(h.MemoryLimit, defaultMemoryLimit)
}

// AddFlags adds a flag for each setting, with its default.
func (h *Hosting) AddFlags(fs *pflag.FlagSet, version string) {
	fs.StringVar(&h.RegistryImage, "registry-image", DefaultRegistryImage(version), "image of Chandlery's registry, for ConfigMaps and the content of images")
	fs.StringVar(&h.Server, "catalog-server", ServerImage, "what serves the catalog of an image; image: the image itself; registry: --registry-image, with the content of the image; extractContent always means registry")
	fs.IntVar(&h.Replicas, "catalog-replicas", 0, "replicas of a catalog without the annotation "+api.AnnotationReplicas+"; 0: two if two nodes can run them, else one")
	fs.StringVar(&h.Content, "catalog-content", ContentAuto, "how --registry-image gets the content of an image; image-volume: mount it; init-container: copy it; auto: mount it if every node can, else copy it")
	fs.BoolVar(&h.SetWorkloadUserID, "set-workload-user-id", true, "run restricted catalog pods as user 1001; set it to false if the platform assigns a user")
	fs.StringVar(&h.MemoryLimit, "registry-memory-limit", defaultMemoryLimit, "memory limit of containers that run --registry-image, as a quantity of bytes; 0: none; never lower than the request of the CatalogSource")
	fs.BoolVar(&h.PlainHTTP, "image-plain-http", false, "allow plain HTTP to registries without TLS, for digests and bundle images")
	fs.BoolVar(&h.SkipTLSVerify, "image-skip-tls-verify", false, "accept any certificate of registries, for digests and bundle images")
}

// Validate says what is wrong with the settings, and what to do.
func (h *Hosting) Validate() error {
	var problems []error
	oneOf := func(flag, value string, allowed ...string) {
		if !slices.Contains(allowed, value) {
			problems = append(problems, fmt.Errorf("--%s is %q; it has to be one of %s", flag, value, strings.Join(allowed, ", ")))
		}
	}
	oneOf("catalog-server", h.Server, ServerImage, ServerRegistry)
	oneOf("catalog-content", h.Content, ContentAuto, ContentVolume, ContentCopy)
	if h.Replicas < 0 || h.Replicas > maxReplicas {
		problems = append(problems, fmt.Errorf("--catalog-replicas is %d; it has to be from 0 to %d", h.Replicas, maxReplicas))
	}
	if limit, err := resource.ParseQuantity(h.MemoryLimit); err != nil || limit.Sign() < 0 {
		problems = append(problems, fmt.Errorf("--registry-memory-limit is %q, which is no quantity of bytes; write it as 1Gi, or 0 for none", h.MemoryLimit))
	}
	if !image.IsReference(h.RegistryImage) {
		problems = append(problems, fmt.Errorf("--registry-image is %q, which names no image; write it as repository:tag or repository@digest", h.RegistryImage))
	}
	return errors.Join(problems...)
}
