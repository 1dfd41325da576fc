package rival

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// LeaseName is the name of the Lease that every supervisor competes for, in a namespace of
// its choice.
const LeaseName = "chandlery-supervisor"

const (
	// pageSize is how many Deployments are read at once.
	pageSize = 500
	// glance is the pause between two looks at a Lease.
	glance = 500 * time.Millisecond
	// leaseSlack is how much longer than its duration a Lease is watched for a renewal.
	leaseSlack = time.Second
)

// Sentry looks for rivals, again and again. What it remembers is when it saw the Leases of
// other supervisors change: the times that stand in them are those of other clocks, and
// a Lease that nobody gave back looks like one that is held. A Sentry is not for use by
// several at once.
type Sentry struct {
	deployments, leases client.Reader
	clock               clock.Clock
	// page is how many Deployments are read at once; 0 for all, as caches have it.
	page int64
	own  types.NamespacedName
	seen map[types.NamespacedName]sighting
}

// sighting is what was seen of a Lease.
type sighting struct {
	sign     string
	holder   string
	first    time.Time
	changed  time.Time
	duration time.Duration
}

// NewSentry makes a Sentry of a supervisor that competes for the Lease of a namespace.
func NewSentry(deployments, leases client.Reader, namespace string, c clock.Clock) *Sentry {
	return &Sentry{
		deployments: deployments, leases: leases, clock: c, page: pageSize,
		own: types.NamespacedName{Namespace: namespace, Name: LeaseName}, seen: map[types.NamespacedName]sighting{},
	}
}

// Read makes a cache the reader that Deployments are listed with from now on: once it is
// filled, looking is cheap.
func (s *Sentry) Read(deployments client.Reader) { s.deployments, s.page = deployments, 0 }

// Look looks once. A supervisor whose Lease is seen for the first time does not count yet.
func (s *Sentry) Look(ctx context.Context) (Finding, error) {
	var o Observation
	if err := s.lookAtDeployments(ctx, &o); err != nil {
		return Finding{}, err
	}
	if err := s.lookAtLeases(ctx, &o); err != nil {
		return Finding{}, err
	}
	return Recognise(o), nil
}

// Wait looks until it is sure: as long as a Lease may be held by somebody who has not been
// seen to renew it yet.
func (s *Sentry) Wait(ctx context.Context) (Finding, error) {
	for {
		f, err := s.Look(ctx)
		if err != nil || f.State == Running || !s.unsure() {
			return f, err
		}
		select {
		case <-s.clock.After(glance):
		case <-ctx.Done():
			return f, context.Cause(ctx) //nolint:wrapcheck // the caller's own
		}
	}
}

// unsure says whether a Lease may yet turn out to be held.
func (s *Sentry) unsure() bool {
	for _, seen := range s.seen {
		if seen.changed.IsZero() && s.clock.Since(seen.first) < seen.duration+leaseSlack {
			return true
		}
	}
	return false
}

func (s *Sentry) lookAtDeployments(ctx context.Context, o *Observation) error {
	var token string
	for {
		var page appsv1.DeploymentList
		options := []client.ListOption{client.UnsafeDisableDeepCopy}
		if s.page > 0 {
			options = append(options, client.Limit(s.page), client.Continue(token))
		}
		err := s.deployments.List(ctx, &page, options...)
		switch {
		case apierrors.IsForbidden(err):
			o.Hidden = append(o.Hidden, "Deployments, among which OLM's may be: "+err.Error())
			return nil
		case err != nil:
			return fmt.Errorf("looking for other lifecycle managers among Deployments: %w", err)
		}
		for i := range page.Items {
			// Others are not kept: there may be thousands.
			if recognise(&page.Items[i]) != nil {
				o.Deployments = append(o.Deployments, page.Items[i])
			}
		}
		// A cache gives all at once, with a token that leads nowhere.
		if token = page.Continue; token == "" || s.page == 0 {
			return nil
		}
	}
}

func (s *Sentry) lookAtLeases(ctx context.Context, o *Observation) error {
	var list coordinationv1.LeaseList
	err := s.leases.List(ctx, &list, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", LeaseName)})
	switch {
	case apierrors.IsForbidden(err):
		o.Hidden = append(o.Hidden, "Leases "+LeaseName+" of other namespaces: "+err.Error())
		return nil
	case err != nil:
		return fmt.Errorf("looking for supervisors of other namespaces: %w", err)
	}
	present := map[types.NamespacedName]sighting{}
	for i := range list.Items {
		lease := &list.Items[i]
		key := client.ObjectKeyFromObject(lease)
		if key == s.own || ptr.Deref(lease.Spec.HolderIdentity, "") == "" {
			continue
		}
		present[key] = s.sight(lease)
		if held := present[key]; !held.changed.IsZero() && s.clock.Since(held.changed) < held.duration+leaseSlack {
			o.Supervisors = append(o.Supervisors, Supervisor{Namespace: key.Namespace, Holder: held.holder})
		}
	}
	s.seen = present
	return nil
}

// sight compares a Lease with what was seen of it before.
func (s *Sentry) sight(lease *coordinationv1.Lease) sighting {
	now := sighting{
		sign:     lease.ResourceVersion,
		holder:   *lease.Spec.HolderIdentity,
		first:    s.clock.Now(),
		duration: time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second,
	}
	before, known := s.seen[client.ObjectKeyFromObject(lease)]
	if !known {
		return now
	}
	now.first, now.changed = before.first, before.changed
	if before.sign != now.sign {
		now.changed = s.clock.Now()
	}
	return now
}
