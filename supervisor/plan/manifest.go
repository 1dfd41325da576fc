package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// MaxInline bounds, in bytes, the manifests that a plan carries itself. The API
// server stores objects of up to 1.5 MiB; half a MiB leaves room for everything
// else in a plan and for its managed fields.
const MaxInline = 512 << 10

// referenceKind marks a step's manifest as a pointer into the catalog.
const referenceKind = "BundleObject"

// Reference points at a manifest that is too large to be carried in a plan. The
// digest makes it as fixed as a copy would be: content that is no longer the
// same is refused.
type Reference struct {
	Kind    string `json:"kind"`
	Package string `json:"package"`
	Channel string `json:"channel"`
	Bundle  string `json:"bundle"`
	// Image is the bundle image that holds the manifest, by digest; empty for one
	// that the catalog holds itself.
	Image string `json:"image,omitempty"`
	// Replaces is what planning was told, and is needed to plan again.
	Replaces string `json:"replaces,omitempty"`
	// SHA256 is the digest, in hex, of the planned manifest.
	SHA256 string `json:"sha256"`
}

// ErrManifest says that a step does not hold the object that it names.
var ErrManifest = errors.New("the step does not hold the object that it names")

// ErrContentChanged says that a catalog no longer serves what a plan refers to.
var ErrContentChanged = errors.New("the catalog no longer serves the content that the plan was made from")

// Externalize replaces manifests by references, the largest first, until those
// that are left fit into limit bytes. Bundles are those that the steps come from;
// a step of none of them stays as it is.
func Externalize(steps []*operatorsv1alpha1.Step, bundles []Bundle, limit int) error {
	total := 0
	bySize := slices.Clone(steps)
	for _, s := range steps {
		total += len(s.Resource.Manifest)
	}
	slices.SortStableFunc(bySize, func(a, b *operatorsv1alpha1.Step) int {
		return cmp.Compare(len(b.Resource.Manifest), len(a.Resource.Manifest))
	})
	for _, s := range bySize {
		if total <= limit {
			return nil
		}
		i := slices.IndexFunc(bundles, func(b Bundle) bool { return b.Name == s.Resolving })
		if i < 0 {
			continue
		}
		b := bundles[i]
		text, err := json.Marshal(Reference{
			Kind: referenceKind, Package: b.Package, Channel: b.Channel, Bundle: b.Name, Image: b.Image,
			Replaces: b.Replaces, SHA256: manifestDigest(s.Resource.Manifest),
		})
		if err != nil {
			return fmt.Errorf("encoding the reference to %s %s: %w", s.Resource.Kind, s.Resource.Name, err)
		}
		total += len(text) - len(s.Resource.Manifest)
		s.Resource.Manifest = string(text)
	}
	return nil
}

// Manifest reads the object of a step. When the step only points at the object,
// ref says where it is and u is nil. Nothing says yet that it is the object which
// the step names: see Place.
func Manifest(step *operatorsv1alpha1.Step) (u *unstructured.Unstructured, ref *Reference, err error) {
	u = &unstructured.Unstructured{}
	if err := utiljson.Unmarshal([]byte(step.Resource.Manifest), &u.Object); err != nil {
		return nil, nil, fmt.Errorf("the manifest of step %s %s is not a JSON object: %w: %w", step.Resource.Kind, step.Resource.Name, ErrManifest, err)
	}
	if u.GetAPIVersion() != "" || u.GetKind() != referenceKind {
		return u, nil, nil
	}
	ref = &Reference{}
	if err := json.Unmarshal([]byte(step.Resource.Manifest), ref); err != nil {
		return nil, nil, fmt.Errorf("the reference in step %s %s cannot be read: %w: %w", step.Resource.Kind, step.Resource.Name, ErrManifest, err)
	}
	return nil, ref, nil
}

// Resolve finds the manifest that a step refers to in the bundle as the catalog
// serves it now. ErrContentChanged when it is not there in the same form.
func Resolve(ref Reference, step *operatorsv1alpha1.Step, namespace string, b Bundle) (*unstructured.Unstructured, error) {
	b.Replaces = ref.Replaces
	steps, err := Steps(namespace, b)
	if err != nil && !errors.Is(err, ErrNoInlineManifests) {
		// It is the same whenever the bundle is read.
		return nil, fmt.Errorf("%w: %w", ErrContentChanged, err)
	}
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(steps, func(s *operatorsv1alpha1.Step) bool {
		return s.Resource.Kind == step.Resource.Kind && s.Resource.Name == step.Resource.Name && s.Resource.Group == step.Resource.Group
	})
	if i < 0 || manifestDigest(steps[i].Resource.Manifest) != ref.SHA256 {
		return nil, fmt.Errorf("%s %s of bundle %s: %w", step.Resource.Kind, step.Resource.Name, ref.Bundle, ErrContentChanged)
	}
	u, _, err := Manifest(steps[i])
	return u, err
}

// Place checks that an object is the one that a step names, and puts it into the
// plan's namespace when its kind has one. Whether a step may be in a plan, and whose
// rights it is applied with, is decided by what the step says of itself, so that an
// object which is another one must never be applied: ErrManifest.
func Place(u *unstructured.Unstructured, step *operatorsv1alpha1.Step, namespace string) error {
	kind := objectKind(schema.GroupKind{Group: step.Resource.Group, Kind: step.Resource.Kind})
	named, holds := kind.WithVersion(step.Resource.Version), u.GroupVersionKind()
	differs := func(field, names, holds string) error {
		return fmt.Errorf("%w: step %s %s says %s %q, its manifest %q", ErrManifest, step.Resource.Kind, step.Resource.Name, field, names, holds)
	}
	scope, supported := ScopeOf(kind)
	switch {
	case holds == unpacked():
		return fmt.Errorf("%w: step %s %s refers to ConfigMap %s, into which OLM unpacked a bundle and which is not read here; its Subscription gets a plan of its own",
			ErrManifest, step.Resource.Kind, step.Resource.Name, u.Object["name"])
	case holds.Group != named.Group:
		return differs("group", named.Group, holds.Group)
	case holds.Version != named.Version:
		return differs("version", named.Version, holds.Version)
	case holds.Kind != named.Kind:
		return differs("kind", named.Kind, holds.Kind)
	case u.GetName() != step.Resource.Name || u.GetName() == "":
		return differs("name", step.Resource.Name, u.GetName())
	case kind.Kind == kindCRD && named != apiextensionsv1.SchemeGroupVersion.WithKind(kindCRD):
		return fmt.Errorf("%w: step %s %s is of %s, and can only be of %s",
			ErrManifest, step.Resource.Kind, step.Resource.Name, named.GroupVersion(), apiextensionsv1.SchemeGroupVersion)
	case supported && scope == ClusterScoped:
		namespace = ""
	}
	return settle(u, step, namespace)
}

// unpacked is what OLM's references to bundles that it has unpacked say of their kind.
func unpacked() schema.GroupVersionKind { return schema.GroupVersionKind{Kind: "ConfigMap"} }

// settle gives an object the namespace that it belongs into, if it names no other.
func settle(u *unstructured.Unstructured, step *operatorsv1alpha1.Step, namespace string) error {
	if has := u.GetNamespace(); has != "" && has != namespace {
		return fmt.Errorf("%w: step %s %s belongs into namespace %q, its manifest into %q", ErrManifest, step.Resource.Kind, step.Resource.Name, namespace, has)
	}
	u.SetNamespace(namespace)
	return nil
}

func manifestDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
