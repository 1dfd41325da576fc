package subscription

import (
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/api/olmtext"
)

// deprecations returns the conditions about deprecations in the catalog: of the package, of the
// channel of the Subscription, and of the installed version. One more condition summarizes them. As with
// OLM, they have no reason.
func deprecations(catalogs catalogSet, sub *operatorsv1alpha1.Subscription, installed string) []operatorsv1alpha1.SubscriptionCondition {
	pkg := catalogs.packageWith(sub, installed)
	if pkg == nil {
		return nil
	}
	var (
		list     []operatorsv1alpha1.SubscriptionCondition
		messages []string
	)
	add := func(kind operatorsv1alpha1.SubscriptionConditionType, subject, message string) {
		if message == "" {
			return
		}
		message = olmtext.Deprecation(subject, message)
		messages = append(messages, message)
		list = append(list, isTrue(kind, "", message))
	}
	add(operatorsv1alpha1.SubscriptionPackageDeprecated, "olm.package/"+pkg.Name, pkg.Deprecation)
	if channel := pkg.Channel(sub.Spec.Channel); channel != nil {
		add(operatorsv1alpha1.SubscriptionChannelDeprecated, "olm.channel/"+channel.Name, channel.Deprecation)
	}
	if bundle := pkg.Bundle(installed); bundle != nil {
		add(operatorsv1alpha1.SubscriptionBundleDeprecated, "olm.bundle/"+bundle.Name, bundle.Deprecation)
	}
	if len(list) == 0 {
		return nil
	}
	return append(list, isTrue(operatorsv1alpha1.SubscriptionDeprecated, "", olmtext.Deprecations(messages)))
}
