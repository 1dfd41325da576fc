package manifest

import (
	"fmt"

	"github.com/blang/semver/v4"
)

// Content is the part of the status of a PackageManifest that the content of a catalog determines. The field names,
// and the fields that are omitted if they are empty, are part of the API.
type Content struct {
	Provider       Provider     `doc:"Provider of the package, as the head of its default channel states it." json:"provider"`
	PackageName    string       `doc:"Name of the package."                                                   json:"packageName"`
	Deprecation    *Deprecation `doc:"Set if the package is deprecated."                                      json:"deprecation,omitempty"`
	Channels       []Channel    `doc:"Channels of the package, sorted by name."                               json:"channels"`
	DefaultChannel string       `doc:"Name of the channel of Subscriptions that name none."                   json:"defaultChannel"`
}

// Deprecation is a notice of the authors of a catalog.
type Deprecation struct {
	Message string `doc:"Reason, and what to use instead." json:"message"`
}

// Channel is a channel of a package.
type Channel struct {
	Name           string       `doc:"Name of the channel."                                          json:"name"`
	CurrentCSV     string       `doc:"Name of the ClusterServiceVersion at the head of the channel." json:"currentCSV"`
	CurrentCSVDesc Description  `doc:"Description of the head of the channel."                       json:"currentCSVDesc"`
	Deprecation    *Deprecation `doc:"Set if the channel is deprecated."                             json:"deprecation,omitempty"`
	Entries        []Entry      `doc:"Versions in the channel, newest first."                        json:"entries"`
}

// Entry is a version in a channel.
type Entry struct {
	Name        string       `doc:"Name of the ClusterServiceVersion." json:"name"`
	Version     string       `doc:"Version of the operator."           json:"version,omitempty"`
	Deprecation *Deprecation `doc:"Set if the version is deprecated."  json:"deprecation,omitempty"`
}

// Description describes a ClusterServiceVersion.
type Description struct {
	DisplayName               string            `doc:"Name of the operator for users."                          json:"displayName,omitempty"`
	Icon                      []Icon            `doc:"Always empty; the subresource icon serves the icon."      json:"icon,omitempty"`
	Version                   Version           `doc:"Version of the operator."                                 json:"version"`
	Provider                  Provider          `doc:"Provider of the operator."                                json:"provider"`
	Annotations               map[string]string `doc:"Annotations of the ClusterServiceVersion."                json:"annotations,omitempty"`
	Keywords                  []string          `doc:"Keywords for searches."                                   json:"keywords,omitempty"`
	Links                     []Link            `doc:"Links to more information."                               json:"links,omitempty"`
	Maintainers               []Maintainer      `doc:"Maintainers of the operator."                             json:"maintainers,omitempty"`
	Maturity                  string            `doc:"Maturity of the operator."                                json:"maturity,omitempty"`
	LongDescription           string            `doc:"Description of the operator, often Markdown."             json:"description,omitempty"`
	InstallModes              []InstallMode     `doc:"Sets of namespaces that the operator can watch."          json:"installModes,omitempty"`
	CustomResourceDefinitions CRDs              `doc:"Custom resources that the operator owns and requires."    json:"customresourcedefinitions"`
	APIServiceDefinitions     APIServices       `doc:"Aggregated APIs that the operator owns and requires."     json:"apiservicedefinitions"`
	NativeAPIs                []GroupKind       `doc:"Kinds of the cluster that the operator requires."         json:"nativeApis,omitempty"`
	MinKubeVersion            string            `doc:"Oldest version of Kubernetes that the operator supports." json:"minKubeVersion,omitempty"`
	RelatedImages             []string          `doc:"Images that the operator uses, sorted."                   json:"relatedImages,omitempty"`
}

// Icon is an icon of an operator.
type Icon struct {
	Data      string `doc:"Image in base64."         json:"base64data,omitempty"`
	MediaType string `doc:"Media type of the image." json:"mediatype,omitempty"`
}

// Provider is a provider of operators.
type Provider struct {
	Name string `doc:"Name of the provider." json:"name,omitempty"`
	URL  string `doc:"URL of the provider."  json:"url,omitempty"`
}

// Link is a link to more information.
type Link struct {
	Name string `doc:"Name of the link." json:"name,omitempty"`
	URL  string `doc:"URL of the link."  json:"url,omitempty"`
}

// Maintainer is a maintainer of an operator.
type Maintainer struct {
	Name  string `doc:"Name of the maintainer."    json:"name,omitempty"`
	Email string `doc:"Address of the maintainer." json:"email,omitempty"`
}

// InstallMode is a set of namespaces that an operator may be able to watch.
type InstallMode struct {
	Type      string `doc:"OwnNamespace, SingleNamespace, MultiNamespace or AllNamespaces." json:"type"`
	Supported bool   `doc:"Whether the operator supports it."                               json:"supported"`
}

// CRDs are the custom resources of an operator.
type CRDs struct {
	Owned    []CRD `doc:"Custom resources that the operator owns."     json:"owned,omitempty"`
	Required []CRD `doc:"Custom resources that the operator requires." json:"required,omitempty"`
}

// CRD is a kind of custom resources.
type CRD struct {
	Name        string `doc:"Name of the CustomResourceDefinition." json:"name"`
	Version     string `doc:"Version of the kind."                  json:"version"`
	Kind        string `doc:"Kind of the resources."                json:"kind"`
	DisplayName string `doc:"Name of the kind for users."           json:"displayName,omitempty"`
	Description string `doc:"Description of the kind."              json:"description,omitempty"`
}

// APIServices are the aggregated APIs of an operator.
type APIServices struct {
	Owned    []APIService `doc:"Aggregated APIs that the operator owns."     json:"owned,omitempty"`
	Required []APIService `doc:"Aggregated APIs that the operator requires." json:"required,omitempty"`
}

// APIService is a kind of an aggregated API.
type APIService struct {
	Name        string `doc:"Name of the resource."       json:"name"`
	Group       string `doc:"Group of the API."           json:"group"`
	Version     string `doc:"Version of the API."         json:"version"`
	Kind        string `doc:"Kind of the resources."      json:"kind"`
	DisplayName string `doc:"Name of the kind for users." json:"displayName,omitempty"`
	Description string `doc:"Description of the kind."    json:"description,omitempty"`
}

// GroupKind is a version of a kind.
type GroupKind struct {
	Group   string `doc:"Group of the API."      json:"group"`
	Version string `doc:"Version of the API."    json:"version"`
	Kind    string `doc:"Kind of the resources." json:"kind"`
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
