package operator

import (
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// isCopied reports whether a version is a copy. Copies are not components.
func isCopied(o client.Object) bool {
	_, copied := o.GetLabels()[operatorsv1alpha1.CopiedLabelKey]
	return copied
}

// keysOf returns the component labels that a version should have: its current ones and that of each
// Subscription of its namespace that has installed it.
func keysOf(csv *operatorsv1alpha1.ClusterServiceVersion, subscriptions []operatorsv1alpha1.Subscription) []string {
	keys := componentKeys(csv.Labels)
	for i := range subscriptions {
		sub := &subscriptions[i]
		if sub.Status.InstalledCSV != csv.Name || sub.Spec == nil {
			continue
		}
		keys = append(keys, componentKeys(map[string]string{plansteps.ComponentLabel(sub.Spec.Package, sub.Namespace): ""})...)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// owns reports whether a version owns an object: by a reference, or by labels where a reference is
// not possible.
func owns(csv *operatorsv1alpha1.ClusterServiceVersion, o client.Object) bool {
	named, is := labelledOwner(o)
	return is && named == client.ObjectKeyFromObject(csv) ||
		slices.ContainsFunc(o.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == csv.UID })
}

// owners returns the versions that own an object according to its references and labels.
func owners(o client.Object) []types.NamespacedName {
	var keys []types.NamespacedName
	if named, is := labelledOwner(o); is {
		keys = append(keys, named)
	}
	for _, ref := range o.GetOwnerReferences() {
		key := types.NamespacedName{Namespace: o.GetNamespace(), Name: ref.Name}
		if ref.Kind == operatorsv1alpha1.ClusterServiceVersionKind && key.Namespace != "" && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

func labelledOwner(o client.Object) (owner types.NamespacedName, is bool) {
	labels := o.GetLabels()
	owner = types.NamespacedName{Namespace: labels[api.LabelOwnerNamespace], Name: labels[api.LabelOwner]}
	return owner, labels[api.LabelOwnerKind] == operatorsv1alpha1.ClusterServiceVersionKind && owner.Name != "" && owner.Namespace != ""
}

// superseded returns the finished InstallPlans with the label of a Subscription's package that a
// newer plan has replaced. It omits plans that a Subscription of the package refers to, and plans
// in progress, because the label identifies their Subscription.
func superseded(
	sub *operatorsv1alpha1.Subscription, beside []operatorsv1alpha1.Subscription, plans []operatorsv1alpha1.InstallPlan,
) []*operatorsv1alpha1.InstallPlan {
	if sub.Spec == nil || sub.Status.InstallPlanRef == nil {
		return nil
	}
	key, latest := plansteps.ComponentLabel(sub.Spec.Package, sub.Namespace), sub.Status.InstallPlanRef.UID
	i := slices.IndexFunc(plans, func(p operatorsv1alpha1.InstallPlan) bool { return p.UID == latest })
	if i < 0 {
		return nil
	}
	var out []*operatorsv1alpha1.InstallPlan
	for j := range plans {
		p := &plans[j]
		_, labelled := p.Labels[key]
		if labelled && isFinished(p) && p.Spec.Generation < plans[i].Spec.Generation && !isReferenced(p, key, beside) {
			out = append(out, p)
		}
	}
	return out
}

// isReferenced reports whether a plan is the latest one of a Subscription with the label.
func isReferenced(p *operatorsv1alpha1.InstallPlan, key string, subscriptions []operatorsv1alpha1.Subscription) bool {
	return slices.ContainsFunc(subscriptions, func(s operatorsv1alpha1.Subscription) bool {
		ref := s.Status.InstallPlanRef
		return ref != nil && ref.UID == p.UID && s.Spec != nil && plansteps.ComponentLabel(s.Spec.Package, s.Namespace) == key
	})
}

// isFinished reports whether a plan is complete or failed.
func isFinished(p *operatorsv1alpha1.InstallPlan) bool {
	return p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseComplete || p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseFailed
}
