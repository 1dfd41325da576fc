package plansteps

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/supervisor/api/olmtext"
)

// MaxInline is the maximum size, in bytes, of the manifests in a plan itself. The API server stores objects of
// up to 1.5 MiB. Half a MiB leaves room for the rest of a plan and for its managed fields.
const MaxInline = 512 << 10

// referenceKind marks the manifest of a step as a reference to the catalog.
const referenceKind = "BundleObject"

// Reference refers to a manifest that is too large for a plan. The digest makes it as immutable as a copy:
// changed content is refused.
type Reference struct {
	Kind    string `json:"kind"`
	Package string `json:"package"`
	Channel string `json:"channel"`
	Bundle  string `json:"bundle"`
	// Image is the bundle image that holds the manifest, by digest; empty if the catalog itself holds it.
	Image string `json:"image,omitempty"`
	// Replaces is an input of the planning, and is needed to plan again.
	Replaces string `json:"replaces,omitempty"`
	// SHA256 is the digest, in hex, of the planned manifest.
	SHA256 string `json:"sha256"`
}

// ErrManifest means that a step does not hold the object that it names.
var ErrManifest = errors.New("the step does not hold the object that it names")

// ErrContentChanged means that a catalog no longer serves the content that a plan refers to.
var ErrContentChanged = errors.New("the catalog no longer serves the content that the plan was created from")

// ReferenceManifests replaces manifests by references, the largest first, until the remaining ones fit into limit
// bytes. Bundles are the sources of the steps. A step that comes from none of them is not changed.
func ReferenceManifests(steps []*operatorsv1alpha1.Step, bundles []Bundle, limit int) error {
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

// Manifest reads the object of a step. If the step only refers to the object, ref is the reference and u is
// nil. The manifest is JSON or YAML. Manifest does not check that the object is the one that the step names: see
// CompleteObject.
func Manifest(step *operatorsv1alpha1.Step) (u *unstructured.Unstructured, ref *Reference, err error) {
	u = &unstructured.Unstructured{}
	if err := unmarshal([]byte(step.Resource.Manifest), &u.Object); err != nil {
		return nil, nil, fmt.Errorf("step %s %s: %w: "+olmtext.ManifestUnreadable, step.Resource.Kind, step.Resource.Name, ErrManifest, step.Resource.Name, err)
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

// unmarshal reads an object from JSON or YAML. YAML is read second: its decoder does not preserve large numbers.
func unmarshal(text []byte, object *map[string]any) error { //nolint:gocritic // decoders set the map
	err := utiljson.Unmarshal(text, object)
	if err == nil {
		return nil
	}
	*object = nil
	converted, failure := yaml.YAMLToJSON(text)
	if failure != nil {
		return err //nolint:wrapcheck // the caller says what was read
	}
	if utiljson.Unmarshal(converted, object) != nil || *object == nil {
		return err //nolint:wrapcheck // the caller says what was read
	}
	return nil
}

// Resolve finds the manifest that a step refers to in the bundle as the catalog serves it now. The error is
// ErrContentChanged if the manifest is missing or has changed.
func Resolve(ref Reference, step *operatorsv1alpha1.Step, namespace string, b Bundle, kinds Kinds) (*unstructured.Unstructured, error) {
	b.Replaces = ref.Replaces
	steps, err := Steps(namespace, b, kinds)
	if err != nil && !errors.Is(err, ErrNoInlineManifests) {
		// The content is the same whenever the bundle is read.
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

func manifestDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
