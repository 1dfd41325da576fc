package plansteps

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/chandlery/chandlery/supervisor/api/olmtext"
)

// ErrNoInlineManifests means that a bundle's manifests are not in its catalog, which only refers to the image
// that holds them.
var ErrNoInlineManifests = errors.New("the catalog does not hold the bundle's manifests")

// IncompleteCSVError means that the ClusterServiceVersion of a bundle lacks a field of its type. Clients compare the
// text.
type IncompleteCSVError struct{ Name, Field string }

// Error returns the sentence of OLM.
func (e *IncompleteCSVError) Error() string {
	return olmtext.IncompleteCSV(e.Name, e.Field)
}

// Property is one property of a bundle, as in the catalog: Value is JSON text.
type Property struct {
	Type  string
	Value string
}

// Bundle is the content of one operator version, ready to be planned.
type Bundle struct {
	// Name is the name of the ClusterServiceVersion, unique in its package.
	Name string
	// Package and Channel are the package and the channel of the bundle in the catalog.
	Package, Channel string
	// Catalog is the CatalogSource that serves it.
	Catalog types.NamespacedName
	// Replaces is the name of the ClusterServiceVersion that this one replaces: the installed one on an update, else
	// the replaces of the channel entry.
	Replaces string
	// Image is the bundle image that Objects come from, by digest; empty if the catalog itself holds them.
	Image string
	// Properties are stored on the ClusterServiceVersion as an annotation.
	Properties []Property
	// Objects are the manifests as JSON texts, ClusterServiceVersion included.
	Objects []string
}

// Digest returns the SHA-256, in hex, of a bundle's manifests in the order of the catalog. Two catalogs that
// serve the same manifests have the same digest.
func Digest(objects []string) string {
	sum := sha256.New()
	for _, o := range objects {
		// The length distinguishes ["ab","c"] from ["a","bc"].
		fmt.Fprintf(sum, "%d:", len(o))
		sum.Write([]byte(o))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// decode reads a bundle's manifests. Errors name the bundle and the position of the invalid manifest.
func decode(b Bundle, kinds Kinds) ([]*unstructured.Unstructured, error) {
	if len(b.Objects) == 0 {
		return nil, fmt.Errorf("bundle %s of package %s: %w", b.Name, b.Package, ErrNoInlineManifests)
	}
	objects := make([]*unstructured.Unstructured, 0, len(b.Objects))
	for i, text := range b.Objects {
		u := &unstructured.Unstructured{}
		// Kubernetes' decoder preserves whole numbers up to 64 bits.
		if err := json.Unmarshal([]byte(text), &u.Object); err != nil {
			return nil, fmt.Errorf("bundle %s of package %s: manifest %d of %d is not a JSON object: %w", b.Name, b.Package, i+1, len(b.Objects), err)
		}
		if err := completeType(u, kinds); err != nil {
			return nil, fmt.Errorf("bundle %s of package %s: manifest %d of %d: %w", b.Name, b.Package, i+1, len(b.Objects), err)
		}
		if u.GetName() == "" {
			return nil, fmt.Errorf("bundle %s of package %s: the %s that is manifest %d of %d lacks metadata.name", b.Name, b.Package, u.GetKind(), i+1, len(b.Objects))
		}
		objects = append(objects, u)
	}
	return objects, nil
}

// typeErrorOf returns the error for an object of a bundle that lacks kind or apiVersion.
func typeErrorOf(u *unstructured.Unstructured) error {
	missing := "apiVersion"
	switch {
	case u.GetKind() == "" && u.GetAPIVersion() == "":
		missing = "apiVersion and kind"
	case u.GetKind() == "":
		missing = "kind"
	}
	object := cmp.Or(strings.TrimSpace(u.GetKind()+" "+u.GetName()), "it")
	return fmt.Errorf("%s lacks %s; correct the manifest in the catalog", object, missing)
}

// completeType sets the type of an object of a bundle. A ClusterServiceVersion may have any apiVersion. Of other
// objects, the kind may determine a missing group.
func completeType(u *unstructured.Unstructured, kinds Kinds) error {
	group, version := splitVersion(u.GetAPIVersion())
	switch {
	case u.GetKind() == kindCSV && version == "":
		return &IncompleteCSVError{Name: u.GetName(), Field: "APIVersion"}
	case u.GetKind() == kindCSV:
		u.SetAPIVersion(operatorsv1alpha1.ClusterServiceVersionAPIVersion)
		return nil
	case u.GetKind() == "" && group == groupOperators:
		return &IncompleteCSVError{Name: u.GetName(), Field: "Kind"}
	case u.GetKind() == "":
		return typeErrorOf(u)
	case group != "":
		return nil
	}
	gvk, err := typeOf(u, &operatorsv1alpha1.Step{Resource: operatorsv1alpha1.StepResource{Kind: u.GetKind(), Name: u.GetName()}}, u.GetKind(), kinds)
	switch {
	case err != nil && version != "":
		return err
	case gvk.Version == "":
		return typeErrorOf(u)
	}
	u.SetGroupVersionKind(gvk)
	return nil
}
