package operator

import (
	"context"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// indexComponent finds the components of an Operator by its name.
	indexComponent = "operator/component"
	// indexOwner finds cluster-scoped objects by the version in their labels.
	indexOwner = "operator/owner"
	// indexDefinition finds versions by the CustomResourceDefinitions that they provide.
	indexDefinition = "operator/definition"
)

// addIndexes adds the indexes that avoid listing all objects.
func addIndexes(c caches) error {
	ctx := context.Background() //nolint:forbidigo // Indexes are added before anything runs, and adding them waits for nothing.
	for _, k := range kinds() {
		if k.named {
			continue
		}
		if err := c.of(k).IndexField(ctx, k.object(), indexComponent, componentOf); err != nil {
			return fmt.Errorf("indexing objects of kind %s by their Operators: %w", k.gvk.Kind, err)
		}
		if !k.cluster || !k.ownable {
			continue
		}
		if err := c.of(k).IndexField(ctx, k.object(), indexOwner, ownerKeys); err != nil {
			return fmt.Errorf("indexing objects of kind %s by their owners: %w", k.gvk.Kind, err)
		}
	}
	if err := c.shared.IndexField(ctx, &operatorsv1alpha1.ClusterServiceVersion{}, indexDefinition, definitionsOf); err != nil {
		return fmt.Errorf("indexing ClusterServiceVersions by their definitions: %w", err)
	}
	return nil
}

func ownerKeys(o client.Object) []string {
	if owner, is := labelledOwner(o); is {
		return []string{owner.String()}
	}
	return nil
}

func definitionsOf(o client.Object) []string {
	csv, is := o.(*operatorsv1alpha1.ClusterServiceVersion)
	if !is {
		return nil
	}
	var names []string
	for _, d := range csv.Spec.CustomResourceDefinitions.Owned {
		names = append(names, d.Name)
	}
	return names
}
