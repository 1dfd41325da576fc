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

// claim is a ClusterServiceVersion that an object says it belongs to.
type claim struct {
	types.NamespacedName

	// uid is empty where the claim is made by labels, which have none.
	uid types.UID
}

// claims reads which versions an object belongs to, from its owner references and,
// where it has no namespace, its labels.
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

// sameOperator says whether another version is one of the owner's operator: of its
// package, or the one that it takes over from.
func sameOperator(owner *owner, other metav1.Object) bool {
	if other.GetNamespace() == owner.namespace && (other.GetName() == owner.name || other.GetName() == owner.replaces) {
		return true
	}
	return plan.IsOfPackage(other, owner.pkg)
}

// ofAnotherPackage reports whether a version says that it is of another package than the owner.
// What a bundle replaces is for its author to say, and is not enough to change a definition that
// was installed with another package.
func ofAnotherPackage(owner *owner, other metav1.Object) bool {
	pkg := plan.PackageOf(other)
	return pkg != "" && pkg != owner.pkg
}

// admit says whether an object that is there may be changed for a version. ours is
// true if it belongs to that version's operator in this namespace; false with no
// error if it belongs to nobody, or to the same operator in another namespace, which
// shares what has no namespace. A ServiceAccount may have several operators as its
// owners: each adds to it, and none takes anything away.
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

// claimant reads the version that an object says it belongs to; nil when there is
// none any more, so that the claim is void.
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

// ownedElsewhere says, before a version is made, that another operator in the
// namespace has one of its CustomResourceDefinitions for its own.
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

// replacedBy says whether a version is one that the newcomer takes over from, over
// however many steps.
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
