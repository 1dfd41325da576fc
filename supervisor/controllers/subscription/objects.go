package subscription

import (
	"cmp"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Objects are the objects that decisions about a namespace depend on, as read from the API: in any
// order and unfiltered.
type Objects struct {
	Namespace string
	// Global is the namespace whose catalogs serve every namespace.
	Global        string
	Subscriptions []*operatorsv1alpha1.Subscription
	Versions      []*operatorsv1alpha1.ClusterServiceVersion
	Plans         []*operatorsv1alpha1.InstallPlan
	Groups        []*operatorsv1.OperatorGroup
	// Catalogs are the catalogs of the namespace and of the global namespace. The latter count only
	// if the OperatorGroup does not exclude them.
	Catalogs []Catalog
}

// observe sorts the objects and leaves out those that do not count.
func (s *Objects) observe(properties *propertyCache) *namespaceState {
	o := &namespaceState{
		namespace: s.Namespace, global: s.Global, groups: groupsOf(s.Groups), properties: properties,
		plans: planSet{}, catalogs: catalogSet{},
	}
	o.subscriptions = slices.DeleteFunc(slices.Clone(s.Subscriptions), func(sub *operatorsv1alpha1.Subscription) bool { return !active(sub) })
	o.deleting = slices.DeleteFunc(slices.Clone(s.Subscriptions), func(sub *operatorsv1alpha1.Subscription) bool { return !awaitsUninstall(sub) })
	slices.SortFunc(o.subscriptions, func(a, b *operatorsv1alpha1.Subscription) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	o.versions = slices.DeleteFunc(slices.Clone(s.Versions), (*operatorsv1alpha1.ClusterServiceVersion).IsCopied)
	// Caches list in no order; equal problems must be equal.
	slices.SortFunc(o.versions, func(a, b *operatorsv1alpha1.ClusterServiceVersion) int { return cmp.Compare(a.Name, b.Name) })
	for _, c := range s.Catalogs {
		if c.Source.Namespace == s.Namespace || !o.groups.excludesGlobal {
			o.catalogs[client.ObjectKeyFromObject(c.Source)] = c
		}
	}
	for _, p := range s.Plans {
		o.plans[p.Name] = withRecord(p)
	}
	return o
}

// active reports whether a Subscription is resolved and installed.
func active(sub *operatorsv1alpha1.Subscription) bool {
	return sub.DeletionTimestamp.IsZero() && sub.Spec != nil
}
