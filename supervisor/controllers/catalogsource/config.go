package catalogsource

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/image/sources"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/deployment"
	"github.com/chandlery/chandlery/supervisor/imagesources"
)

// Config configures how the supervisor runs catalogs.
type Config struct {
	deployment.Settings

	// PlainHTTP and SkipTLSVerify relax the transport security of digest requests to registries.
	PlainHTTP, SkipTLSVerify bool
	// Registries are the settings for image registries, and PullSecrets the Secrets for the images of all
	// catalogs, as NAMESPACE/NAME.
	Registries  sources.Paths
	PullSecrets []string
	// Proxy is the proxy for image registries.
	Proxy imagesources.Proxy
}

// AddFlags adds a flag with a default for each setting.
func (c *Config) AddFlags(fs *pflag.FlagSet, version string) {
	fs.StringVar(&c.RegistryImage, "registry-image", deployment.DefaultRegistryImage(version), "image of Chandlery's registry, which serves catalogs from ConfigMaps and from the content of images")
	fs.StringVar(&c.Server, "catalog-server", deployment.ServerImage, "program that serves the catalog in an image if the CatalogSource does not set spec.grpcPodConfig.extractContent; image: the program in that image; registry: the one in --registry-image")
	fs.IntVar(&c.Replicas, "catalog-replicas", 0,
		"replicas of a catalog without the annotation "+api.AnnotationReplicas+"; 0: two if two nodes can run them, else one")
	fs.StringVar(&c.Content, "catalog-content", deployment.ContentAuto, "how containers of --registry-image get the content of a catalog image: image-volume, init-container or auto (image-volume if every node supports image volumes, else init-container)")
	fs.BoolVar(&c.SetWorkloadUserID, "set-workload-user-id", true, "run restricted catalog pods as user 1001; set it to false if the platform assigns a user")
	fs.StringVar(&c.MemoryLimit, "registry-memory-limit", deployment.DefaultMemoryLimit, "memory limit of containers that run --registry-image, such as 1Gi; 0: none; a larger memory request in the CatalogSource raises the limit")
	fs.BoolVar(&c.TLS, "catalog-tls", false, "serve TLS on port 50052 of catalogs that run --registry-image, unless the annotation "+api.AnnotationServeTLS+" is false")
	fs.BoolVar(&c.PlainHTTP, "image-plain-http", false, "use plain HTTP with image registries that lack TLS, to look up digests and to pull bundle images")
	fs.BoolVar(&c.SkipTLSVerify, "image-skip-tls-verify", false, "accept any certificate of image registries when looking up digests and pulling bundle images")
	c.Registries.AddFlags(fs)
	fs.StringVar(&c.Registries.CA, "image-ca", "", "file with CA certificates (PEM) of image registries to trust in addition to the CAs of the system")
	fs.StringSliceVar(&c.PullSecrets, "image-pull-secrets", nil, "Secrets with credentials for the images of all catalogs, as NAMESPACE/NAME; tried after those of the catalog")
	c.Proxy.AddFlags(fs)
}

// SharedSecrets returns the Secrets for the images of all catalogs.
func (c *Config) SharedSecrets() []types.NamespacedName {
	var all []types.NamespacedName
	for _, one := range c.PullSecrets {
		namespace, name, _ := strings.Cut(one, "/")
		all = append(all, types.NamespacedName{Namespace: namespace, Name: name})
	}
	return all
}

// Validate returns an error that names every invalid setting and its remedy.
func (c *Config) Validate() error {
	var problems []error
	oneOf := func(flag, value string, allowed ...string) {
		if !slices.Contains(allowed, value) {
			problems = append(problems, fmt.Errorf("--%s is %q; it has to be one of %s", flag, value, strings.Join(allowed, ", ")))
		}
	}
	oneOf("catalog-server", c.Server, deployment.ServerImage, deployment.ServerRegistry)
	oneOf("catalog-content", c.Content, deployment.ContentAuto, deployment.ContentVolume, deployment.ContentCopy)
	if c.Replicas < 0 || c.Replicas > deployment.MaxReplicas {
		problems = append(problems, fmt.Errorf("--catalog-replicas is %d; it has to be from 0 to %d", c.Replicas, deployment.MaxReplicas))
	}
	if limit, err := resource.ParseQuantity(c.MemoryLimit); err != nil || limit.Sign() < 0 {
		problems = append(problems, fmt.Errorf("--registry-memory-limit is %q, which is not a number of bytes; write it as 1Gi, or 0 for none", c.MemoryLimit))
	}
	for _, one := range c.SharedSecrets() {
		if len(validation.IsDNS1123Label(one.Namespace)) > 0 || len(validation.IsDNS1123Subdomain(one.Name)) > 0 {
			problems = append(problems, fmt.Errorf("--image-pull-secrets has %q, which names no Secret; write it as NAMESPACE/NAME", one.Namespace+"/"+one.Name))
		}
	}
	if !image.IsReference(c.RegistryImage) {
		problems = append(problems, fmt.Errorf("--registry-image is %q, which names no image; write it as repository:tag or repository@digest", c.RegistryImage))
	}
	return errors.Join(append(problems, c.Proxy.Validate())...)
}
