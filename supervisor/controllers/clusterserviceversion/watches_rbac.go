package clusterserviceversion

import (
	"context"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
	"github.com/chandlery/chandlery/supervisor/rbac/impersonate"
)

// forRBAC maps a role or binding to the ClusterServiceVersion that its labels name. It also maps
// to versions that wait for permissions that it may grant, and to those that the API may have refused
// without permissions.
func (m mapper) forRBAC(ctx context.Context, obj client.Object) []reconcile.Request {
	out := m.forOwnedObject(ctx, obj)
	if obj.GetLabels()[api.LabelGrant] != "" {
		// The supervisor creates and deletes it for itself only.
		return out
	}
	subjects, bound := impersonate.Subjects(obj)
	waiting := m.selected(ctx, func(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
		return phase.RefusedToInstall(csv) || awaitsPermissions(csv, subjects, bound)
	}, client.InNamespace(obj.GetNamespace()), client.MatchingFields{indexState: stateUnmet})
	return append(out, waiting...)
}

// awaitsPermissions reports whether csv waits for permissions of an account that is among the subjects,
// directly or through a group. Without known subjects, any account counts. It returns false for
// other versions: there are many bindings, and they change often.
func awaitsPermissions(csv *operatorsv1alpha1.ClusterServiceVersion, subjects []rbacv1.Subject, known bool) bool {
	if csv.Status.Phase != operatorsv1alpha1.CSVPhasePending {
		return false
	}
	return slices.ContainsFunc(csv.Status.RequirementStatus, func(s operatorsv1alpha1.RequirementStatus) bool {
		lacks := s.Kind == rbacv1.ServiceAccountKind && s.Status == operatorsv1alpha1.RequirementStatusReasonPresentNotSatisfied
		return lacks && (!known || impersonate.IsBound(subjects, csv.Namespace, s.Name))
	})
}
