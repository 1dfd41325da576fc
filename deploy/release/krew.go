package release

import (
	"fmt"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"sigs.k8s.io/yaml"
)

// krewFile is the name of the manifest in krew's index: krew expects the name of the plugin.
const krewFile = "chandlery.yaml"

// krewPlugin is a manifest of krew, the package manager of kubectl plugins.
type krewPlugin struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Spec       krewSpec          `json:"spec"`
}

type krewSpec struct {
	Version          string         `json:"version"`
	Homepage         string         `json:"homepage"`
	ShortDescription string         `json:"shortDescription"`
	Description      string         `json:"description"`
	Platforms        []krewPlatform `json:"platforms"`
}

// krewPlatform names the archive of a platform.
type krewPlatform struct {
	Selector krewSelector `json:"selector"`
	URI      string       `json:"uri"`
	SHA256   string       `json:"sha256"`
	Bin      string       `json:"bin"`
}

type krewSelector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

// krewManifest returns the manifest of the plugin. downloads is the URL of the folder with the archives, and archives
// are their checksums.
func krewManifest(version Version, downloads string, platforms []v1.Platform, archives sums) ([]byte, error) {
	manifest := krewPlugin{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin",
		Metadata: map[string]string{"name": "chandlery"},
		Spec: krewSpec{
			Version: version.Tag(), Homepage: repository,
			ShortDescription: "Inspect, install and remove operators",
			Description:      "Shows what operators a cluster has and why one is not installed, and installs, upgrades and\nremoves operators of OLM catalogs.\n",
		},
	}
	for _, p := range platforms {
		name := archiveName(version, p)
		manifest.Spec.Platforms = append(manifest.Spec.Platforms, krewPlatform{
			Selector: krewSelector{MatchLabels: map[string]string{"os": p.OS, "arch": p.Architecture}},
			URI:      strings.TrimSuffix(downloads, "/") + "/" + name, SHA256: archives[name], Bin: pluginFile(p),
		})
	}
	text, err := yaml.Marshal(manifest)
	if err != nil {
		return nil, fmt.Errorf("writing the manifest for krew: %w", err)
	}
	return text, nil
}
