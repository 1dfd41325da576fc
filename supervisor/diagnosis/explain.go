package diagnosis

import "k8s.io/apimachinery/pkg/types"

// Explain says how a Subscription is, and why.
func Explain(o *Observation, sub types.NamespacedName) Explanation {
	return ExplainObject(o, Ref{Kind: KindSubscription, Namespace: sub.Namespace, Name: sub.Name})
}

// ExplainObject says how a Subscription, a CatalogSource, an InstallPlan or a
// ClusterServiceVersion is, and why.
func ExplainObject(_ *Observation, subject Ref) Explanation {
	return Explanation{Subject: subject, State: Unknown}
}

// Examine finds everything that is wrong in what was looked at: each cause once, the
// worst first.
func Examine(_ *Observation) []Finding { return nil }
