package subscription

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/configoverrides"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/resolution"
	"github.com/chandlery/chandlery/supervisor/transitionlog"
)

// catalogConditions returns the true conditions that depend on the content of catalogs, without
// times. While a catalog is being read for the first time, they stay as they were; so does the one about a catalog whose
// snapshot is being confirmed, for example after a restart of the supervisor.
func catalogConditions(o *namespaceState, d *decision, status operatorsv1alpha1.SubscriptionStatus) []operatorsv1alpha1.SubscriptionCondition {
	var list []operatorsv1alpha1.SubscriptionCondition
	before := d.subscription.Status.Conditions
	switch key := catalogOf(d.subscription); {
	case o.catalogs.loading(key):
		list = retained(before, fromTargeted)
	case o.catalogs[key].State.Confirming():
		list = retained(before, []operatorsv1alpha1.SubscriptionConditionType{operatorsv1alpha1.SubscriptionCatalogSourcesUnhealthy})
		list = append(list, deprecations(o.catalogs, d.subscription, status.InstalledCSV)...)
	default:
		list = append(list, catalogCondition(o, d.subscription))
		list = append(list, deprecations(o.catalogs, d.subscription, status.InstalledCSV)...)
	}
	if errors.Is(d.err, resolution.ErrPending) {
		return append(list, retained(before, fromAnswer)...)
	}
	if d.err != nil {
		list = append(list, failure(d.err))
		if _, pulling := errors.AsType[imagesError](d.err); !pulling || list[len(list)-1].Type == operatorsv1alpha1.SubscriptionBundleUnpackFailed {
			list = append(list, blocked(d.err))
		}
	}
	if d.held != nil {
		list = append(list, held(d.held))
	}
	return list
}

// held returns the condition about a newer version that cannot be installed.
func held(why error) operatorsv1alpha1.SubscriptionCondition {
	reason := api.ReasonConstraintsNotSatisfiable
	if _, pinned := errors.AsType[*resolution.PinnedError](why); pinned {
		reason = api.ReasonPinned
	}
	return isTrue(api.ConditionNewerVersionHeld, reason, why.Error())
}

// ownConditions returns the true conditions that depend on the plan and on the installed version,
// without times.
func ownConditions(
	o *namespaceState, d *decision, status operatorsv1alpha1.SubscriptionStatus, p *operatorsv1alpha1.InstallPlan,
) []operatorsv1alpha1.SubscriptionCondition {
	var list []operatorsv1alpha1.SubscriptionCondition
	if unhealthyVersion(d, p) {
		list = append(list, versionCondition(o.groups, d, p))
	}
	list = append(list, configConditions(d)...)
	switch {
	case p != nil:
		list = append(list, planConditions(p)...)
	case status.InstallPlanRef != nil && o.plans.referenced(status.InstallPlanRef) == nil && !outlivesPlan(d.subscription):
		list = append(list, missingPlan())
	}
	return list
}

// configConditions returns the condition about invalid settings for the Deployments; none if they are valid. The names
// of containers are known once a version exists. Unknown names change nothing: the next version may have them.
func configConditions(d *decision) []operatorsv1alpha1.SubscriptionCondition {
	overrides, err := configoverrides.Parse(d.subscription)
	reason := api.ReasonInvalidAnnotation
	if err == nil {
		reason, err = api.ReasonUnknownContainer, overrides.CheckContainers(d.subscription, d.present.current, d.present.installed)
	}
	if err == nil {
		return nil
	}
	return []operatorsv1alpha1.SubscriptionCondition{isTrue(api.ConditionConfigInvalid, reason, err.Error())}
}

// outlivesPlan reports whether a Subscription refers to a plan that created it and was complete. The
// plan belongs to other Subscriptions and is deleted with them.
func outlivesPlan(sub *operatorsv1alpha1.Subscription) bool {
	ref := sub.Status.InstallPlanRef
	if ref == nil || generatedBy(sub) != ref.Name {
		return false
	}
	const complete = string(operatorsv1alpha1.InstallPlanPhaseComplete)
	if shown, _ := transitionlog.Shown(&sub.Status); shown.Phase == complete {
		return true
	}
	entries, err := transitionlog.Read(sub)
	return err == nil && slices.ContainsFunc(entries, func(t transitionlog.Transition) bool { return t.UID == ref.UID && t.Phase == complete })
}

// missingPlan returns the condition for a deleted plan.
func missingPlan() operatorsv1alpha1.SubscriptionCondition {
	missing := transitionlog.Missing()
	return isTrue(missing.Condition(), missing.Reason, "")
}

// catalogCondition returns the condition about the catalogs in scope, in particular the one that the
// Subscription names.
func catalogCondition(o *namespaceState, sub *operatorsv1alpha1.Subscription) operatorsv1alpha1.SubscriptionCondition {
	const kind = operatorsv1alpha1.SubscriptionCatalogSourcesUnhealthy
	key := catalogOf(sub)
	catalog, found := o.catalogs[key]
	switch {
	case len(o.catalogs) == 0:
		return isTrue(kind, operatorsv1alpha1.NoCatalogSourcesFound, olmtext.NoCatalogs)
	case !found:
		return isTrue(kind, operatorsv1alpha1.UnhealthyCatalogSourceFound, olmtext.CatalogMissing(key.String()))
	case !catalog.State.Ready():
		return isTrue(kind, operatorsv1alpha1.UnhealthyCatalogSourceFound, olmtext.CatalogUnhealthy(key.String()))
	default:
		return operatorsv1alpha1.SubscriptionCondition{
			Type: kind, Status: corev1.ConditionFalse,
			Reason: operatorsv1alpha1.AllCatalogSourcesHealthy, Message: olmtext.CatalogsHealthy,
		}
	}
}

// unhealthyVersion reports whether the newest version has failed, or lacks requirements although
// its plan is complete. A version that is being installed is not unhealthy.
func unhealthyVersion(d *decision, p *operatorsv1alpha1.InstallPlan) bool {
	if d.present.current == nil {
		return false
	}
	switch status := d.present.current.Status; status.Phase {
	case operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVPhaseUnknown:
		return true
	case operatorsv1alpha1.CSVPhasePending:
		done := p == nil || complete(p)
		return done && status.Reason == operatorsv1alpha1.CSVReasonRequirementsNotMet
	default:
		return false
	}
}

// versionCondition returns the condition about an unhealthy version, the version that waits for it,
// and what to do.
func versionCondition(g groups, d *decision, p *operatorsv1alpha1.InstallPlan) operatorsv1alpha1.SubscriptionCondition {
	csv := d.present.current
	message := fmt.Sprintf("clusterserviceversion %s is in phase %s: %s", csv.Name, csv.Status.Phase, csv.Status.Message)
	if cause, _ := api.CauseOf(csv); cause.Detail != "" {
		message += ": " + cause.Detail
	}
	if d.install == nil && d.next != nil && d.next.Bundle != csv.Name {
		message += fmt.Sprintf("; %s is available and will be installed once %s is healthy", d.next.Bundle, csv.Name)
		message += g.failForwardHint(csv)
	}
	if d.withdraw != nil {
		message += "; the supervisor deletes it, because the Subscription is pinned to " + pinOf(d.subscription)
	} else if p != nil && csv.Status.Phase == operatorsv1alpha1.CSVPhasePending {
		message += fmt.Sprintf("; see status.requirementStatus for the missing requirements; to apply the objects of the plan again, delete InstallPlan %s", p.Name)
	}
	return isTrue(api.ConditionVersionUnhealthy, string(csv.Status.Reason), message)
}

// failure returns the condition for an error. ConditionBlocked states the exact reason and the
// remedy.
func failure(err error) operatorsv1alpha1.SubscriptionCondition {
	var (
		unsatisfiable *resolution.UnsatisfiableError
		groups        *groupsError
		planning      *planError
		images        imagesError
		incomplete    *plansteps.IncompleteCSVError
		catalog       *resolution.CatalogError
	)
	switch {
	case errors.As(err, &unsatisfiable):
		return isTrue(operatorsv1alpha1.SubscriptionResolutionFailed, api.ReasonConstraintsNotSatisfiable, unsatisfiable.Cause())
	case errors.As(err, &images):
		return images.condition()
	case errors.Is(err, plansteps.ErrNoInlineManifests) || errors.Is(err, errContentUnknown):
		return isTrue(operatorsv1alpha1.SubscriptionBundleUnpackFailed, api.ReasonErrorPreventedUnpacking, err.Error())
	case errors.As(err, &incomplete):
		return isTrue(operatorsv1alpha1.SubscriptionResolutionFailed, api.ReasonErrorPreventedResolution, olmtext.StepsFailed(incomplete))
	case errors.As(err, &planning):
		return isTrue(operatorsv1alpha1.SubscriptionBundleUnpackFailed, api.ReasonEnsureInstallPlanFailed, olmtext.EnsurePlanFailed(err))
	case errors.As(err, &groups):
		return isTrue(operatorsv1alpha1.SubscriptionResolutionFailed, api.ReasonErrorPreventedResolution, groups.cause())
	case errors.As(err, &catalog):
		return isTrue(operatorsv1alpha1.SubscriptionResolutionFailed, api.ReasonErrorPreventedResolution, catalogFailure(catalog))
	default:
		return isTrue(operatorsv1alpha1.SubscriptionResolutionFailed, api.ReasonErrorPreventedResolution, err.Error())
	}
}

// catalogFailure returns the sentence of OLM about a catalog that cannot be used.
func catalogFailure(err *resolution.CatalogError) string {
	key := err.Catalog.String()
	if errors.Is(err, catalogs.ErrNotConnected) {
		return olmtext.CatalogError(key, olmtext.NoRegistryClient(key))
	}
	if grpcstatus.Code(err.Err) != codes.Unknown {
		return olmtext.CatalogError(key, olmtext.ListBundlesFailed(err.Err))
	}
	return err.Error()
}

// condition returns the condition about the bundle images that a plan needs. The plan has the progress of the pulls.
func (l imagesError) condition() operatorsv1alpha1.SubscriptionCondition {
	failed := l.failed()
	switch {
	case failed == nil:
		return isTrue(operatorsv1alpha1.SubscriptionBundleUnpacking, api.ReasonUnpackingInProgress, "")
	case failed.invalid():
		return isTrue(operatorsv1alpha1.SubscriptionBundleUnpackFailed, api.ReasonErrorPreventedUnpacking, failed.cause())
	default:
		return isTrue(operatorsv1alpha1.SubscriptionBundleUnpackFailed, api.ReasonBundleUnpackFailed, failed.cause())
	}
}

// planConditions returns the condition about the stage of a plan; none for a complete one.
func planConditions(p *operatorsv1alpha1.InstallPlan) []operatorsv1alpha1.SubscriptionCondition {
	stage := transitionlog.StageOf(p)
	kind := stage.Condition()
	if kind == "" {
		return nil
	}
	message := cmp.Or(p.Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled).Message, pendingLookups(p))
	return []operatorsv1alpha1.SubscriptionCondition{isTrue(kind, stage.Reason, message)}
}

// pendingLookups returns the messages about the bundles that a plan waits for.
func pendingLookups(p *operatorsv1alpha1.InstallPlan) string {
	var messages []string
	for i := range p.Status.BundleLookups {
		if c := p.Status.BundleLookups[i].GetCondition(operatorsv1alpha1.BundleLookupPending); c.Status == corev1.ConditionTrue && c.Message != "" {
			messages = append(messages, c.Message)
		}
	}
	return olmtext.PendingLookups(messages)
}

// remedyUnavailable is what to do while a catalog does not answer.
const remedyUnavailable = "installed operators stay, and the resolution continues when the catalog answers: see the status of the CatalogSource and of its pods"

// blocked returns the condition with the exact reason of an error, and what to do about it.
func blocked(err error) operatorsv1alpha1.SubscriptionCondition {
	reason, remedy := reasonAndRemedyOf(err)
	return isTrue(api.ConditionBlocked, reason, remedy)
}

// reasonAndRemedyOf returns the reason of ConditionBlocked for an error, and what to do about it.
func reasonAndRemedyOf(err error) (reason, remedy string) {
	var (
		unsatisfiable *resolution.UnsatisfiableError
		catalog       *resolution.CatalogError
		groups        *groupsError
		images        imagesError
	)
	switch {
	case errors.As(err, &unsatisfiable):
		return unsatisfiable.Reason, unsatisfiable.Remedy
	case errors.As(err, &groups):
		return api.ReasonOperatorGroupInvalid, groups.remedy()
	case errors.As(err, &images):
		return images.reasonAndRemedy()
	case errors.Is(err, plansteps.ErrNoInlineManifests) || errors.Is(err, errContentUnknown):
		return api.ReasonBundleUnusable, ""
	case errors.As(err, &catalog) || isUnavailable(err):
		if isUnavailable(err) {
			remedy = remedyUnavailable
		}
		if catalog != nil && errors.Is(err, catalogs.ErrNotConnected) {
			remedy = catalog.Err.Error() + "; " + remedy
		}
		return api.ReasonCatalogUnavailable, remedy
	default:
		return api.ReasonResolutionFailed, ""
	}
}

// reasonAndRemedy returns the same for missing images.
func (l imagesError) reasonAndRemedy() (reason, remedy string) {
	failed := l.failed()
	switch {
	case failed == nil:
		return "", ""
	case failed.invalid():
		return api.ReasonBundleUnusable, failed.remedy()
	case image.ReasonOf(failed.state.Err) == image.ReasonPolicyRefused:
		return api.ReasonPolicyRefused, failed.remedy()
	default:
		return api.ReasonBundleUnpackFailed, failed.remedy()
	}
}

// isUnavailable reports whether an error is that a catalog does not answer.
func isUnavailable(err error) bool {
	code := grpcstatus.Code(err)
	return errors.Is(err, catalogs.ErrNotConnected) || code == codes.Unavailable || code == codes.DeadlineExceeded
}

// remedyIn returns what a Subscription states to do about a condition, after a semicolon; empty for
// nothing.
func remedyIn(sub *operatorsv1alpha1.Subscription, kind operatorsv1alpha1.SubscriptionConditionType) string {
	remedy := sub.Status.GetCondition(api.ConditionBlocked).Message
	if kind == api.ConditionConfigInvalid || remedy == "" {
		return ""
	}
	return "; " + remedy
}
