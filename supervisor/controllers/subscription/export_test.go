package subscription

import (
	"context"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/resolution"
)

// Decided returns the decisions of the controller for objects: the bundles of each plan, and the
// errors of the Subscriptions without one.
func Decided(ctx context.Context, objects Objects) (plans []string, failed map[string]error) {
	decisions := decide(ctx, objects.observe(&propertyCache{}), resolution.Resolve)
	failed = map[string]error{}
	for _, d := range decisions {
		if d.err != nil {
			failed[d.subscription.Name] = d.err
		}
		// The same as identified, without the manifests.
		for _, c := range d.choices() {
			d.identities = append(d.identities, plansteps.Identity{
				Catalog: c.Catalog.String(), Package: c.Package, Channel: c.Channel, Bundle: c.Bundle, Replaces: c.Replaces, Generated: c != d.install,
			})
		}
	}
	for _, a := range desiredPlans(decisions) {
		var text []string
		for i, c := range a.choices {
			what := c.Catalog.String() + " " + c.Channel + " " + c.Bundle
			// A package that has a Subscription gets no other.
			asked := slices.ContainsFunc(objects.Subscriptions, func(sub *operatorsv1alpha1.Subscription) bool {
				return active(sub) && sub.Spec.Package == c.Package
			})
			if a.versions[i].Generated && !asked {
				what += " along"
			}
			text = append(text, what)
		}
		for _, d := range a.served {
			text = append(text, "for "+d.subscription.Name)
		}
		text = append(text, strings.ToLower(string(approvalOf(a.served))))
		slices.Sort(text)
		plans = append(plans, strings.Join(text, ", "))
	}
	slices.Sort(plans)
	return plans, failed
}
