// Package groupindex finds the OperatorGroups that reach a namespace, without reading all others.
package groupindex

import (
	"context"
	"fmt"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api/providedapis"
)

// Field is the name of the index, for caches of tests.
const Field = "operatorgroup/reach"

// everywhere stands for all namespaces in the index. No namespace can have the name.
const everywhere = "*"

// Add adds the index to a cache, before it is started.
func Add(ctx context.Context, to client.FieldIndexer) error {
	if err := to.IndexField(ctx, &operatorsv1.OperatorGroup{}, Field, Keys); err != nil {
		return fmt.Errorf("indexing OperatorGroups by the namespaces that they reach: %w", err)
	}
	return nil
}

// Keys returns the values of the index for an OperatorGroup.
func Keys(o client.Object) []string {
	group, is := o.(*operatorsv1.OperatorGroup)
	if !is {
		return nil
	}
	reach := providedapis.OperatorNamespaces(group)
	if slices.Contains(reach, corev1.NamespaceAll) {
		return []string{everywhere}
	}
	return reach
}

// ForNamespace returns the groups that reach a namespace, except those for all namespaces.
func ForNamespace(ctx context.Context, reader client.Reader, namespace string) ([]operatorsv1.OperatorGroup, error) {
	return list(ctx, reader, namespace)
}

// Competing returns the groups of other namespaces that share a reached namespace with a group, and could
// compete with it for an API. The objects are those of the cache and must not be changed.
func Competing(ctx context.Context, reader client.Reader, group *operatorsv1.OperatorGroup) ([]operatorsv1.OperatorGroup, error) {
	keys := Keys(group)
	switch {
	case len(keys) == 0:
		return nil, nil
	case slices.Contains(keys, everywhere):
		var all operatorsv1.OperatorGroupList
		if err := reader.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing OperatorGroups: %w", err)
		}
		return competing(group, all.Items, nil), nil
	}
	var found []operatorsv1.OperatorGroup
	seen := map[types.UID]bool{}
	for _, key := range append(slices.Clone(keys), everywhere) {
		groups, err := list(ctx, reader, key)
		if err != nil {
			return nil, err
		}
		found = append(found, competing(group, groups, seen)...)
	}
	return found, nil
}

// competing returns the groups of other namespaces that were not seen before.
func competing(group *operatorsv1.OperatorGroup, groups []operatorsv1.OperatorGroup, seen map[types.UID]bool) []operatorsv1.OperatorGroup {
	var out []operatorsv1.OperatorGroup
	for i := range groups {
		other := &groups[i]
		if other.Namespace == group.Namespace || seen[other.UID] {
			continue
		}
		if seen != nil {
			seen[other.UID] = true
		}
		out = append(out, *other)
	}
	return out
}

func list(ctx context.Context, reader client.Reader, key string) ([]operatorsv1.OperatorGroup, error) {
	var groups operatorsv1.OperatorGroupList
	if err := reader.List(ctx, &groups, client.MatchingFields{Field: key}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the OperatorGroups that reach namespace %s: %w", key, err)
	}
	return groups.Items, nil
}
