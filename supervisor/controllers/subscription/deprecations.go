package subscription

import (
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs/content"
)

// deprecations returns the conditions about deprecations in the catalog: of the package, of the
// channel of the Subscription, and of the installed version. One more condition summarizes them.
func deprecations(o *observation, sub *operatorsv1alpha1.Subscription, installed string) []operatorsv1alpha1.SubscriptionCondition {
	pkg := o.offers(sub, installed)
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
		message = subject + ": " + message
		messages = append(messages, message)
		list = append(list, isTrue(kind, api.ReasonDeprecated, message))
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
	return append(list, isTrue(operatorsv1alpha1.SubscriptionDeprecated, api.ReasonDeprecated, strings.Join(messages, "; ")))
}

// offers returns the package of a Subscription in its catalog, if the package has the installed
// version. The version must be in the channel of the Subscription or, when that is empty, in any
// channel. It returns nil otherwise.
func (o *observation) offers(sub *operatorsv1alpha1.Subscription, installed string) *content.Package {
	snapshot := o.catalogs[types.NamespacedName{Namespace: sub.Spec.CatalogSourceNamespace, Name: sub.Spec.CatalogSource}].State.Snapshot
	if snapshot == nil || installed == "" {
		return nil
	}
	pkg := snapshot.Content.Package(sub.Spec.Package)
	if pkg == nil {
		return nil
	}
	for _, channel := range pkg.Channels {
		if (sub.Spec.Channel == "" || sub.Spec.Channel == channel.Name) && channel.Entry(installed) != nil {
			return pkg
		}
	}
	return nil
}
