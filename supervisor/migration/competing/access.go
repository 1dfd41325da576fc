package competing

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// maxReviews is the maximum number of service accounts that one check reviews. The next checks review the others,
	// each namespace in turn.
	maxReviews = 20
	// reviewLifetime is how long the result of a review is used.
	reviewLifetime = 30 * time.Second
)

// Verb is the verb by which a lifecycle manager writes the status of its kinds.
type Verb string

const (
	// VerbOLM is the verb of OLM.
	VerbOLM Verb = "update"
	// VerbSupervisor is the verb of supervisors.
	VerbSupervisor Verb = "patch"
)

// managedStatus are the resources whose status a lifecycle manager must be able to write in all namespaces. The
// ClusterRoles admin and edit grant neither.
var managedStatus = []string{"clusterserviceversions", "installplans"}

// Access holds the known permissions of service accounts.
type Access struct {
	// Writers is true for an account that may write the status of the managed kinds in all namespaces, and false for
	// one that may not. It has no entry for an account that has not been reviewed.
	Writers map[types.NamespacedName]bool
	// Pending is the number of accounts that have not been reviewed yet.
	Pending int
	// Hidden is the reason why accounts cannot be reviewed; empty if they can.
	Hidden string
}

// Classify returns a function that classifies Deployments by the permissions of their service accounts.
// Deployments in trusted namespaces are not reviewed.
func (a Access) Classify(trusted []string) func(*Workload) Verdict {
	return func(w *Workload) Verdict {
		if slices.Contains(trusted, w.Namespace) {
			return Competes
		}
		writes, reviewed := a.Writers[w.Account()]
		switch {
		case !reviewed:
			return NotReviewed
		case writes:
			return Competes
		default:
			return Suspect
		}
	}
}

// ClassifyByAppearance returns the verdict for users who may lack the permission to review service accounts. A
// Deployment that has not been reviewed counts as what it looks like.
func (a Access) ClassifyByAppearance(w *Workload) Verdict {
	if verdict := a.Classify(nil)(w); verdict != NotReviewed {
		return verdict
	}
	return Competes
}

// Accounts returns the service accounts of Deployments.
func Accounts(workloads []Workload) []types.NamespacedName {
	accounts := make([]types.NamespacedName, 0, len(workloads))
	for i := range workloads {
		accounts = append(accounts, workloads[i].Account())
	}
	return accounts
}

// AccessReviewer asks the API server which service accounts may act as a lifecycle manager. It limits the
// number of requests at a time and reuses the answers for a while. It is not safe for concurrent use.
type AccessReviewer struct {
	client client.Client
	clock  clock.PassiveClock
	// verb is the verb to review.
	verb    Verb
	results map[types.NamespacedName]reviewResult
	// lastReviews holds the time at which an account of a namespace was last reviewed.
	lastReviews map[string]time.Time
}

type reviewResult struct {
	writes bool
	at     time.Time
}

// NewAccessReviewer returns a reviewer of the permissions for a verb.
func NewAccessReviewer(c client.Client, verb Verb, cl clock.PassiveClock) *AccessReviewer {
	return &AccessReviewer{client: c, clock: cl, verb: verb, results: map[types.NamespacedName]reviewResult{}, lastReviews: map[string]time.Time{}}
}

// Review returns the access of accounts, after a review of at most maxReviews of them. It removes the results
// of other accounts.
func (r *AccessReviewer) Review(ctx context.Context, accounts []types.NamespacedName) (Access, error) {
	r.forget(accounts)
	queue := fairOrder(r.due(accounts), r.lastReviews)
	access := Access{Writers: map[types.NamespacedName]bool{}}
	for _, account := range queue[:min(len(queue), maxReviews)] {
		writes, err := r.mayWrite(ctx, account)
		if apierrors.IsForbidden(err) {
			access.Hidden = err.Error()
			break
		}
		if err != nil {
			return Access{}, fmt.Errorf("reviewing the permissions of ServiceAccount %s: %w", account, err)
		}
		now := r.clock.Now()
		r.results[account] = reviewResult{writes: writes, at: now}
		r.lastReviews[account.Namespace] = now
	}
	for _, account := range accounts {
		if known, ok := r.results[account]; ok {
			access.Writers[account] = known.writes
		} else {
			access.Pending++
		}
	}
	return access, nil
}

// forget removes the results of accounts that are not among those given, so that their number bounds the
// memory.
func (r *AccessReviewer) forget(except []types.NamespacedName) {
	accounts, namespaces := map[types.NamespacedName]bool{}, map[string]bool{}
	for _, account := range except {
		accounts[account], namespaces[account.Namespace] = true, true
	}
	for account := range r.results {
		if !accounts[account] {
			delete(r.results, account)
		}
	}
	for namespace := range r.lastReviews {
		if !namespaces[namespace] {
			delete(r.lastReviews, namespace)
		}
	}
}

// due returns the accounts without a recent result, those without any first, then the
// oldest result first, each once.
func (r *AccessReviewer) due(accounts []types.NamespacedName) []types.NamespacedName {
	var due []types.NamespacedName
	seen := map[types.NamespacedName]bool{}
	for _, account := range accounts {
		known, ok := r.results[account]
		if !seen[account] && (!ok || r.clock.Since(known.at) >= reviewLifetime) {
			due = append(due, account)
		}
		seen[account] = true
	}
	slices.SortStableFunc(due, func(a, b types.NamespacedName) int {
		return r.results[a].at.Compare(r.results[b].at)
	})
	return due
}

// fairOrder orders accounts so that their namespaces take turns, the one that waited longest first. Many
// accounts in one namespace thus do not delay those of the others.
func fairOrder(accounts []types.NamespacedName, lastReviews map[string]time.Time) []types.NamespacedName {
	type entry struct {
		types.NamespacedName

		round int
	}
	rounds := map[string]int{}
	entries := make([]entry, 0, len(accounts))
	for _, account := range accounts {
		entries = append(entries, entry{account, rounds[account.Namespace]})
		rounds[account.Namespace]++
	}
	slices.SortStableFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.round, b.round), lastReviews[a.Namespace].Compare(lastReviews[b.Namespace]), strings.Compare(a.Namespace, b.Namespace))
	})
	ordered := make([]types.NamespacedName, 0, len(entries))
	for _, e := range entries {
		ordered = append(ordered, e.NamespacedName)
	}
	return ordered
}

// mayWrite reports whether an account may write the status of a managed kind in all namespaces.
func (r *AccessReviewer) mayWrite(ctx context.Context, account types.NamespacedName) (bool, error) {
	for _, resource := range managedStatus {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:   "system:serviceaccount:" + account.Namespace + ":" + account.Name,
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + account.Namespace, "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: string(r.verb), Group: operatorsv1alpha1.GroupName, Version: operatorsv1alpha1.GroupVersion,
				Resource: resource, Subresource: "status",
			},
		}}
		if err := r.client.Create(ctx, review); err != nil {
			return false, err //nolint:wrapcheck // the caller names the account
		}
		if review.Status.Allowed {
			return true, nil
		}
	}
	return false, nil
}
