package apply

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply/merge"
)

const (
	kindCSV = "ClusterServiceVersion"
	kindCRD = "CustomResourceDefinition"
)

// ownership returns which fields of an object earlier writes of this package set, and which fields others set.
// In an operator's object, the fields set by the lifecycle manager that installed it before count as set by
// this package. They are then removed when a manifest lacks them.
//
// Otherwise, a list would keep the entries of the previous version, and two fields that exclude each other
// would both be set.
func ownership(live *unstructured.Unstructured, version string) (merge.Owned, error) {
	owned := merge.Owned{Mine: &fieldpath.Set{}, Others: &fieldpath.Set{}}
	for i := range live.GetManagedFields() {
		entry := &live.GetManagedFields()[i]
		fields, err := setOf(entry)
		if err != nil {
			return owned, fmt.Errorf("reading who manages %s: %w", describe(live), err)
		}
		switch {
		case isOwn(entry) && entry.APIVersion != version:
			// The paths of the entry may have another meaning in another version of the kind.
		case isOwn(entry):
			owned.Mine = owned.Mine.Union(fields)
		default:
			moved := inherited(entry, fields, live, version)
			owned.Mine = owned.Mine.Union(moved)
			owned.Others = owned.Others.Union(fields.Difference(moved))
		}
	}
	return owned, nil
}

// inherited returns the fields of another manager's entry that count as set by this package.
func inherited(entry *metav1.ManagedFieldsEntry, fields *fieldpath.Set, live *unstructured.Unstructured, version string) *fieldpath.Set {
	// Operators share definitions, which have their own rules for the fields that are kept.
	if live.GetKind() == kindCRD || !marked(live) || entry.APIVersion != version || !lifecycle(entry, fields, live) {
		return &fieldpath.Set{}
	}
	return fields.RecursiveDifference(left(live.GetKind()).Union(components(fields)))
}

// left returns the fields that remain with the manager that set them. This package adds owners and finalizers
// and never removes them. Several operators, users and the cluster add to the references and annotations of a ServiceAccount.
func left(kind string) *fieldpath.Set {
	paths := []fieldpath.Path{
		fieldpath.MakePathOrDie("metadata", "ownerReferences"),
		fieldpath.MakePathOrDie("metadata", "finalizers"),
	}
	if kind == "ServiceAccount" {
		paths = append(paths, fieldpath.MakePathOrDie("secrets"), fieldpath.MakePathOrDie("imagePullSecrets"),
			fieldpath.MakePathOrDie("metadata", "annotations"))
	}
	return fieldpath.NewSet(paths...)
}

// components returns the labels that mark the components of an operator. They are set on objects in addition to
// what any manager applies.
func components(theirs *fieldpath.Set) *fieldpath.Set {
	found := fieldpath.NewSet()
	theirs.Iterate(func(path fieldpath.Path) {
		if text := path.String(); strings.HasPrefix(text, ".metadata.labels."+api.PrefixComponent) {
			found.Insert(path.Copy())
		}
	})
	return found
}

// lifecycle reports whether an entry belongs to a manager that installed the object. This is OLM, by the names
// of its programs, or the manager that set the ClusterServiceVersion as owner. Changes by kubectl or by
// controllers, writes to the status, and applied fields do not count.
func lifecycle(entry *metav1.ManagedFieldsEntry, fields *fieldpath.Set, live *unstructured.Unstructured) bool {
	switch {
	case entry.Operation != metav1.ManagedFieldsOperationUpdate || entry.Subresource != "":
		return false
	case slices.Contains([]string{"kube-controller-manager", "kubectl-edit", "kubectl-patch", "kubectl-label", "kubectl-annotate"}, entry.Manager):
		return false
	case IsOLM(entry.Manager):
		return true
	}
	for _, label := range []string{api.LabelManaged, api.LabelOwner} {
		if fields.Has(fieldpath.MakePathOrDie("metadata", "labels", label)) {
			return true
		}
	}
	return slices.ContainsFunc(live.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return ref.Kind == kindCSV && fields.Has(pathOf(ref))
	})
}

// marked reports whether an object has a label or an owner of an operator's objects.
func marked(live *unstructured.Unstructured) bool {
	labels := live.GetLabels()
	return labels[api.LabelManaged] == "true" || labels[api.LabelOwner] != "" ||
		slices.ContainsFunc(live.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.Kind == kindCSV })
}

// isOwn reports whether this package wrote an entry of an object's managed fields. Earlier releases wrote with
// server-side apply.
func isOwn(entry *metav1.ManagedFieldsEntry) bool {
	switch entry.Operation {
	case metav1.ManagedFieldsOperationApply:
		return entry.Manager == api.FieldManager && entry.Subresource == ""
	case metav1.ManagedFieldsOperationUpdate:
		return entry.Manager == api.ManifestFieldManager && entry.Subresource == ""
	default:
		return false
	}
}

// keepOwners adds to wanted the references to ClusterServiceVersions that this package set on an object. A
// write without them would remove them. The garbage collector removes references to deleted versions.
// References that others set remain theirs.
func keepOwners(wanted, live *unstructured.Unstructured, mine *fieldpath.Set) {
	refs := wanted.GetOwnerReferences()
	before := len(refs)
	for _, ref := range live.GetOwnerReferences() {
		if ref.Kind == kindCSV && mine.Has(pathOf(ref)) && !hasUID(refs, ref) {
			refs = append(refs, ref)
		}
	}
	if len(refs) > before {
		wanted.SetOwnerReferences(refs)
	}
}

// HasOwner reports whether an object has an owner reference with a UID. No object has one with an empty UID.
func HasOwner(u *unstructured.Unstructured, uid types.UID) bool {
	return uid != "" && slices.ContainsFunc(u.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == uid })
}

func hasUID(refs []metav1.OwnerReference, ref metav1.OwnerReference) bool {
	return slices.ContainsFunc(refs, func(r metav1.OwnerReference) bool { return r.UID == ref.UID })
}

// pathOf returns the path of an owner reference in managed fields.
func pathOf(ref metav1.OwnerReference) fieldpath.Path {
	return fieldpath.MakePathOrDie("metadata", "ownerReferences", fieldpath.KeyByFields("uid", string(ref.UID)))
}

func setOf(entry *metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	set := &fieldpath.Set{}
	if entry.FieldsV1 == nil {
		return set, nil
	}
	if err := set.FromJSON(strings.NewReader(entry.FieldsV1.GetRawString())); err != nil {
		return nil, fmt.Errorf("decoding the fields of manager %s: %w", entry.Manager, err)
	}
	return set, nil
}
