package explain

import (
	"cmp"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
)

// MainCondition returns the reason and the message of the most important condition that describes why a Subscription does not
// progress. Both are empty if there is none.
func MainCondition(sub *operatorsv1alpha1.Subscription) (reason, message string) {
	for _, kind := range problemConditions() {
		if c := sub.Status.GetCondition(kind); c.Status == corev1.ConditionTrue {
			return cmp.Or(c.Reason, string(kind)), c.Message
		}
	}
	return "", ""
}

// problemConditions returns the conditions that describe why a Subscription does not progress, in order of importance.
func problemConditions() []operatorsv1alpha1.SubscriptionConditionType {
	return []operatorsv1alpha1.SubscriptionConditionType{
		operatorsv1alpha1.SubscriptionInstallPlanFailed,
		operatorsv1alpha1.SubscriptionBundleUnpackFailed,
		operatorsv1alpha1.SubscriptionResolutionFailed,
		"ClusterServiceVersionUnhealthy",
		operatorsv1alpha1.SubscriptionInstallPlanMissing,
		operatorsv1alpha1.SubscriptionInstallPlanPending,
		operatorsv1alpha1.SubscriptionBundleUnpacking,
		operatorsv1alpha1.SubscriptionCatalogSourcesUnhealthy,
		operatorsv1alpha1.SubscriptionDeprecated,
	}
}
