package competing

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
	// pageSize is the number of Deployments that are read at once.
	pageSize = 16
	// pollInterval is the polling interval for a Lease.
	pollInterval = 500 * time.Millisecond
	// MaxWait is the maximum duration of Wait, without its requests.
	MaxWait = MaxLeaseDuration + leaseSlack
)

// Config configures a Detector.
type Config struct {
	// Client reads Leases and pods, and creates SubjectAccessReviews.
	Client client.Client
	// Deployments lists Deployments in pages; nil for Client. A process with limited memory needs a reader that
	// reduces them, since a page may take hundreds of MiB.
	Deployments client.Reader
	// Namespace is the namespace of the caller's own Lease, which does not count as another supervisor's.
	Namespace string
	// ManagerNamespaces are the namespaces whose Deployments and Leases count without a review of their service
	// accounts.
	ManagerNamespaces []string
	// Clock returns the time.
	Clock clock.Clock
	// OnWait is called when Wait starts to wait for something else; nil for no call.
	OnWait func(WaitState)
}

// WaitState is what Wait waits for.
type WaitState struct {
	// Leases are those that must be seen to be renewed, or to expire, as NAMESPACE/NAME.
	Leases []string
	// Reviews is the number of service accounts that have not been reviewed.
	Reviews int
	// AtMost is the maximum remaining time.
	AtMost time.Duration
}

// Detector checks repeatedly for competing managers. It is not safe for concurrent use.
type Detector struct {
	deployments client.Reader
	// page is the number of Deployments that are read at once; 0 for all, as for a cache.
	page    int64
	clock   clock.Clock
	trusted []string
	onWait  func(WaitState)
	access  *AccessReviewer
	leases  *leaseObserver
	// pending is the number of service accounts of Deployments that have not been reviewed.
	pending int
}

// NewDetector returns a Detector.
func NewDetector(c Config) *Detector {
	deployments := c.Deployments
	if deployments == nil {
		deployments = c.Client
	}
	return &Detector{
		deployments: deployments, page: pageSize, clock: c.Clock, trusted: c.ManagerNamespaces, onWait: c.OnWait,
		access: NewAccessReviewer(c.Client, VerbOLM, c.Clock),
		leases: &leaseObserver{
			client: c.Client, clock: c.Clock, trusted: c.ManagerNamespaces,
			own:    types.NamespacedName{Namespace: c.Namespace, Name: api.LeaseName},
			access: NewAccessReviewer(c.Client, VerbSupervisor, c.Clock),
		},
	}
}

// Read sets a cache as the reader for Deployments. Once it is filled, checks are cheap.
func (d *Detector) Read(deployments client.Reader) { d.deployments, d.page = deployments, 0 }

// Check checks once. A supervisor whose Lease is seen for the first time does not count yet, nor does a
// Deployment whose service account has not been reviewed.
func (d *Detector) Check(ctx context.Context) (Finding, error) {
	var o Input
	if err := d.observeDeployments(ctx, &o); err != nil {
		return Finding{}, err
	}
	if err := d.leases.observe(ctx, &o); err != nil {
		return Finding{}, err
	}
	return Evaluate(o), nil
}

// CheckAll repeats the check until every service account has been reviewed, for at most MaxWait. It does not
// wait for Leases.
func (d *Detector) CheckAll(ctx context.Context) (Finding, error) {
	return d.checkUntil(ctx, func() bool { return d.pending+d.leases.pending == 0 })
}

// Wait repeats the check until the result is certain, for at most MaxWait. Every service account must be
// reviewed, and every Lease that counts must be renewed or expired.
func (d *Detector) Wait(ctx context.Context) (Finding, error) {
	return d.checkUntil(ctx, func() bool { return d.pending+d.leases.pending == 0 && len(d.leases.unconfirmed()) == 0 })
}

func (d *Detector) checkUntil(ctx context.Context, sure func() bool) (Finding, error) {
	begun := d.clock.Now()
	var reported []string
	for first := true; ; first = false {
		f, err := d.Check(ctx)
		left := MaxWait - d.clock.Since(begun)
		if err != nil || f.State == Running || sure() || left <= 0 {
			return f, err
		}
		w := WaitState{Leases: d.leases.unconfirmed(), Reviews: d.pending + d.leases.pending, AtMost: left}
		if d.onWait != nil && (first || !slices.Equal(reported, w.Leases)) {
			d.onWait(w)
			reported = w.Leases
		}
		select {
		case <-d.clock.After(min(pollInterval, left)):
		case <-ctx.Done():
			return f, context.Cause(ctx) //nolint:wrapcheck // the caller's own
		}
	}
}

func (d *Detector) observeDeployments(ctx context.Context, o *Input) error {
	found, hidden, err := d.candidates(ctx)
	if err != nil {
		return err
	}
	o.Hidden = append(o.Hidden, hidden...)
	workloads, accounts := found.workloads(d.trusted)
	access, err := d.access.Review(ctx, accounts)
	if err != nil {
		return err
	}
	d.pending = access.Pending
	if access.Hidden != "" {
		d.pending = 0
		o.Hidden = append(o.Hidden, "whether Deployments that look like OLM's have its permissions: "+access.Hidden)
	}
	o.Workloads, o.Omitted = workloads, found.omitted
	o.Classify = access.Classify(d.trusted)
	return nil
}

// candidates lists the Deployments that look like OLM's. It also returns the reason if they may not be read.
func (d *Detector) candidates(ctx context.Context) (*candidates, []string, error) {
	var token string
	found := &candidates{}
	for {
		var page appsv1.DeploymentList
		options := []client.ListOption{client.UnsafeDisableDeepCopy}
		if d.page > 0 {
			options = append(options, client.Limit(d.page), client.Continue(token))
		}
		err := d.deployments.List(ctx, &page, options...)
		switch {
		case apierrors.IsForbidden(err):
			return found, []string{"Deployments, among which OLM's may be: " + err.Error()}, nil
		case err != nil:
			return nil, nil, fmt.Errorf("looking for other lifecycle managers among Deployments: %w", err)
		}
		for i := range page.Items {
			// Other Deployments are not kept, since there may be thousands.
			found.add(&page.Items[i])
		}
		// A cache returns all at once, with a token that it does not accept.
		if token = page.Continue; token == "" || d.page == 0 {
			return found, nil, nil
		}
	}
}
