package subscription

import (
	"context"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
)

// withdraw deletes a version that never worked, and leaves its custom resources. A version that
// begins to work has another resource version, and stays.
func (r *Reconciler) withdraw(ctx context.Context, d *decision) error {
	csv := d.withdraw
	if csv == nil || !csv.DeletionTimestamp.IsZero() {
		return nil
	}
	way := api.WithdrawnToReturn
	if d.then != nil {
		way = api.WithdrawnToInstall
	}
	if csv.Annotations[api.AnnotationWithdrawn] != way {
		before := csv.DeepCopy()
		metav1.SetMetaDataAnnotation(&csv.ObjectMeta, api.AnnotationWithdrawn, way)
		if err := r.patch(ctx, before, csv); err != nil {
			return fmt.Errorf("keeping the custom resources of ClusterServiceVersion %s/%s: %w", csv.Namespace, csv.Name, err)
		}
	}
	if err := r.client.Delete(ctx, csv, client.Preconditions{UID: &csv.UID, ResourceVersion: &csv.ResourceVersion}); err != nil {
		return fmt.Errorf("deleting ClusterServiceVersion %s/%s, which never worked, to go back to %s: %w", csv.Namespace, csv.Name, pinOf(d.subscription), err)
	}
	log.FromContext(ctx).Info("Withdrew version", "subscription", d.subscription.Name, "version", csv.Name, "pinnedTo", pinOf(d.subscription))
	r.recorder.Eventf(d.subscription, nil, corev1.EventTypeNormal, "Withdrawn", "RollBack",
		"%s never worked and is deleted to go back to %s", csv.Name, pinOf(d.subscription))
	return nil
}

// kept returns the versions that stay although they were marked as withdrawn. They began to work,
// or the pin changed, before their deletion.
func (o *observation) kept(decisions []*decision) []*operatorsv1alpha1.ClusterServiceVersion {
	return slices.DeleteFunc(slices.Clone(o.csvs), func(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
		withdrawn := slices.ContainsFunc(decisions, func(d *decision) bool { return d.withdraw != nil && d.withdraw.Name == csv.Name })
		return withdrawn || csv.Annotations[api.AnnotationWithdrawn] == "" || !csv.DeletionTimestamp.IsZero()
	})
}

// keepVersions removes the mark from versions that stay. A later deletion would otherwise leave
// their custom resources. Failures are retried in the next pass.
func (r *Reconciler) keepVersions(ctx context.Context, o *observation, decisions []*decision) {
	for _, csv := range o.kept(decisions) {
		if err := r.keep(ctx, csv); err != nil {
			log.FromContext(ctx).Error(err, "Not keeping a version", "version", csv.Name)
			o.soonest(r.clock.Now().Add(retryAfter))
		}
	}
}

func (r *Reconciler) keep(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion) error {
	if csv.Annotations[api.AnnotationWithdrawn] == "" || !csv.DeletionTimestamp.IsZero() {
		return nil
	}
	before := csv.DeepCopy()
	delete(csv.Annotations, api.AnnotationWithdrawn)
	if err := r.patch(ctx, before, csv); err != nil {
		return fmt.Errorf("taking annotation %s from ClusterServiceVersion %s/%s, which stays: %w", api.AnnotationWithdrawn, csv.Namespace, csv.Name, err)
	}
	return nil
}
