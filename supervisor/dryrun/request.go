package dryrun

import (
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/controllers/subscription"
	"github.com/chandlery/chandlery/supervisor/resolution"
)

// Request is a namespace whose future is predicted.
type Request struct {
	Input resolution.Input
	// Manual names the Subscriptions whose InstallPlans require manual approval.
	Manual map[string]bool
	// Stuck holds, for Subscriptions with a plan in progress that will not succeed without intervention, the reason and
	// the remedy. Other plans in progress are assumed to succeed.
	Stuck map[string]Refusal
	// Copied holds the namespace of the original of each copied version in the namespace. No plan installs a version
	// with the name of a copy.
	Copied map[string]string
	// Groups determine which APIs the versions of the namespace may provide.
	Groups Groups
	// Refused are the Subscriptions that are not part of the input.
	Refused []Refused
	// Blocked is the reason why nothing happens in the namespace in its current state.
	Blocked string
	// Catalogs holds the source of each catalog's content.
	Catalogs map[resolution.CatalogKey]string
	// Notes are remarks to show with the result.
	Notes []string
}

// Refused is a Subscription that gets no answer, with the reason.
type Refused struct {
	Subscription, Package string
	Err                   error
}

// NewRequest returns a request for the current objects, as the controller of Subscriptions reads them.
func NewRequest(objects subscription.Objects) Request {
	p := subscription.ResolverInputOf(objects)
	r := Request{Input: p.Input, Manual: map[string]bool{}, Stuck: map[string]Refusal{}, Copied: map[string]string{}}
	if p.Blocked != nil {
		r.Blocked = p.Blocked.Error()
	}
	for name, csv := range p.Failed {
		r.Stuck[name] = failedVersion(csv)
	}
	for _, csv := range objects.Versions {
		if from := csv.Labels[operatorsv1alpha1.CopiedLabelKey]; from != "" {
			r.Copied[csv.Name] = from
		}
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

// failedVersion returns why a failed version blocks the updates of its Subscription, and the remedy.
func failedVersion(csv *operatorsv1alpha1.ClusterServiceVersion) Refusal {
	r := Refusal{
		Reason: fmt.Sprintf("version %s has failed, which blocks updates", csv.Name),
		Remedy: fmt.Sprintf("find the cause with 'kubectl chandlery explain csv/%s -n %s'", csv.Name, csv.Namespace),
	}
	if csv.Status.Message != "" {
		r.Reason += ": " + csv.Status.Message
	}
	return r
}
