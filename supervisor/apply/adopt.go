package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// componentPrefix begins those labels.
const componentPrefix = "operators.coreos.com/"

const (
	kindCSV = "ClusterServiceVersion"
	kindCRD = "CustomResourceDefinition"
)

// adopted is a live object whose fields that a lifecycle manager before this one set
// are this field manager's, so that applying takes away what is no longer wanted. It
// is written only where there are such fields: once in an object's life.
//
// Without it, a list keeps the entries of the version before, and of two fields that
// exclude each other both are set.
func adopted(ctx context.Context, c client.Client, u, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	fields, taken, err := adopt(live, u.GetAPIVersion())
	if err != nil {
		return nil, fmt.Errorf("reading who manages %s: %w", describe(live), err)
	}
	if !taken {
		return live, nil
	}
	next := live.DeepCopy()
	next.SetManagedFields(fields)
	patch := client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{})
	if err := c.Patch(ctx, next, patch, client.FieldOwner(FieldManager)); err != nil {
		return nil, fmt.Errorf("taking over the fields of %s that its manager before set: %w", describe(live), err)
	}
	return next, nil
}

// adopt moves what lifecycle managers set on an object to this field manager.
// taken says whether there was anything to move.
func adopt(live *unstructured.Unstructured, version string) (fields []metav1.ManagedFieldsEntry, taken bool, err error) {
	// Definitions are shared by operators, and have rules of their own for what of them
	// is kept.
	if live.GetKind() == kindCRD || !marked(live) {
		return nil, false, nil
	}
	own := ownOrNew(live, version)
	mine, err := setOf(own)
	if err != nil {
		return nil, false, err
	}
	for _, entry := range live.GetManagedFields() {
		if isOwn(&entry) {
			continue
		}
		moved, err := split(&entry, live, own.APIVersion)
		if err != nil {
			return nil, false, err
		}
		mine, taken = mine.Union(moved), taken || !moved.Empty()
		if moved.Empty() || entry.FieldsV1 != nil {
			fields = append(fields, entry)
		}
	}
	if !taken {
		return nil, false, nil
	}
	err = setFields(own, mine)
	return append(fields, *own), true, err
}

// ownOrNew is the entry of this field manager, or a new one.
func ownOrNew(live *unstructured.Unstructured, version string) *metav1.ManagedFieldsEntry {
	if own := ownEntry(live); own != nil {
		return own
	}
	return &metav1.ManagedFieldsEntry{
		Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: version, Time: new(metav1.Now()), FieldsType: "FieldsV1",
	}
}

// split takes out of an entry what is to be moved, and gives it; nothing is left in an
// entry without fields. Nothing is moved to paths of another version of the kind, which
// may mean something else.
func split(entry *metav1.ManagedFieldsEntry, live *unstructured.Unstructured, version string) (*fieldpath.Set, error) {
	theirs, err := setOf(entry)
	if err != nil || entry.APIVersion != version || !lifecycle(entry, theirs, live) {
		return &fieldpath.Set{}, err
	}
	moved := theirs.RecursiveDifference(left(live.GetKind()).Union(components(theirs)))
	if moved.Empty() {
		return moved, nil
	}
	rest := theirs.Difference(moved)
	if rest.Empty() {
		entry.FieldsV1 = nil
		return moved, nil
	}
	return moved, setFields(entry, rest)
}

// left are the fields that stay with who set them. Who owns an object is added to and
// never taken away here; and several operators and the cluster add to what a
// ServiceAccount refers to.
func left(kind string) *fieldpath.Set {
	paths := []fieldpath.Path{
		fieldpath.MakePathOrDie("metadata", "ownerReferences"),
		fieldpath.MakePathOrDie("metadata", "finalizers"),
	}
	if kind == "ServiceAccount" {
		paths = append(paths, fieldpath.MakePathOrDie("secrets"), fieldpath.MakePathOrDie("imagePullSecrets"))
	}
	return fieldpath.NewSet(paths...)
}

// components are the labels by which the components of an operator are found. They are
// put on objects beside what is applied, whoever applies it.
func components(theirs *fieldpath.Set) *fieldpath.Set {
	found := fieldpath.NewSet()
	theirs.Iterate(func(path fieldpath.Path) {
		if text := path.String(); strings.HasPrefix(text, ".metadata.labels."+componentPrefix) {
			found.Insert(path.Copy())
		}
	})
	return found
}

// lifecycle says whether an entry is that of a manager which installed the object:
// OLM, by the names of its programs, or whoever said that the object belongs to a
// ClusterServiceVersion, which is what makers of an operator's objects do. What
// people change with kubectl, what controllers set, what is in the status and what
// others apply is none of it.
func lifecycle(entry *metav1.ManagedFieldsEntry, fields *fieldpath.Set, live *unstructured.Unstructured) bool {
	switch {
	case entry.Operation != metav1.ManagedFieldsOperationUpdate || entry.Subresource != "":
		return false
	case slices.Contains([]string{"kube-controller-manager", "kubectl-edit", "kubectl-patch", "kubectl-label", "kubectl-annotate"}, entry.Manager):
		return false
	case slices.Contains([]string{"olm", "catalog", "olm-operator", "catalog-operator"}, entry.Manager):
		return true
	}
	for _, label := range []string{"olm.managed", "olm.owner"} {
		if fields.Has(fieldpath.MakePathOrDie("metadata", "labels", label)) {
			return true
		}
	}
	return slices.ContainsFunc(live.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return ref.Kind == kindCSV && fields.Has(pathOf(ref))
	})
}

// marked says whether an object bears a sign that it is an operator's.
func marked(live *unstructured.Unstructured) bool {
	labels := live.GetLabels()
	return labels["olm.managed"] == "true" || labels["olm.owner"] != "" ||
		slices.ContainsFunc(live.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.Kind == kindCSV })
}

// ownEntry is what this field manager applied to an object; nil if nothing.
func ownEntry(live *unstructured.Unstructured) *metav1.ManagedFieldsEntry {
	entries := live.GetManagedFields()
	i := slices.IndexFunc(entries, func(f metav1.ManagedFieldsEntry) bool { return isOwn(&f) })
	if i < 0 {
		return nil
	}
	return &entries[i]
}

func isOwn(entry *metav1.ManagedFieldsEntry) bool {
	return entry.Manager == FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
}

// pathOf is where managed fields have an owner reference.
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

func setFields(entry *metav1.ManagedFieldsEntry, set *fieldpath.Set) error {
	text, err := set.ToJSON()
	if err != nil {
		return fmt.Errorf("encoding the fields of manager %s: %w", entry.Manager, err)
	}
	entry.FieldsV1 = &metav1.FieldsV1{}
	entry.FieldsV1.SetRawBytes(text)
	return nil
}
