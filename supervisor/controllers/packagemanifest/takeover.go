package packagemanifest

import (
	"context"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/migration"
	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

// mayWrite reports whether the supervisor may write the live APIService, which is nil if there is none: its own one, and
// that of OLM's package server after a takeover.
func (r *registrar) mayWrite(ctx context.Context, live *unstructured.Unstructured) (bool, error) {
	if live == nil || r.owns(live) {
		return true, nil
	}
	if r.disabled || r.name != supervisorName || !isOfOLM(live) {
		return false, nil
	}
	phase, err := migration.ReadPhase(ctx, r.live, r.namespace)
	return phase == migration.TakenOver, err
}

// isOfOLM reports whether the ClusterServiceVersion of OLM's package server owns an APIService.
func isOfOLM(live *unstructured.Unstructured) bool {
	labels := live.GetLabels()
	return labels[api.LabelOwner] == competing.OLMPackageServer && labels[api.LabelOwnerKind] == operatorsv1alpha1.ClusterServiceVersionKind
}

// write brings the live APIService to a wanted state. It takes that of OLM's package server over in one write, which
// removes its labels, so that the API is never without a server. The record of the takeover has its former state.
func (r *registrar) write(ctx context.Context, live, want *unstructured.Unstructured) error {
	if live == nil || r.owns(live) {
		return apply.Apply(ctx, r.client, want, client.ForceOwnership)
	}
	log.FromContext(ctx).Info("Taking over the APIService of OLM's package server", "apiService", live.GetName())
	want.SetUID(live.GetUID())
	want.SetResourceVersion(live.GetResourceVersion())
	return apply.Replace(ctx, r.client, want)
}

// Withdraw deletes the APIService of the supervisors in a namespace, while none of them leads. They are not ready while they
// wait for another lifecycle manager, and an APIService without endpoints prevents the deletion of every namespace.
func Withdraw(ctx context.Context, c client.Client, namespace string) error {
	if namespace == "" {
		return nil
	}
	return withdraw(ctx, &registrar{installation: installationOf(Auto), client: c, live: c, namespace: namespace})
}

// withdraw deletes the APIService of a registrar if it is the own one.
func withdraw(ctx context.Context, r *registrar) error {
	live, err := apply.Live(ctx, r.live, r.apiService(r.namespace, nil, nil))
	if err != nil || live == nil || !r.owns(live) {
		return err
	}
	return r.unregister(ctx, live)
}

// unregister deletes the own APIService. During a handback it stays, because the handback returns it to OLM's package
// server in one write.
func (r *registrar) unregister(ctx context.Context, live *unstructured.Unstructured) error {
	if r.name == supervisorName {
		phase, err := migration.ReadPhase(ctx, r.live, r.namespace)
		if err != nil || phase == migration.HandingBack {
			return err
		}
	}
	log.FromContext(ctx).Info("Deleting the APIService of PackageManifests", "apiService", live.GetName())
	return client.IgnoreNotFound(apply.DeleteIf(ctx, r.client, live, apply.SameUID(live)))
}
