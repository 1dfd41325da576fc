package subscription

import (
	"context"
	"errors"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errBehind reports that the API server has objects that the caches lack. Each kind has its own
// watch. After an outage of the API server, versions may arrive half a minute later than their
// plans. They would then seem to be missing.
var errBehind = errors.New("not everything in the namespace has come here yet")

// stale reports whether a decision depends on an outdated state of the namespace: another client
// has written an object, or the caches lack one. That is no failure, and the status does not show
// it.
func stale(err error) bool { return apierrors.IsConflict(err) || errors.Is(err, errBehind) }

// upToDate returns errBehind if the caches lack an existing version or plan. It runs before a pass
// creates its first plan: a version that seems to be missing would be installed twice.
func (r *Reconciler) upToDate(ctx context.Context, o *observation) error {
	if o.upToDate {
		return nil
	}
	seen := map[string]bool{}
	for _, csv := range o.csvs {
		seen[string(csv.UID)] = true
	}
	for _, p := range o.plans {
		seen[string(p.UID)] = true
	}
	for _, kind := range []string{operatorsv1alpha1.ClusterServiceVersionKind, operatorsv1alpha1.InstallPlanKind} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(kind + "List"))
		if err := r.live.List(ctx, list, client.InNamespace(o.namespace)); err != nil {
			return fmt.Errorf("listing every %s of namespace %s: %w", kind, o.namespace, err)
		}
		for i := range list.Items {
			m := &list.Items[i]
			_, copied := m.Labels[operatorsv1alpha1.CopiedLabelKey]
			if !seen[string(m.UID)] && !copied && m.DeletionTimestamp == nil {
				return fmt.Errorf("%w: %s %s/%s", errBehind, kind, o.namespace, m.Name)
			}
		}
	}
	o.upToDate = true
	return nil
}
