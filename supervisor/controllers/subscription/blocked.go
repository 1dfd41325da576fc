package subscription

import (
	"errors"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/plan"
	"github.com/chandlery/chandlery/supervisor/resolver"
)

// remedyUnavailable is what to do while a catalog does not answer.
const remedyUnavailable = "what is installed stays, and the resolution continues when the catalog answers: the status of its CatalogSource and its pods state what is wrong"

// blocked returns the condition with the exact reason of an error, and what to do about it.
func blocked(err error) operatorsv1alpha1.SubscriptionCondition {
	reason, remedy := causeOf(err)
	return isTrue(api.ConditionBlocked, reason, remedy)
}

// causeOf returns the reason of ConditionBlocked for an error, and what to do about it.
func causeOf(err error) (reason, remedy string) {
	var (
		unsatisfiable *resolver.UnsatisfiableError
		catalog       *resolver.CatalogError
		groups        *groupsError
		images        missingImages
	)
	switch {
	case errors.As(err, &unsatisfiable):
		return unsatisfiable.Reason, unsatisfiable.Remedy
	case errors.As(err, &groups):
		return api.ReasonOperatorGroupInvalid, groups.remedy()
	case errors.As(err, &images):
		return images.cause()
	case errors.Is(err, plan.ErrNoInlineManifests) || errors.Is(err, errContentUnknown):
		return api.ReasonBundleUnusable, ""
	case errors.As(err, &catalog) || isUnavailable(err):
		if isUnavailable(err) {
			remedy = remedyUnavailable
		}
		return api.ReasonCatalogUnavailable, remedy
	default:
		return api.ReasonResolutionFailed, ""
	}
}

// cause returns the same for missing images.
func (l missingImages) cause() (reason, remedy string) {
	failed := l.failed()
	switch {
	case failed == nil:
		return "", ""
	case failed.invalid():
		return api.ReasonBundleUnusable, failed.remedy()
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
