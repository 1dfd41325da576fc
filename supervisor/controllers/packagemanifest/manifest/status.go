package manifest

import (
	"fmt"

	"github.com/blang/semver/v4"
)

// Content is the part of the status of a PackageManifest that the content of a catalog determines. The field names,
// and the fields that are omitted if they are empty, are part of the API.
type Content struct {
	Provider       Provider     `json:"provider"                doc:"Provider of the package, as the head of its default channel states it."`
	PackageName    string       `json:"packageName"             doc:"Name of the package."`
	Deprecation    *Deprecation `json:"deprecation,omitempty"   doc:"Set if the package is deprecated."`
	Channels       []Channel    `json:"channels"                doc:"Channels of the package, sorted by name."`
	DefaultChannel string       `json:"defaultChannel"          doc:"Name of the channel of Subscriptions that name none."`
}

// Deprecation is a notice of the authors of a catalog.
type Deprecation struct {
	Message string `json:"message" doc:"Reason, and what to use instead."`
}

// Channel is a channel of a package.
type Channel struct {
	Name           string       `json:"name"                  doc:"Name of the channel."`
	CurrentCSV     string       `json:"currentCSV"            doc:"Name of the ClusterServiceVersion at the head of the channel."`
	CurrentCSVDesc Description  `json:"currentCSVDesc"        doc:"Description of the head of the channel."`
	Deprecation    *Deprecation `json:"deprecation,omitempty" doc:"Set if the channel is deprecated."`
	Entries        []Entry      `json:"entries"               doc:"Versions in the channel, newest first."`
}

// Entry is a version in a channel.
type Entry struct {
	Name        string       `json:"name"                  doc:"Name of the ClusterServiceVersion."`
	Version     string       `json:"version,omitempty"     doc:"Version of the operator."`
	Deprecation *Deprecation `json:"deprecation,omitempty" doc:"Set if the version is deprecated."`
}

// Description describes a ClusterServiceVersion.
type Description struct {
	DisplayName               string            `json:"displayName,omitempty"     doc:"Name of the operator for users."`
	Icon                      []Icon            `json:"icon,omitempty"            doc:"Always empty; the subresource icon serves the icon."`
	Version                   Version           `json:"version"                   doc:"Version of the operator."`
	Provider                  Provider          `json:"provider"                  doc:"Provider of the operator."`
	Annotations               map[string]string `json:"annotations,omitempty"     doc:"Annotations of the ClusterServiceVersion."`
	Keywords                  []string          `json:"keywords,omitempty"        doc:"Keywords for searches."`
	Links                     []Link            `json:"links,omitempty"           doc:"Links to more information."`
	Maintainers               []Maintainer      `json:"maintainers,omitempty"     doc:"Maintainers of the operator."`
	Maturity                  string            `json:"maturity,omitempty"        doc:"Maturity of the operator."`
	LongDescription           string            `json:"description,omitempty"     doc:"Description of the operator, often Markdown."`
	InstallModes              []InstallMode     `json:"installModes,omitempty"    doc:"Sets of namespaces that the operator can watch."`
	CustomResourceDefinitions CRDs              `json:"customresourcedefinitions" doc:"Custom resources that the operator owns and requires."`
	APIServiceDefinitions     APIServices       `json:"apiservicedefinitions"     doc:"Aggregated APIs that the operator owns and requires."`
	NativeAPIs                []GroupKind       `json:"nativeApis,omitempty"      doc:"Kinds of the cluster that the operator requires."`
	MinKubeVersion            string            `json:"minKubeVersion,omitempty"  doc:"Oldest version of Kubernetes that the operator supports."`
	RelatedImages             []string          `json:"relatedImages,omitempty"   doc:"Images that the operator uses, sorted."`
}

// Icon is an icon of an operator.
type Icon struct {
	Data      string `json:"base64data,omitempty" doc:"Image in base64."`
	MediaType string `json:"mediatype,omitempty"  doc:"Media type of the image."`
}

// Provider is a provider of operators.
type Provider struct {
	Name string `json:"name,omitempty" doc:"Name of the provider."`
	URL  string `json:"url,omitempty"  doc:"URL of the provider."`
}

// Link is a link to more information.
type Link struct {
	Name string `json:"name,omitempty" doc:"Name of the link."`
	URL  string `json:"url,omitempty"  doc:"URL of the link."`
}

// Maintainer is a maintainer of an operator.
type Maintainer struct {
	Name  string `json:"name,omitempty"  doc:"Name of the maintainer."`
	Email string `json:"email,omitempty" doc:"Address of the maintainer."`
}

// InstallMode is a set of namespaces that an operator may be able to watch.
type InstallMode struct {
	Type      string `json:"type"      doc:"OwnNamespace, SingleNamespace, MultiNamespace or AllNamespaces."`
	Supported bool   `json:"supported" doc:"Whether the operator supports it."`
}

// CRDs are the custom resources of an operator.
type CRDs struct {
	Owned    []CRD `json:"owned,omitempty"    doc:"Custom resources that the operator owns."`
	Required []CRD `json:"required,omitempty" doc:"Custom resources that the operator requires."`
}

// CRD is a kind of custom resources.
type CRD struct {
	Name        string `json:"name"                  doc:"Name of the CustomResourceDefinition."`
	Version     string `json:"version"               doc:"Version of the kind."`
	Kind        string `json:"kind"                  doc:"Kind of the resources."`
	DisplayName string `json:"displayName,omitempty" doc:"Name of the kind for users."`
	Description string `json:"description,omitempty" doc:"Description of the kind."`
}

// APIServices are the aggregated APIs of an operator.
type APIServices struct {
	Owned    []APIService `json:"owned,omitempty"    doc:"Aggregated APIs that the operator owns."`
	Required []APIService `json:"required,omitempty" doc:"Aggregated APIs that the operator requires."`
}

// APIService is a kind of an aggregated API.
type APIService struct {
	Name        string `json:"name"                  doc:"Name of the resource."`
	Group       string `json:"group"                 doc:"Group of the API."`
	Version     string `json:"version"               doc:"Version of the API."`
	Kind        string `json:"kind"                  doc:"Kind of the resources."`
	DisplayName string `json:"displayName,omitempty" doc:"Name of the kind for users."`
	Description string `json:"description,omitempty" doc:"Description of the kind."`
}

// GroupKind is a version of a kind.
type GroupKind struct {
	Group   string `json:"group"   doc:"Group of the API."`
	Version string `json:"version" doc:"Version of the API."`
	Kind    string `json:"kind"    doc:"Kind of the resources."`
}

// Version is a semantic version. The zero value is 0.0.0.
type Version string

// UnmarshalText parses a version. It accepts v1.2 for 1.2.0, as OLM does.
func (v *Version) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	parsed, err := semver.ParseTolerant(string(text))
	if err != nil {
		return fmt.Errorf("reading version %q: %w", text, err)
	}
	*v = Version(parsed.String())
	return nil
}

// MarshalText returns the version.
func (v Version) MarshalText() ([]byte, error) {
	if v == "" {
		return []byte("0.0.0"), nil
	}
	return []byte(v), nil
}
