package catalogquery

import (
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Manifest holds the fields of a PackageManifest that commands use. The server's types are those of package manifest, which
// belongs to a controller.
type Manifest struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Status   ManifestStatus    `json:"status"`
}

// ManifestStatus is the status of a PackageManifest.
type ManifestStatus struct {
	CatalogSource          string            `json:"catalogSource"`
	CatalogSourceNamespace string            `json:"catalogSourceNamespace"`
	Provider               ManifestProvider  `json:"provider"`
	Deprecation            *Deprecation      `json:"deprecation"`
	Channels               []ManifestChannel `json:"channels"`
	DefaultChannel         string            `json:"defaultChannel"`
}

// ManifestProvider is the provider of a package.
type ManifestProvider struct {
	Name string `json:"name"`
}

// Deprecation is the notice of a deprecated package.
type Deprecation struct {
	Message string `json:"message"`
}

// ManifestChannel is a channel of a package. Its entries begin with the newest version.
type ManifestChannel struct {
	Name           string              `json:"name"`
	CurrentCSV     string              `json:"currentCSV"`
	CurrentCSVDesc ManifestDescription `json:"currentCSVDesc"`
	Entries        []ManifestEntry     `json:"entries"`
}

// ManifestEntry is a version in a channel.
type ManifestEntry struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// ManifestDescription describes the head of a channel.
type ManifestDescription struct {
	DisplayName               string                                      `json:"displayName"`
	Version                   string                                      `json:"version"`
	Annotations               map[string]string                           `json:"annotations"`
	Keywords                  []string                                    `json:"keywords"`
	LongDescription           string                                      `json:"description"`
	InstallModes              []operatorsv1alpha1.InstallMode             `json:"installModes"`
	CustomResourceDefinitions operatorsv1alpha1.CustomResourceDefinitions `json:"customresourcedefinitions"`
	APIServiceDefinitions     operatorsv1alpha1.APIServiceDefinitions     `json:"apiservicedefinitions"`
}
