package installplan

import (
	"context"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plan"
)

// claim names a ClusterServiceVersion as the owner of an object.
type claim struct {
	types.NamespacedName

	// uid is empty for a claim by labels, which have no UID.
	uid types.UID
}

// claims returns the versions that own an object, from its owner references and its labels.
func claims(live metav1.Object) []claim {
	var list []claim
	for _, ref := range live.GetOwnerReferences() {
		group, _ := schema.ParseGroupVersion(ref.APIVersion)
		if ref.Kind == operatorsv1alpha1.ClusterServiceVersionKind && group.Group == operatorsv1alpha1.GroupName {
			list = append(list, claim{NamespacedName: types.NamespacedName{Namespace: live.GetNamespace(), Name: ref.Name}, uid: ref.UID})
		}
	}
	labels := live.GetLabels()
	if labels[api.LabelOwnerKind] != operatorsv1alpha1.ClusterServiceVersionKind || labels[api.LabelOwner] == "" {
		return list
	}
	named := types.NamespacedName{Namespace: labels[api.LabelOwnerNamespace], Name: labels[api.LabelOwner]}
	if !slices.ContainsFunc(list, func(c claim) bool { return c.NamespacedName == named }) {
		list = append(list, claim{NamespacedName: named})
	}
	return list
}

// sameOperator reports whether another version is of the owner's operator: of its package, or the
// version that it replaces.
func sameOperator(owner *owner, other metav1.Object) bool {
	if other.GetNamespace() == owner.namespace && (other.GetName() == owner.name || other.GetName() == owner.replaces) {
		return true
	}
	return plan.IsOfPackage(other, owner.pkg)
}

// ofAnotherPackage reports whether a version states a package other than the owner's. The author of
// a bundle chooses what it replaces. That choice does not permit changes to a definition of another
// package.
func ofAnotherPackage(owner *owner, other metav1.Object) bool {
	pkg := plan.PackageOf(other)
	return pkg != "" && pkg != owner.pkg
}

// admit returns an error if an existing object must not be changed for a version. ours reports
// whether the object belongs to the operator of that version in this namespace. It is false without
// an error if no operator owns the object, or if the same operator in another namespace owns it. A
// ServiceAccount may have several operators as owners: each adds to it, and none removes anything.
func (e *execution) admit(ctx context.Context, live *unstructured.Unstructured, owner *owner) (ours bool, err error) {
	shared := live.GetKind() == "ServiceAccount"
	for _, c := range claims(live) {
		if c.Namespace == owner.namespace && c.Name == owner.name {
			ours = true
			continue
		}
		claimant, err := e.claimant(ctx, c)
		if err != nil {
			return false, err
		}
		switch {
		case claimant == nil:
		case sameOperator(owner, claimant):
			ours = ours || claimant.GetNamespace() == owner.namespace
		case !shared:
			return false, fmt.Errorf("%w: %s belongs to ClusterServiceVersion %s, which is another operator's; uninstall one of the two operators, or ask the author of %s for a bundle that gives the object another name",
				errForeign, describe(live), c.NamespacedName, owner.name)
		}
	}
	if ref := metav1.GetControllerOf(live); ref != nil && ref.Kind != operatorsv1alpha1.ClusterServiceVersionKind && !shared {
		return false, fmt.Errorf("%w: %s is controlled by %s %s; delete that one, or ask the author of %s for a bundle that gives the object another name",
			errForeign, describe(live), ref.Kind, ref.Name, owner.name)
	}
	return ours, nil
}

// claimant returns the version that a claim names; nil when it no longer exists.
func (e *execution) claimant(ctx context.Context, c claim) (*metav1.PartialObjectMetadata, error) {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(kindOfVersions())
	if err := e.client.Get(ctx, c.NamespacedName, found); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil //nolint:nilnil // the doc comment says what nil means
		}
		return nil, fmt.Errorf("%w ClusterServiceVersion %s, which owns the object: %w", errOwnRead, c.NamespacedName, err)
	}
	if c.uid != "" && c.uid != found.UID {
		return nil, nil //nolint:nilnil // the owner was another one of that name
	}
	return found, nil
}

// ownedElsewhere returns an error if another operator in the namespace owns a
// CustomResourceDefinition that a version owns. It is called before the version is created.
func (e *execution) ownedElsewhere(ctx context.Context, u *unstructured.Unstructured) error {
	list := &operatorsv1alpha1.ClusterServiceVersionList{}
	if err := e.cached.List(ctx, list, client.InNamespace(e.namespace), readOnly); err != nil {
		return fmt.Errorf("listing ClusterServiceVersions of namespace %s: %w", e.namespace, err)
	}
	newcomer := ownerOf(u)
	newcomer.namespace = e.namespace
	owned, _, _ := unstructured.NestedSlice(u.Object, "spec", "customresourcedefinitions", "owned")
	for i := range list.Items {
		other := &list.Items[i]
		if _, copied := other.Labels[operatorsv1alpha1.CopiedLabelKey]; copied {
			continue
		}
		if sameOperator(newcomer, other) || !other.DeletionTimestamp.IsZero() || replacedBy(other.Name, newcomer, list.Items) {
			continue
		}
		for _, o := range owned {
			described, _ := o.(map[string]any)
			if name, _ := described["name"].(string); name != "" && other.OwnsCRD(name) {
				return fmt.Errorf("%w: pre-existing CRD owners found for owned CRD(s) of dependent CSV %s: %s is owned by ClusterServiceVersion %s; uninstall that operator, or take back the Subscription that asks for this one",
					errForeign, u.GetName(), name, other.Name)
			}
		}
	}
	return nil
}

// replacedBy reports whether the newcomer replaces a version, directly or through a chain of
// versions.
func replacedBy(name string, newcomer *owner, versions []operatorsv1alpha1.ClusterServiceVersion) bool {
	seen := map[string]bool{}
	for at := newcomer.replaces; at != "" && !seen[at]; {
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
