package installplan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// kindOfVersions returns the GroupVersionKind of ClusterServiceVersion.
func kindOfVersions() schema.GroupVersionKind {
	return operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.ClusterServiceVersionKind)
}

// kindOfSubscriptions returns the GroupKind of Subscription.
func kindOfSubscriptions() schema.GroupKind {
	return operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.SubscriptionKind).GroupKind()
}

// owner is a ClusterServiceVersion that owns applied objects.
type owner struct {
	namespace, name string
	// pkg is its package, empty where it states none. replaces is the version that it replaces.
	pkg, replaces string
	reference     metav1.OwnerReference
	// hasFinalizer reports whether it had the finalizer of the clean-up when it was read.
	hasFinalizer bool
}

// otherName returns the remedy for an object whose name is in use.
func (o *owner) otherName() string {
	if o.name == "" {
		return "give the object of the plan another name"
	}
	return fmt.Sprintf("ask the author of %s for a bundle with another name for the object", o.name)
}

// owners holds the owners of the objects of a pass, by the name of the ClusterServiceVersion.
type owners struct {
	observer *observer
	byName   map[string]*owner
}

// of returns the owner of an object, and its owner references. They are those of its manifest, with the
// present UIDs of versions, and the one to csv. Without csv, the first version that the manifest names is the
// owner. An owner without a name is none.
func (o *owners) of(ctx context.Context, u *unstructured.Unstructured, csv string) (*owner, []metav1.OwnerReference, error) {
	owns := &owner{namespace: o.observer.namespace}
	var references []metav1.OwnerReference
	if csv != "" {
		named, err := o.get(ctx, csv)
		if err != nil {
			return nil, nil, err
		}
		owns, references = named, []metav1.OwnerReference{named.reference}
	}
	for _, ref := range u.GetOwnerReferences() {
		if ref.Kind != operatorsv1alpha1.ClusterServiceVersionKind {
			references = append(references, ref)
			continue
		}
		named, err := o.get(ctx, ref.Name)
		if err != nil {
			return nil, nil, err
		}
		if owns.name == "" {
			owns = named
		}
		if !slices.ContainsFunc(references, func(r metav1.OwnerReference) bool { return r.UID == named.reference.UID }) {
			references = append(references, named.reference)
		}
	}
	return owns, references, nil
}

// get returns the version that owns the objects of csv. It reads the version from the API server
// once in a pass. A recreated version has another UID, and objects with the old UID would be
// garbage collected.
func (o *owners) get(ctx context.Context, csv string) (*owner, error) {
	if known, ok := o.byName[csv]; ok {
		return known, nil
	}
	live, err := o.observer.version(ctx, csv)
	if errors.Is(err, errOwnerDeleted) && !errors.Is(err, errOtherOwner) && !o.observer.content.installs(csv) {
		err = fmt.Errorf("%w: create ClusterServiceVersion %s/%s, or remove it from the step", errOwnerMissing, o.observer.namespace, csv)
	}
	if err != nil {
		return nil, err
	}
	o.byName[csv] = ownerOf(live)
	return o.byName[csv], nil
}

// confirm returns an error if the version that was the owner in this pass is deleted or recreated.
func (o *owners) confirm(ctx context.Context, csv string) error {
	live, err := o.observer.version(ctx, csv)
	if err != nil {
		return err
	}
	if was := o.byName[csv]; was != nil && was.reference.UID != live.GetUID() {
		return fmt.Errorf("%w: %s was deleted and recreated before its plan was complete; the supervisor starts over", errOwnerDeleted, csv)
	}
	return nil
}

// ownerOf returns a ClusterServiceVersion as an owner.
func ownerOf(csv *unstructured.Unstructured) *owner {
	replaces, _, _ := unstructured.NestedString(csv.Object, "spec", "replaces")
	gvk := kindOfVersions()
	return &owner{
		namespace: csv.GetNamespace(), name: csv.GetName(), pkg: plansteps.PackageOf(csv), replaces: replaces,
		reference: metav1.OwnerReference{
			APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: csv.GetName(), UID: csv.GetUID(),
			Controller: new(false), BlockOwnerDeletion: new(false),
		},
		hasFinalizer: controllerutil.ContainsFinalizer(csv, api.FinalizerCleanup),
	}
}

// copyError reports that a copied version has the name of the version that a plan installs.
type copyError struct{ plansteps.CopiedVersionError }

// Is reports true for errOwnerDeleted, as the version does not exist, and for errOtherOwner, as another
// operator uses its name.
func (e *copyError) Is(target error) bool {
	return target == errOwnerDeleted || target == errOtherOwner
}

// ignoreAbsent drops an error that reports that the object does not exist or is another one.
func ignoreAbsent(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apimeta.IsNoMatchError(err) {
		return nil
	}
	return err
}

// ownerKey names a ClusterServiceVersion as the owner of an object.
type ownerKey struct {
	types.NamespacedName

	// uid is empty for an owner that only labels name.
	uid types.UID
}

// ownerKeys returns the versions that own an object, from its owner references and its labels.
func ownerKeys(live metav1.Object) []ownerKey {
	var list []ownerKey
	for _, ref := range live.GetOwnerReferences() {
		group, _ := schema.ParseGroupVersion(ref.APIVersion)
		if ref.Kind == operatorsv1alpha1.ClusterServiceVersionKind && group.Group == operatorsv1alpha1.GroupName {
			list = append(list, ownerKey{NamespacedName: types.NamespacedName{Namespace: live.GetNamespace(), Name: ref.Name}, uid: ref.UID})
		}
	}
	labels := live.GetLabels()
	if labels[api.LabelOwnerKind] != operatorsv1alpha1.ClusterServiceVersionKind || labels[api.LabelOwner] == "" {
		return list
	}
	named := types.NamespacedName{Namespace: labels[api.LabelOwnerNamespace], Name: labels[api.LabelOwner]}
	if !slices.ContainsFunc(list, func(c ownerKey) bool { return c.NamespacedName == named }) {
		list = append(list, ownerKey{NamespacedName: named})
	}
	return list
}

// sameOperator reports whether another version is of the owner's operator: of its package, or the
// version that it replaces.
func sameOperator(owner *owner, other metav1.Object) bool {
	if other.GetNamespace() == owner.namespace && (other.GetName() == owner.name || other.GetName() == owner.replaces) {
		return true
	}
	return plansteps.IsOfPackage(other, owner.pkg)
}

// checkOwnedCRDs returns an error if another operator in the namespace owns a
// CustomResourceDefinition that a version owns. It is called before the version is created.
func checkOwnedCRDs(u *unstructured.Unstructured, namespace string, installed []operatorsv1alpha1.ClusterServiceVersion) error {
	created := ownerOf(u)
	created.namespace = namespace
	owned, _, _ := unstructured.NestedSlice(u.Object, "spec", "customresourcedefinitions", "owned")
	owners := map[string][]string{}
	for i := range installed {
		other := &installed[i]
		if _, copied := other.Labels[operatorsv1alpha1.CopiedLabelKey]; copied {
			continue
		}
		if sameOperator(created, other) || !other.DeletionTimestamp.IsZero() || replacedBy(other.Name, created, installed) {
			continue
		}
		for _, o := range owned {
			described, _ := o.(map[string]any)
			if name, _ := described["name"].(string); name != "" && other.OwnsCRD(name) {
				owners[name] = append(owners[name], other.Name)
			}
		}
	}
	if len(owners) == 0 {
		return nil
	}
	name := slices.Min(slices.Collect(maps.Keys(owners)))
	if list := owners[name]; len(list) > 1 {
		return fmt.Errorf("%w: %s; uninstall all but one of these operators", errOtherOwner, olmtext.SeveralOwners(list, namespace, name))
	}
	return fmt.Errorf("%w: %s: %s is owned by ClusterServiceVersion %s; uninstall that operator, or delete the Subscription of this operator",
		errOtherOwner, olmtext.DependentOwners(u.GetName()), name, owners[name][0])
}

// replacedBy reports whether a new version replaces another one, directly or through a chain of
// versions.
func replacedBy(name string, by *owner, versions []operatorsv1alpha1.ClusterServiceVersion) bool {
	seen := map[string]bool{}
	for at := by.replaces; at != "" && !seen[at]; {
		if at == name {
			return true
		}
		seen[at] = true
		i := slices.IndexFunc(versions, func(v operatorsv1alpha1.ClusterServiceVersion) bool { return v.Name == at })
		if i < 0 {
			return false
		}
		at = versions[i].Spec.Replaces
	}
	return false
}
