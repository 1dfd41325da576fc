package copiedcsv

import (
	"context"
	"fmt"
	"slices"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
	"github.com/chandlery/chandlery/supervisor/apply"
)

// configReconciler reports in the status of the OLMConfig whether exactly the requested copies
// exist, and which setting has no effect.
type configReconciler struct {
	reader reader
	client client.Client
	clock  clock.PassiveClock
}

// Reconcile updates the conditions of the OLMConfig.
func (r *configReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if req.Name != configName {
		return ctrl.Result{}, nil
	}
	config := &operatorsv1.OLMConfig{}
	if err := r.client.Get(ctx, req.NamespacedName, config); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	asked, err := r.matchesConfig(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	changed := config.DeepCopy()
	if !setConditions(changed, asked, r.clock.Now()) {
		return ctrl.Result{}, nil
	}
	if err := apply.PatchStatus(ctx, r.client, changed, apply.MergeFromLocked(config)); err != nil {
		return apply.RequeueConflict(client.IgnoreNotFound(fmt.Errorf("writing the status of OLMConfig %s: %w", configName, err)))
	}
	logf.FromContext(ctx).Info("Updated OLMConfig status", "enabled", config.CopiedCSVsAreEnabled(), "asAsked", asked)
	return ctrl.Result{}, nil
}

// matchesConfig reports whether every version that serves all namespaces is copied as the OLMConfig
// requests.
func (r *configReconciler) matchesConfig(ctx context.Context) (bool, error) {
	var versions operatorsv1alpha1.ClusterServiceVersionList
	if err := r.reader.client.List(ctx, &versions, readOnly); err != nil {
		return false, fmt.Errorf("listing ClusterServiceVersions: %w", err)
	}
	for i := range versions.Items {
		csv := &versions.Items[i]
		if isCopied(csv) || !servesAll(csv) {
			continue
		}
		o, err := r.reader.observe(ctx, client.ObjectKeyFromObject(csv))
		if err != nil {
			return false, err
		}
		if !complete(o) {
			return false, nil
		}
	}
	return true, nil
}

// servesAll reports whether the OperatorGroup of a version targets all namespaces or none.
func servesAll(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	targets, found := csv.Annotations[operatorsv1.OperatorGroupTargetsAnnotationKey]
	return found && targets == ""
}

// complete reports whether a version that serves all namespaces has exactly the wanted copies. A
// version with unknown target namespaces counts as complete.
func complete(o *input) bool {
	p := placementOf(o)
	if p.mode != modeSync || !p.allNamespaces {
		return true
	}
	for namespace := range o.copies {
		if o.namespaces.Has(namespace) && !p.wanted.Has(namespace) {
			return false
		}
	}
	return !slices.ContainsFunc(p.wanted.UnsortedList(), func(namespace string) bool { return o.copies[namespace] == nil })
}

// setConditions sets the conditions of the OLMConfig, and reports whether they have changed.
func setConditions(config *operatorsv1.OLMConfig, matchesConfig bool, now time.Time) bool {
	list := &config.Status.Conditions
	changed := apimeta.SetStatusCondition(list, condition(config, matchesConfig, now))
	if config.PackageServerSyncInterval() == nil {
		return apimeta.RemoveStatusCondition(list, api.ConditionIneffectiveSettings) || changed
	}
	return apimeta.SetStatusCondition(list, metav1.Condition{
		Type: api.ConditionIneffectiveSettings, Status: metav1.ConditionTrue, Reason: api.ReasonPackageManifestsFollowCatalogs,
		Message:            "spec.features.packageServerSyncInterval has no effect: PackageManifests change with the catalogs, without an interval. Remove the setting.",
		LastTransitionTime: metav1.NewTime(now),
	}) || changed
}

// condition returns the condition of the OLMConfig about copies. Its texts are those of OLM, because consoles
// and scripts compare them.
func condition(config *operatorsv1.OLMConfig, matchesConfig bool, now time.Time) metav1.Condition {
	c := metav1.Condition{
		Type:               operatorsv1.DisabledCopiedCSVsConditionType,
		Status:             metav1.ConditionFalse,
		Reason:             api.ReasonCopiedCSVsEnabled,
		LastTransitionTime: metav1.NewTime(now),
	}
	switch enabled := config.CopiedCSVsAreEnabled(); {
	case enabled && matchesConfig:
		c.Message = olmtext.CopiesPresent
	case enabled:
		c.Message = olmtext.CopiesMissing
	case matchesConfig:
		c.Status, c.Reason = metav1.ConditionTrue, api.ReasonCopiedCSVsDisabled
		c.Message = olmtext.CopiesAbsent
	default:
		c.Reason = api.ReasonCopiedCSVsDisabled
		c.Message = olmtext.CopiesNotYetGone
	}
	return c
}

// configRequest returns the only request that the configReconciler handles.
func configRequest() reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: configName}}
}
