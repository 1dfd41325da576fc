package operatorgroup

import (
	"context"
	"fmt"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api/providedapis"
)

const (
	// indexProvided finds ClusterServiceVersions by the hash of an API that they provide.
	indexProvided = "operatorgroup/provided"
	// indexSelecting finds the OperatorGroups that select namespaces by labels.
	indexSelecting = "operatorgroup/selecting"
	// indexLabelled finds namespaces by the group labels on them.
	indexLabelled = "operatorgroup/labelled"
	// indexGroupsIn finds ClusterRoles of OperatorGroups by the namespace of the group.
	indexGroupsIn = "operatorgroup/namespace"

	// selecting is the only key of indexSelecting.
	selecting = "true"
)

// addIndexes adds the indexes that map events to the affected objects.
func addIndexes(to client.FieldIndexer) error {
	ctx := context.Background() //nolint:forbidigo // Indexes are added before anything runs, and adding them waits for nothing.
	for _, index := range []struct {
		object client.Object
		name   string
		keys   client.IndexerFunc
	}{
		{&operatorsv1alpha1.ClusterServiceVersion{}, indexProvided, provided},
		{&operatorsv1.OperatorGroup{}, indexSelecting, selects},
		{namespaceMetadata(), indexLabelled, groupLabelsOf},
		{&rbacv1.ClusterRole{}, indexGroupsIn, groupNamespaceKeys},
	} {
		if err := to.IndexField(ctx, index.object, index.name, index.keys); err != nil {
			return fmt.Errorf("adding the index %s: %w", index.name, err)
		}
	}
	return nil
}

func provided(o client.Object) []string {
	csv, is := o.(*operatorsv1alpha1.ClusterServiceVersion)
	if !is {
		return nil
	}
	return providedapis.Index(csv)
}

func selects(o client.Object) []string {
	if group, is := o.(*operatorsv1.OperatorGroup); is && !isEmptySelector(group.Spec.Selector) {
		return []string{selecting}
	}
	return nil
}

func groupLabelsOf(o client.Object) []string {
	var keys []string
	for key := range o.GetLabels() {
		if operatorsv1.IsOperatorGroupLabel(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

func groupNamespaceKeys(o client.Object) []string {
	if namespace, is := groupNamespaceOf(o); is {
		return []string{namespace}
	}
	return nil
}
