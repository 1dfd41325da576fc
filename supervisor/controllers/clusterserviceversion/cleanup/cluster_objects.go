package cleanup

import (
	"context"
	"fmt"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// cleanContent deletes the other cluster-scoped objects of a bundle. Most clusters lack most of
// these kinds.
func (c *Cleaner) cleanContent(ctx context.Context, up *cleanup) (stageResult, error) {
	kinds, err := servedKinds(ctx, c.client.RESTMapper(), c.servesGroup, c.contentKinds)
	if err != nil {
		return stageResult{}, err
	}
	return c.deleteKinds(kinds...)(ctx, up)
}

// servesGroup reports whether the API server has an API group. It asks for groups that are not of Kubernetes. No
// earlier answer replaces this request: objects of a group that has just appeared would stay.
func (c *Cleaner) servesGroup(ctx context.Context, name string) (bool, error) {
	if c.client.Scheme().IsGroupRegistered(name) {
		return true, nil
	}
	return c.hasGroup(ctx, name)
}

// contentKinds returns the cluster-scoped kinds that bundles may bring and that have no stage of
// their own.
func contentKinds(added plansteps.Kinds) []schema.GroupKind {
	ownStages := slices.Concat(bindings(), roles())
	return slices.DeleteFunc(added.Labelled(), func(gk schema.GroupKind) bool {
		return slices.ContainsFunc(ownStages, func(k kind) bool { return k.gvk.GroupKind() == gk })
	})
}

// servedKinds returns the kinds that the cluster has, in its preferred versions. It asks for each
// group first: a REST mapper reads all groups again for each unknown kind.
func servedKinds(
	ctx context.Context, mapper apimeta.RESTMapper, hasGroup func(context.Context, string) (bool, error), kinds []schema.GroupKind,
) ([]kind, error) {
	var served []kind
	groups := map[string]bool{}
	for _, gk := range kinds {
		has, asked := groups[gk.Group]
		if !asked {
			var err error
			if has, err = hasGroup(ctx, gk.Group); err != nil {
				return nil, err
			}
			groups[gk.Group] = has
		}
		if !has {
			continue
		}
		mapping, err := mapper.RESTMapping(gk)
		if apimeta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("looking for the kind %s: %w", gk, err)
		}
		served = append(served, labelledKind(mapping.GroupVersionKind, mapping.Resource.GroupResource().String()))
	}
	return served, nil
}
