package installplan

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
)

// equalCRDs holds the definitions that equal those of a bundle, by name. All plans of the process share it: each version
// that installs a definition makes the next comparison longer. It is safe for concurrent use.
type equalCRDs struct{ byName sync.Map }

// equalCRD is a served definition that equals the one of a bundle, except for the keys of versions.
type equalCRD struct {
	bundle [sha256.Size]byte
	// metadata changes if the definition no longer equals the one of the bundle.
	metadata metav1.ObjectMeta
	// live is the definition without its spec and metadata that a write does not need.
	live *unstructured.Unstructured
}

// get returns the definition of a name; nil when none is known.
func (d *equalCRDs) get(name string) *equalCRD {
	known, _ := d.byName.Load(name)
	crd, _ := known.(*equalCRD)
	return crd
}

// forget removes a definition that no longer equals the one of its bundle.
func (d *equalCRDs) forget(name string, known *equalCRD) {
	d.byName.CompareAndDelete(name, known)
}

// record records that the live definition of a state equals the one of the bundle. It ignores a definition that the
// API server does not serve: its status changes without its metadata.
func (d *equalCRDs) record(s *crdState) error {
	if !established(s.live) {
		return nil
	}
	crd, err := typedCRD(s.live)
	if err != nil {
		return err
	}
	live := &unstructured.Unstructured{Object: map[string]any{"status": s.live.Object["status"]}}
	live.SetGroupVersionKind(s.live.GroupVersionKind())
	live.SetName(s.name)
	live.SetUID(crd.UID)
	bundle, err := digest(s.bundle)
	if err == nil {
		d.byName.Store(s.name, &equalCRD{bundle: bundle, metadata: stableMetadata(&crd.ObjectMeta), live: live})
	}
	return err
}

// isOf reports whether the definition equals that of a bundle.
func (e *equalCRD) isOf(bundle *unstructured.Unstructured) bool {
	sum, err := digest(bundle)
	return err == nil && sum == e.bundle
}

// describes reports whether a definition with some metadata still equals the one of the bundle.
func (e *equalCRD) describes(live *metav1.ObjectMeta) bool {
	return equality.Semantic.DeepEqual(e.metadata, stableMetadata(live))
}

// at returns the definition at a resource version.
func (e *equalCRD) at(resourceVersion string) *unstructured.Unstructured {
	live := e.live.DeepCopy()
	live.SetResourceVersion(resourceVersion)
	return live
}

// stableMetadata returns the metadata of a definition without the keys of versions. The generation stands for its
// spec, and the times of managed fields for the fields that other managers set.
func stableMetadata(m *metav1.ObjectMeta) metav1.ObjectMeta {
	stable := metav1.ObjectMeta{
		UID: m.UID, Generation: m.Generation, DeletionTimestamp: m.DeletionTimestamp,
		Finalizers: m.Finalizers, OwnerReferences: m.OwnerReferences, Labels: map[string]string{}, Annotations: map[string]string{},
	}
	for key, value := range m.Labels {
		if value != "" || !strings.HasPrefix(key, api.PrefixComponent) {
			stable.Labels[key] = value
		}
	}
	for key, value := range m.Annotations {
		if !strings.HasPrefix(key, api.PrefixInstalledAlongside) {
			stable.Annotations[key] = value
		}
	}
	for _, entry := range m.ManagedFields {
		if entry.Subresource != "" {
			continue
		}
		if apply.IsOurs(entry.Manager) {
			entry.Time = nil
		}
		entry.FieldsV1 = nil
		stable.ManagedFields = append(stable.ManagedFields, entry)
	}
	return stable
}

// digest returns a hash of an object.
func digest(u *unstructured.Unstructured) ([sha256.Size]byte, error) {
	text, err := json.Marshal(u.Object)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("encoding %s: %w", describe(u), err)
	}
	return sha256.Sum256(text), nil
}
