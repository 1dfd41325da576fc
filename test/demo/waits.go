package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/demo/timeline"
)

// errFinal means that an installation has failed permanently.
var errFinal = errors.New("the installation failed for good")

// installed waits until the CSV of the Subscription is installed and its Deployments are available.
func (w *world) installed(ctx context.Context, pkg, name string, limit time.Duration) error {
	ns := namespaceOf(pkg)
	return w.await(ctx, name+" is installed", limit, func(ctx context.Context) (bool, error) {
		var s operatorsv1alpha1.Subscription
		var c operatorsv1alpha1.ClusterServiceVersion
		err := errors.Join(
			client.IgnoreNotFound(w.seen.Get(ctx, types.NamespacedName{Namespace: ns, Name: pkg}, &s)),
			client.IgnoreNotFound(w.seen.Get(ctx, types.NamespacedName{Namespace: ns, Name: name}, &c)))
		if c.Status.Phase == operatorsv1alpha1.CSVPhaseFailed && c.Status.Reason == operatorsv1alpha1.CSVReasonComponentFailedNoRetry {
			return false, fmt.Errorf("%w: %s", errFinal, c.Status.Message)
		}
		if err != nil || s.Status.InstalledCSV != name || c.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
			return false, err
		}
		complete, err := w.planComplete(ctx, &s)
		if err != nil || !complete {
			return false, err
		}
		return w.deploymentsAvailable(ctx, &c)
	})
}

// planComplete reports whether the Subscription's InstallPlan is complete.
func (w *world) planComplete(ctx context.Context, s *operatorsv1alpha1.Subscription) (bool, error) {
	if s.Status.InstallPlanRef == nil {
		return false, nil
	}
	var p operatorsv1alpha1.InstallPlan
	err := w.seen.Get(ctx, types.NamespacedName{Namespace: s.Namespace, Name: s.Status.InstallPlanRef.Name}, &p)
	return p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseComplete, client.IgnoreNotFound(err)
}

// deploymentsAvailable reports whether all Deployments of the CSV are available.
func (w *world) deploymentsAvailable(ctx context.Context, c *operatorsv1alpha1.ClusterServiceVersion) (bool, error) {
	for _, spec := range c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		var deployment appsv1.Deployment
		err := w.seen.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: spec.Name}, &deployment)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil || !timeline.Available(&deployment) {
			return false, err
		}
	}
	return true, nil
}

// leader waits until a supervisor other than before leads and returns its name.
func (w *world) leader(ctx context.Context, before string, limit time.Duration) (string, error) {
	var holder string
	err := w.await(ctx, "a supervisor leads", limit, func(ctx context.Context) (bool, error) {
		var l coordinationv1.Lease
		err := w.seen.Get(ctx, types.NamespacedName{Namespace: catalogNamespace, Name: leaseName}, &l)
		holder = timeline.Holder(&l)
		return holder != "" && holder != before, client.IgnoreNotFound(err)
	})
	return holder, err
}
