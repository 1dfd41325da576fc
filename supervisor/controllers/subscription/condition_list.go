package subscription

import (
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/api"
)

// owned are the types of the conditions that this controller sets and removes.
var owned = slices.Concat(fromCatalogs, []operatorsv1alpha1.SubscriptionConditionType{
	operatorsv1alpha1.SubscriptionInstallPlanMissing,
	operatorsv1alpha1.SubscriptionInstallPlanPending,
	operatorsv1alpha1.SubscriptionInstallPlanFailed,
	api.ConditionVersionUnhealthy,
	api.ConditionConfigInvalid,
	api.ConditionUninstalling,
})

// fromCatalogs are those that depend on the content of catalogs.
var fromCatalogs = slices.Concat(fromTargeted, fromAnswer)

// fromTargeted are those that depend only on the catalog that a Subscription names.
var fromTargeted = []operatorsv1alpha1.SubscriptionConditionType{
	operatorsv1alpha1.SubscriptionCatalogSourcesUnhealthy,
	operatorsv1alpha1.SubscriptionDeprecated,
	operatorsv1alpha1.SubscriptionPackageDeprecated,
	operatorsv1alpha1.SubscriptionChannelDeprecated,
	operatorsv1alpha1.SubscriptionBundleDeprecated,
}

// fromAnswer are those that depend on the resolution.
var fromAnswer = []operatorsv1alpha1.SubscriptionConditionType{
	operatorsv1alpha1.SubscriptionResolutionFailed,
	operatorsv1alpha1.SubscriptionBundleUnpacking,
	operatorsv1alpha1.SubscriptionBundleUnpackFailed,
	api.ConditionBlocked,
	api.ConditionNewerVersionHeld,
}

// maxMessage bounds the message of a condition, in bytes. Many processes keep Subscriptions in
// memory.
const maxMessage = 4 << 10

// isTrue returns a true condition without a time.
func isTrue(kind operatorsv1alpha1.SubscriptionConditionType, reason, message string) operatorsv1alpha1.SubscriptionCondition {
	return operatorsv1alpha1.SubscriptionCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message}
}

// retained returns the conditions of certain types.
func retained(before []operatorsv1alpha1.SubscriptionCondition, kinds []operatorsv1alpha1.SubscriptionConditionType) []operatorsv1alpha1.SubscriptionCondition {
	var list []operatorsv1alpha1.SubscriptionCondition
	for _, c := range before {
		if slices.Contains(kinds, c.Type) {
			list = append(list, c)
		}
	}
	return list
}

// mergeConditions returns the conditions of other clients and the wanted ones. As with OLM's SetCondition, a condition
// keeps its place and a new one is appended. An unchanged condition keeps its time. A change of the reason alone is a
// change.
func mergeConditions(before, wanted []operatorsv1alpha1.SubscriptionCondition, now metav1.Time) []operatorsv1alpha1.SubscriptionCondition {
	var status operatorsv1alpha1.SubscriptionStatus
	for _, c := range before {
		set := slices.ContainsFunc(wanted, func(w operatorsv1alpha1.SubscriptionCondition) bool { return w.Type == c.Type })
		if set || !slices.Contains(owned, c.Type) {
			status.Conditions = append(status.Conditions, c)
		}
	}
	for _, c := range wanted {
		c.Message = clipped(c.Message)
		c.LastTransitionTime = &now
		if !status.GetCondition(c.Type).Equals(c) {
			status.SetCondition(c)
		}
	}
	return status.Conditions
}

// clipped returns a message as valid and bounded text. The API server stores invalid text in another
// form, so that the status would be written again for ever.
func clipped(text string) string { return bundles.Clip(bundles.OneLine(text), maxMessage) }
