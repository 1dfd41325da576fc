package clusterserviceversion

import (
	"context"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/rights"
)

// granting maps a role or binding to the ClusterServiceVersion that its labels name, to
// those that wait for rights of an account which it may give them to, and to those that may
// have been refused for the lack of rights.
func (m mapper) granting(ctx context.Context, obj client.Object) []reconcile.Request {
	out := m.owner(ctx, obj)
	if obj.GetLabels()[api.LabelGrant] != "" {
		// The lender makes and deletes it for the supervisor, and for no account.
		return out
	}
	subjects, bound := rights.Subjects(obj)
	waiting := m.selected(ctx, func(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
		return refusedToInstall(csv) || awaitsRights(csv, subjects, bound)
	}, client.InNamespace(obj.GetNamespace()), client.MatchingFields{indexState: stateLacking})
	return append(out, waiting...)
}

// awaitsRights says whether csv waits for rights of an account that is among the subjects,
// by itself or by a group; of any account where no subjects are known. Those that run or
// wait for something else are left in peace: bindings are many, and change often.
func awaitsRights(csv *operatorsv1alpha1.ClusterServiceVersion, subjects []rbacv1.Subject, known bool) bool {
	if csv.Status.Phase != operatorsv1alpha1.CSVPhasePending {
		return false
	}
	return slices.ContainsFunc(csv.Status.RequirementStatus, func(s operatorsv1alpha1.RequirementStatus) bool {
		lacks := s.Kind == rbacv1.ServiceAccountKind && s.Status == operatorsv1alpha1.RequirementStatusReasonPresentNotSatisfied
		return lacks && (!known || rights.Bound(subjects, csv.Namespace, s.Name))
	})
}
