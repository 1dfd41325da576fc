package server

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest/manifest"
)

// GroupVersion is the group and version of the API.
var GroupVersion = schema.GroupVersion{Group: "packages.operators.coreos.com", Version: "v1"}

const (
	resource = "packagemanifests"
	singular = "packagemanifest"
	kind     = "PackageManifest"
)

// PackageManifest is a package of a catalog. Its status is encoded when it is sent.
type PackageManifest struct { //nolint:recvcheck // OpenAPIModelName is called on values
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"` //nolint:modernize // the tag of every kind of Kubernetes

	Spec   Spec   `doc:"Empty."                  json:"spec"`
	Status Status `doc:"Content of the package." json:"status"`
}

// Spec is empty: clients only read packages.
type Spec struct{}

// Status is the status of a PackageManifest. It holds the package in compressed form.
type Status struct{ item manifest.Item }

// MarshalJSON returns the JSON of a manifest.Status.
func (s Status) MarshalJSON() ([]byte, error) {
	if s.item.Package == nil {
		return []byte("{}"), nil
	}
	return s.item.Package.StatusJSON(s.item.Source)
}

// PackageManifestList is a list of packages.
type PackageManifestList struct { //nolint:recvcheck // OpenAPIModelName is called on values
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"` //nolint:modernize // the streaming encoder of lists requires this tag

	Items []PackageManifest `doc:"Packages, sorted by name, and by namespace and name of the catalog." json:"items"`
}

// DeepCopyObject copies the metadata. Packages are never modified.
func (p *PackageManifest) DeepCopyObject() runtime.Object {
	out := *p
	p.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// DeepCopyObject copies the metadata of all items.
func (l *PackageManifestList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = make([]PackageManifest, len(l.Items))
	for i := range l.Items {
		out.Items[i] = l.Items[i]
		l.Items[i].DeepCopyInto(&out.Items[i].ObjectMeta)
	}
	return &out
}

// OpenAPIModelName returns the name of the type in OpenAPI documents.
func (PackageManifest) OpenAPIModelName() string { return modelPrefix + kind }

// OpenAPIModelName returns the name of the type in OpenAPI documents.
func (PackageManifestList) OpenAPIModelName() string { return modelPrefix + kind + "List" }

// newScheme returns a scheme with the kinds of the API.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(GroupVersion, &PackageManifest{}, &PackageManifestList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	general := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, general)
	scheme.AddUnversionedTypes(general, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	return scheme
}
