package clusterserviceversion

import (
	"context"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
)

const (
	// indexCRD finds ClusterServiceVersions by the definitions that they own or require.
	indexCRD = "clusterserviceversion/crd"
	// indexState finds ClusterServiceVersions that wait for a change elsewhere, by what they wait
	// for.
	indexState = "clusterserviceversion/state"

	// stateCompeting is the state of a version that may not run because of the claims of another
	// OperatorGroup.
	stateCompeting = "contending"
	// stateUnmet is the state of a version that waits for permissions of an account, or was refused
	// without them.
	stateUnmet = "lacking"
)

// addIndexes adds the indexes with which events find the versions that they concern, and versions
// find the RBAC of their accounts.
func addIndexes(to client.FieldIndexer) error {
	ctx := context.Background() //nolint:forbidigo // Indexes are added before anything runs, and adding them waits for nothing.
	for _, index := range []struct {
		object client.Object
		name   string
		keys   client.IndexerFunc
	}{
		{&operatorsv1alpha1.ClusterServiceVersion{}, indexCRD, crdKeys},
		{&operatorsv1alpha1.ClusterServiceVersion{}, indexState, stateKeys},
		{&rbacv1.ClusterRole{}, indexNamespace, namespaceKeys},
		{&rbacv1.ClusterRoleBinding{}, indexNamespace, namespaceKeys},
	} {
		if err := to.IndexField(ctx, index.object, index.name, index.keys); err != nil {
			return fmt.Errorf("adding the index %s: %w", index.name, err)
		}
	}
	return nil
}

func crdKeys(o client.Object) []string {
	csv, is := o.(*operatorsv1alpha1.ClusterServiceVersion)
	if !is {
		return nil
	}
	var names []string
	for _, d := range csv.GetAllCRDDescriptions() {
		names = append(names, d.Name)
	}
	return names
}

func stateKeys(o client.Object) []string {
	csv, is := o.(*operatorsv1alpha1.ClusterServiceVersion)
	if !is {
		return nil
	}
	var states []string
	if csv.Status.Reason == operatorsv1alpha1.CSVReasonInterOperatorGroupOwnerConflict {
		states = append(states, stateCompeting)
	}
	if phase.RefusedToInstall(csv) || awaitsPermissions(csv, []rbacv1.Subject(nil), false) {
		states = append(states, stateUnmet)
	}
	return states
}
