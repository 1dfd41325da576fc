package rival

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
)

const (
	// pageSize is how many Deployments are read at once.
	pageSize = 500
	// glance is the pause between two looks at a Lease.
	glance = 500 * time.Millisecond
	// MaxWait is the longest time that Wait takes, apart from its requests.
	MaxWait = MaxLeaseDuration + leaseSlack
)

// Config says where a Sentry looks.
type Config struct {
	// Client reads Deployments, Leases and pods, and creates SubjectAccessReviews.
	Client client.Client
	// Namespace holds the Lease of the caller, which is not that of another supervisor.
	Namespace string
	// ManagerNamespaces are those whose Deployments and Leases count without a review of
	// their service accounts.
	ManagerNamespaces []string
	// Clock is the time.
	Clock clock.Clock
	// Waiting is called by Wait before it waits for something else than before; nil for
	// nothing.
	Waiting func(Waiting)
}

// Waiting is what Wait waits for.
type Waiting struct {
	// Leases have to be seen to be renewed, or not for as long as they last, as
	// namespace/name.
	Leases []string
	// Reviews is how many service accounts have not been reviewed.
	Reviews int
	// AtMost is how long it may take yet.
	AtMost time.Duration
}

// Sentry looks for competing managers, again and again. It is not safe for concurrent use.
type Sentry struct {
	deployments client.Reader
	// page is how many Deployments are read at once; 0 for all, as caches have it.
	page    int64
	clock   clock.Clock
	trusted []string
	waiting func(Waiting)
	access  *AccessReviewer
	leases  *leaseObserver
	// pending is how many service accounts of Deployments have not been reviewed.
	pending int
}

// NewSentry returns a Sentry.
func NewSentry(c Config) *Sentry {
	return &Sentry{
		deployments: c.Client, page: pageSize, clock: c.Clock, trusted: c.ManagerNamespaces, waiting: c.Waiting,
		access: NewAccessReviewer(c.Client, VerbOLM, c.Clock),
		leases: &leaseObserver{
			client: c.Client, clock: c.Clock, trusted: c.ManagerNamespaces,
			own:    types.NamespacedName{Namespace: c.Namespace, Name: api.LeaseName},
			access: NewAccessReviewer(c.Client, VerbSupervisor, c.Clock),
		},
	}
}

// Read makes a cache the reader that Deployments are listed with from now on: once it is
// filled, looking is cheap.
func (s *Sentry) Read(deployments client.Reader) { s.deployments, s.page = deployments, 0 }

// Look looks once. A supervisor whose Lease is seen for the first time does not count yet,
// nor does a Deployment whose service account has not been reviewed.
func (s *Sentry) Look(ctx context.Context) (Finding, error) {
	var o Observation
	if err := s.lookAtDeployments(ctx, &o); err != nil {
		return Finding{}, err
	}
	if err := s.leases.observe(ctx, &o); err != nil {
		return Finding{}, err
	}
	return Recognise(o), nil
}

// LookFully looks until every service account has been reviewed, for MaxWait at most. It
// does not wait for Leases.
func (s *Sentry) LookFully(ctx context.Context) (Finding, error) {
	return s.lookUntil(ctx, func() bool { return s.pending+s.leases.pending == 0 })
}

// Wait looks until it is sure, for MaxWait at most: every service account has been
// reviewed, and every Lease that counts was seen to be renewed or has run out.
func (s *Sentry) Wait(ctx context.Context) (Finding, error) {
	return s.lookUntil(ctx, func() bool { return s.pending+s.leases.pending == 0 && len(s.leases.unsure()) == 0 })
}

func (s *Sentry) lookUntil(ctx context.Context, sure func() bool) (Finding, error) {
	begun := s.clock.Now()
	var reported []string
	for first := true; ; first = false {
		f, err := s.Look(ctx)
		left := MaxWait - s.clock.Since(begun)
		if err != nil || f.State == Running || sure() || left <= 0 {
			return f, err
		}
		w := Waiting{Leases: s.leases.unsure(), Reviews: s.pending + s.leases.pending, AtMost: left}
		if s.waiting != nil && (first || !slices.Equal(reported, w.Leases)) {
			s.waiting(w)
			reported = w.Leases
		}
		select {
		case <-s.clock.After(min(glance, left)):
		case <-ctx.Done():
			return f, context.Cause(ctx) //nolint:wrapcheck // the caller's own
		}
	}
}

func (s *Sentry) lookAtDeployments(ctx context.Context, o *Observation) error {
	found, hidden, err := s.candidates(ctx)
	if err != nil {
		return err
	}
	o.Hidden = append(o.Hidden, hidden...)
	workloads, accounts := found.workloads(s.trusted)
	access, err := s.access.Review(ctx, accounts)
	if err != nil {
		return err
	}
	s.pending = access.Pending
	if access.Hidden != "" {
		s.pending = 0
		o.Hidden = append(o.Hidden, "whether Deployments that look like OLM's may do its work: "+access.Hidden)
	}
	o.Workloads, o.Omitted = workloads, found.omitted
	o.Judge = access.Judge(s.trusted)
	return nil
}

// candidates lists the Deployments that look like OLM's. It returns why they cannot be
// seen where that is forbidden.
func (s *Sentry) candidates(ctx context.Context) (*candidates, []string, error) {
	var token string
	found := &candidates{}
	for {
		var page appsv1.DeploymentList
		options := []client.ListOption{client.UnsafeDisableDeepCopy}
		if s.page > 0 {
			options = append(options, client.Limit(s.page), client.Continue(token))
		}
		err := s.deployments.List(ctx, &page, options...)
		switch {
		case apierrors.IsForbidden(err):
			return found, []string{"Deployments, among which OLM's may be: " + err.Error()}, nil
		case err != nil:
			return nil, nil, fmt.Errorf("looking for other lifecycle managers among Deployments: %w", err)
		}
		for i := range page.Items {
			// Others are not kept: there may be thousands.
			found.add(&page.Items[i])
		}
		// A cache gives all at once, and a token that it does not take.
		if token = page.Continue; token == "" || s.page == 0 {
			return found, nil, nil
		}
	}
}
