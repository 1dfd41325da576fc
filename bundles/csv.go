package bundles

import "encoding/json"

// CSVMetadata is the value of an olm.csv.metadata property: those parts of a
// bundle's ClusterServiceVersion that catalogs show. The nested types have
// the shape of the operators.coreos.com/v1alpha1 API.
type CSVMetadata struct {
	Annotations               map[string]string `json:"annotations,omitempty"`
	APIServiceDefinitions     APIServices       `json:"apiServiceDefinitions,omitzero"`
	CustomResourceDefinitions CRDs              `json:"crdDescriptions,omitzero"`
	Description               string            `json:"description,omitempty"`
	DisplayName               string            `json:"displayName,omitempty"`
	InstallModes              []InstallMode     `json:"installModes,omitempty"`
	Keywords                  []string          `json:"keywords,omitempty"`
	Labels                    map[string]string `json:"labels,omitempty"`
	Links                     []AppLink         `json:"links,omitempty"`
	Maintainers               []Maintainer      `json:"maintainers,omitempty"`
	Maturity                  string            `json:"maturity,omitempty"`
	MinKubeVersion            string            `json:"minKubeVersion,omitempty"`
	NativeAPIs                []NativeAPI       `json:"nativeAPIs,omitempty"`
	Provider                  AppLink           `json:"provider,omitzero"`
}

// CRDs are the custom resource definitions that an operator owns and needs.
type CRDs struct {
	Owned    []CRDDescription `json:"owned,omitempty"`
	Required []CRDDescription `json:"required,omitempty"`
}

// CRDDescription describes one custom resource definition.
type CRDDescription struct {
	Name              string         `json:"name"`
	Version           string         `json:"version"`
	Kind              string         `json:"kind"`
	DisplayName       string         `json:"displayName,omitempty"`
	Description       string         `json:"description,omitempty"`
	Resources         []APIReference `json:"resources,omitempty"`
	StatusDescriptors []Descriptor   `json:"statusDescriptors,omitempty"`
	SpecDescriptors   []Descriptor   `json:"specDescriptors,omitempty"`
	ActionDescriptor  []Descriptor   `json:"actionDescriptors,omitempty"`
}

// APIServices are the aggregated APIs that an operator owns and needs.
type APIServices struct {
	Owned    []APIServiceDescription `json:"owned,omitempty"`
	Required []APIServiceDescription `json:"required,omitempty"`
}

// APIServiceDescription describes one aggregated API.
type APIServiceDescription struct {
	Name              string         `json:"name"`
	Group             string         `json:"group"`
	Version           string         `json:"version"`
	Kind              string         `json:"kind"`
	DeploymentName    string         `json:"deploymentName,omitempty"`
	ContainerPort     int32          `json:"containerPort,omitempty"`
	DisplayName       string         `json:"displayName,omitempty"`
	Description       string         `json:"description,omitempty"`
	Resources         []APIReference `json:"resources,omitempty"`
	StatusDescriptors []Descriptor   `json:"statusDescriptors,omitempty"`
	SpecDescriptors   []Descriptor   `json:"specDescriptors,omitempty"`
	ActionDescriptor  []Descriptor   `json:"actionDescriptors,omitempty"`
}

// APIReference names a resource that belongs to a described API.
type APIReference struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Version string `json:"version"`
}

// Descriptor describes a field of a resource for user interfaces.
type Descriptor struct {
	Path         string          `json:"path"`
	DisplayName  string          `json:"displayName,omitempty"`
	Description  string          `json:"description,omitempty"`
	XDescriptors []string        `json:"x-descriptors,omitempty"`
	Value        json.RawMessage `json:"value,omitempty"`
}

// InstallMode reports whether an operator supports one way of selecting the namespaces that it watches.
type InstallMode struct {
	Type      string `json:"type"`
	Supported bool   `json:"supported"`
}

// AppLink is a named link.
type AppLink struct {
	Name string `json:"name,omitempty"`
	URL  string `json:"url,omitempty"`
}

// Maintainer is a person or an organization that maintains an operator.
type Maintainer struct {
	Name  string `json:"name,omitempty"`
	Email string `json:"email,omitempty"`
}

// NativeAPI is an API that the cluster itself must serve.
type NativeAPI struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}
