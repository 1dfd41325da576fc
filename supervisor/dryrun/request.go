package dryrun

import (
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/controllers/subscription"
	"github.com/chandlery/chandlery/supervisor/resolver"
)

// Request is a namespace to look ahead for.
type Request struct {
	Problem resolver.Problem
	// Manual names the Subscriptions whose InstallPlans wait for an approval.
	Manual map[string]bool
	// Stuck says of Subscriptions for which something is under way why that will
	// not end by itself. What is under way for others is taken to succeed.
	Stuck map[string]string
	// Refused are the Subscriptions that are no part of the problem.
	Refused []Refused
	// Blocked says why nothing at all happens in the namespace as it is now.
	Blocked string
	// Catalogs says where the content of each catalog came from.
	Catalogs map[resolver.CatalogKey]string
	// Notes are remarks to be shown along.
	Notes []string
}

// Refused is a Subscription that gets no answer, and why.
type Refused struct {
	Subscription, Package string
	Err                   error
}

// Ahead asks to look ahead from what there is, as the controller of Subscriptions
// sees it.
func Ahead(objects subscription.Objects) Request {
	p := subscription.Look(objects)
	r := Request{Problem: p.Problem, Manual: map[string]bool{}, Stuck: map[string]string{}}
	if p.Blocked != nil {
		r.Blocked = p.Blocked.Error()
	}
	for name, csv := range p.Failed {
		r.Stuck[name] = fmt.Sprintf("version %s has failed, and nothing is begun before it is well: %s", csv.Name, csv.Status.Message)
	}
	for _, sub := range objects.Subscriptions {
		if sub.Spec == nil {
			continue
		}
		if err := p.Refused[sub.Name]; err != nil {
			r.Refused = append(r.Refused, Refused{Subscription: sub.Name, Package: sub.Spec.Package, Err: err})
		}
		r.Manual[sub.Name] = sub.GetInstallPlanApproval() == operatorsv1alpha1.ApprovalManual
	}
	return r
}
