package subscription

import (
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/resolution"
)

// ResolverInput is the input of the resolver for a namespace, with the results that need no resolution.
type ResolverInput struct {
	Input resolution.Input
	// Blocked is why nothing is resolved in the namespace; nil otherwise.
	Blocked error
	// Refused holds the errors of the Subscriptions that are not resolved, by name: it is open
	// which version they own.
	Refused map[string]error
	// Failed holds the failed versions that no version replaces until they succeed, by the name of
	// the Subscription.
	Failed map[string]*operatorsv1alpha1.ClusterServiceVersion
}

// ResolverInputOf returns what the controller would give the resolver, without a resolution. It neither
// reads nor changes objects.
func ResolverInputOf(objects Objects) ResolverInput {
	o := objects.observe(&propertyCache{})
	r, decisions := newDecider(o)
	in := ResolverInput{
		Input: r.input(decisions), Blocked: o.groups.problem(o.namespace),
		Refused: map[string]error{}, Failed: map[string]*operatorsv1alpha1.ClusterServiceVersion{},
	}
	for _, d := range decisions {
		if d.err != nil {
			in.Refused[d.subscription.Name] = d.err
		}
		if d.present.failed() && !o.canStart(d) {
			in.Failed[d.subscription.Name] = d.present.current
		}
	}
	return in
}
