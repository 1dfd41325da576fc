// Package cleanup removes the objects of deleted ClusterServiceVersions that have no owner
// reference.
//
// A clean-up is an ordered list of stages. Each pass begins with the first stage and reads what is
// left, so that it may be interrupted anywhere. Its result states what the clean-up waits for.
package cleanup

import (
	"context"
	"fmt"
	"sync"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/versions"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/rbac/grant"
	"github.com/chandlery/chandlery/supervisor/rbac/impersonate"
)

const (
	// cleanupDelay is the pause between passes while objects are being deleted.
	cleanupDelay = time.Second
	// stalledDelay is the pause between passes without progress.
	stalledDelay = 5 * time.Second
	// stuckDelay is that pause after objects have been stuck for so long that the status asks a
	// user.
	stuckDelay = 20 * time.Second
	// maxDelay is the longest pause. A pass may cost a temporary grant. Pauses therefore grow with
	// the time without progress.
	maxDelay = 5 * time.Minute
	// delayDivisor is the divisor of that time that yields the pause.
	delayDivisor = 4
)

// Cleaner removes the objects of deleted ClusterServiceVersions that have no owner reference.
type Cleaner struct {
	client   client.Client
	live     client.Reader
	crds     client.Reader
	clock    clock.PassiveClock
	hasGroup func(context.Context, string) (bool, error)
	limit    *rate.Limiter // of deletions
	// contentKinds are the kinds of cleanContent.
	contentKinds []schema.GroupKind
	owners       ownerTransfer
	resources    resourceCleaner
	conversions  conversionCleaner
}

// Options are the dependencies of a Cleaner.
type Options struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Live reads past the cache.
	Live client.Reader
	// CRDs has the CustomResourceDefinitions without schemas.
	CRDs client.Reader
	// HasGroup reports whether the API server has an API group.
	HasGroup func(context.Context, string) (bool, error)
	// Accounts act for the service accounts of OperatorGroups.
	Accounts *impersonate.Accounts
	// Grants gives temporary permissions to custom resources. Without one, resources that the supervisor
	// may not delete stay.
	Grants *grant.Granter
	// BundleKinds are the kinds that plans may contain in addition to OLM's.
	BundleKinds plansteps.Kinds
	// Clock is the source of time.
	Clock clock.PassiveClock
}

// New returns a Cleaner. All its clean-ups together delete a bounded number of objects per
// second, so that they do not slow down other clients of the API server.
func New(o Options) *Cleaner {
	const resources, objects = 20, 100 // per second
	return &Cleaner{
		client: o.Client, live: o.Live, crds: o.CRDs, clock: o.Clock, hasGroup: o.HasGroup,
		contentKinds: contentKinds(o.BundleKinds), limit: rate.NewLimiter(objects, objects),
		owners: ownerTransfer{client: o.Client, live: o.Live},
		resources: resourceCleaner{
			client: o.Client, live: o.Live, crds: o.CRDs, accounts: o.Accounts, grants: o.Grants, limit: rate.NewLimiter(resources, resources),
		},
		conversions: conversionCleaner{client: o.Client, live: o.Live, grants: o.Grants},
	}
}

// readOnly saves copies of objects that are not changed.
const readOnly = client.UnsafeDisableDeepCopy

// cleanup is one pass over the objects of a deleted ClusterServiceVersion.
type cleanup struct {
	csv *operatorsv1alpha1.ClusterServiceVersion
	// others are the ClusterServiceVersions of all namespaces, without copies.
	others versions.List
	now    time.Time
	// remaining returns the versions that may take over objects. It reads them once.
	remaining func() (remainingOwners, error)
}

// Progress is the result of one pass of a clean-up.
type Progress struct {
	// Done is true when nothing is left.
	Done bool
	// Kept states why custom resources stay, one entry for each kind.
	Kept []string
	// Report is the state to show in the status; nil when there is none.
	Report *Report
	// After is the time until the next pass; zero after an error.
	After time.Duration
}

// Run makes one pass. Each pass begins with the first stage and reads what is left, so that it may
// be interrupted anywhere.
func (c *Cleaner) Run(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion) (Progress, error) {
	up, err := c.observe(ctx, csv)
	if err != nil {
		return Progress{}, err
	}
	var kept []string
	stages := c.stages()
	for i, s := range stages {
		left, err := s.run(ctx, up)
		kept = append(kept, left.kept...)
		if err == nil && left.isDone() {
			continue
		}
		where := fmt.Sprintf("clean-up, stage %d of %d (%s)", i+1, len(stages), s.name)
		if err != nil {
			return Progress{Report: failing(where, err, up.forceCommand())},
				fmt.Errorf("%s of ClusterServiceVersion %s/%s: %w", where, csv.Namespace, csv.Name, err)
		}
		logf.FromContext(ctx).V(1).Info("Waiting for the deletion of objects", "stage", s.name, "left", left.count)
		return Progress{Report: waitingFor(where, left), After: left.delay(up.unchanged())}, nil
	}
	return Progress{Done: true, Kept: kept}, nil
}

// Exists reports whether a ClusterServiceVersion that is being deleted still exists with its
// finalizer, from the API server. The cache may show a deleted version, and a new one of that name
// may own the labelled objects.
func (c *Cleaner) Exists(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion) (bool, error) {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.ClusterServiceVersionKind))
	err := c.live.Get(ctx, client.ObjectKeyFromObject(csv), live)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("getting ClusterServiceVersion %s/%s before its clean-up: %w", csv.Namespace, csv.Name, err)
	}
	return live.UID == csv.UID && controllerutil.ContainsFinalizer(live, api.FinalizerCleanup), nil
}

func (c *Cleaner) observe(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion) (*cleanup, error) {
	var list operatorsv1alpha1.ClusterServiceVersionList
	if err := c.client.List(ctx, &list, readOnly); err != nil {
		return nil, fmt.Errorf("listing ClusterServiceVersions: %w", err)
	}
	others := versions.Originals(list.Items)
	return &cleanup{csv: csv, others: others, now: c.clock.Now(), remaining: sync.OnceValues(func() (remainingOwners, error) {
		return c.readRemaining(ctx, csv, others)
	})}, nil
}

// replaced reports whether another version of the operator takes over the objects of this one.
// Objects of users must stay then.
func (c *cleanup) replaced() bool {
	if c.csv.Status.Phase == operatorsv1alpha1.CSVPhaseDeleting {
		return true
	}
	return c.others.In(c.csv.Namespace).Successor(c.csv) != nil
}

// unchanged returns how long the status of the clean-up has not changed.
func (c *cleanup) unchanged() time.Duration {
	status := c.csv.Status
	if status.Reason != operatorsv1alpha1.CSVReasonWaitingForCleanupToComplete || status.LastUpdateTime == nil {
		return 0
	}
	return c.now.Sub(status.LastUpdateTime.Time)
}

// skips reports whether a user has decided that custom resources stay.
func (c *cleanup) skips() bool { return c.csv.Annotations[api.AnnotationSkipCleanup] == "true" }

// withdrawn reports whether the version is deleted so that an older one replaces it and keeps its
// custom resources.
func (c *cleanup) withdrawn() bool { return c.csv.Annotations[api.AnnotationWithdrawn] != "" }

// forceCommand returns the command that removes the version although objects of it remain.
func (c *cleanup) forceCommand() string {
	return fmt.Sprintf("as a last resort, %q removes the version and leaves the remaining objects",
		fmt.Sprintf(`kubectl patch csv %s -n %s --type=merge -p '{"metadata":{"finalizers":null}}'`, c.csv.Name, c.csv.Namespace))
}

// skipCommand returns the command that makes the clean-up leave custom resources.
func (c *cleanup) skipCommand() string {
	return fmt.Sprintf("to leave custom resources as they are, run %q", fmt.Sprintf("kubectl annotate csv %s -n %s %s=true",
		c.csv.Name, c.csv.Namespace, api.AnnotationSkipCleanup))
}
