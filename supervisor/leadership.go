package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest"
	"github.com/chandlery/chandlery/supervisor/informer"
	"github.com/chandlery/chandlery/supervisor/migration"
	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

const (
	// managerPollInterval is the interval of the checks for competing managers while the process leads. They read
	// Deployments from the cache, so they are cheap.
	managerPollInterval = 5 * time.Second
	// waitPollInterval is the interval while the process waits for another manager to stop, and takeoverPollInterval
	// if it tries to take over each time, which reads more.
	waitPollInterval     = time.Second
	takeoverPollInterval = 10 * time.Second
	// changePause is the time from a change of another manager's Deployment to the check.
	changePause = 500 * time.Millisecond
)

// managerChecker prevents a supervisor from working beside another lifecycle manager: before it takes the lead, and
// while it leads.
type managerChecker struct {
	client   client.Client
	detector *competing.Detector
	// takeover takes over from a lifecycle manager; nil to wait until it stops.
	takeover *migration.Takeover
	record   *migration.Records
	log      logr.Logger
	waits    *waitReporter
	// cached reads Deployments from a cache, and synced returns an error while that cache is not full.
	cached client.Reader
	synced func(context.Context) error
	// changes has an element after a change of a Deployment that looks like a lifecycle manager's.
	changes chan struct{}
}

// newManagerChecker returns a checker. Its writes bypass the fence: it takes over before the process
// leads, when no other process may work.
func newManagerChecker(o Options, waits *waitReporter) *managerChecker {
	c, log := waits.client, waits.log
	deployments := informer.ReducedLists(c)
	m := &managerChecker{
		client: c,
		detector: competing.NewDetector(competing.Config{
			Client: c, Deployments: deployments, Namespace: o.LeaderElectionNamespace, ManagerNamespaces: o.ManagerNamespaces, Clock: clock.RealClock{},
			OnWait: func(w competing.WaitState) {
				log.Info("Waiting to see whether another lifecycle manager works here before starting",
					"leases", w.Leases, "unreviewedServiceAccounts", w.Reviews, "atMost", w.AtMost.Round(time.Second).String())
			},
		}),
		record: migration.NewRecords(c, o.LeaderElectionNamespace), log: log,
		waits: waits, changes: make(chan struct{}, 1),
	}
	if o.TakeOver {
		m.takeover = &migration.Takeover{Options: migration.Options{
			Config: competing.Config{
				Client: c, Deployments: deployments, Namespace: o.LeaderElectionNamespace, ManagerNamespaces: o.ManagerNamespaces, Clock: clock.RealClock{},
			},
			GlobalCatalogNamespace: o.GlobalCatalogNamespace,
			OnStep:                 func(step string) { log.Info("Taking over", "step", step) },
		}}
	}
	return m
}

// use sets the cache from which Deployments are read when it is full. A cluster may have thousands.
func (m *managerChecker) use(ctx context.Context, c cache.Cache) error {
	m.cached, m.synced = c, cachesSynced(c)
	deployments, err := c.GetInformer(ctx, &appsv1.Deployment{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching Deployments of other lifecycle managers: %w", err)
	}
	changed := func(o any) {
		d, is := o.(*appsv1.Deployment)
		if !is || len(competing.WorkloadsAmong([]appsv1.Deployment{*d})) == 0 {
			return
		}
		select {
		case m.changes <- struct{}{}:
		default:
		}
	}
	_, err = deployments.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: changed, UpdateFunc: func(_, o any) { changed(o) }, DeleteFunc: changed,
	})
	if err != nil {
		return fmt.Errorf("watching Deployments of other lifecycle managers: %w", err)
	}
	return nil
}

// checkBeforeStart looks for other managers until the result is certain, so that the check before leading is quick.
func (m *managerChecker) checkBeforeStart(ctx context.Context) error {
	found, err := m.detector.Wait(ctx)
	if err != nil {
		return err //nolint:wrapcheck // says what was looked for
	}
	for _, hidden := range found.Hidden {
		m.log.Info("Cannot look for other lifecycle managers everywhere", "because", hidden)
	}
	if found.State == competing.Stopped && m.takeover == nil && !m.record.Exists(ctx) {
		m.log.Info("OLM is installed and was scaled to zero without the command takeover, so that handback cannot restore it. To record its state, run takeover before a supervisor works")
	}
	return nil
}

// checkBeforeLeading is called before the process takes the lead. It waits while another manager works, or while a
// takeover or a handback is incomplete.
func (m *managerChecker) checkBeforeLeading(ctx context.Context) error {
	interval := waitPollInterval
	if m.takeover != nil {
		interval = takeoverPollInterval
	}
	var packages packagesWithdrawal
	for {
		err := m.mayLead(ctx)
		if !isRefusal(err) {
			m.waits.end()
			return err
		}
		m.waits.report(ctx, err)
		packages.try(ctx, m)
		if !m.awaitChange(ctx, interval) {
			return context.Cause(ctx) //nolint:wrapcheck // the caller's own
		}
	}
}

// packagesWithdrawal deletes the APIService of PackageManifests, which has no endpoint while processes wait.
type packagesWithdrawal struct{ done, reported bool }

// try deletes it unless that is done. It logs the first failure.
func (w *packagesWithdrawal) try(ctx context.Context, m *managerChecker) {
	if w.done {
		return
	}
	err := packagemanifest.Withdraw(ctx, m.client, podNamespace())
	w.done = err == nil
	if err != nil && !w.reported {
		w.reported = true
		m.log.Error(err, "Cannot delete the APIService of PackageManifests, which has no endpoint while this process waits")
	}
}

// awaitChange waits until a Deployment of another manager changes, or for an interval. It returns false if ctx ends.
func (m *managerChecker) awaitChange(ctx context.Context, interval time.Duration) bool {
	timer := time.NewTimer(interval)
	defer timer.Stop()
	select {
	case <-m.changes:
		timer.Reset(min(interval, changePause))
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// mayLead returns an error if the process may not take the lead now.
func (m *managerChecker) mayLead(ctx context.Context) error {
	if m.takeover != nil {
		if err := m.takeover.Run(ctx); err != nil {
			return fmt.Errorf("taking over because of --takeover: %w", err)
		}
	}
	if m.synced(ctx) == nil {
		m.detector.Read(m.cached)
	}
	found, err := m.detector.Check(ctx)
	if err != nil {
		return err //nolint:wrapcheck // says what was looked for
	}
	if err := m.evaluate(ctx, &found); err != nil {
		return err
	}
	return migration.CheckPods(ctx, m.client, found.Workloads) //nolint:wrapcheck // says everything
}

// evaluate returns an error if another manager works, or if a takeover or a handback is incomplete.
func (m *managerChecker) evaluate(ctx context.Context, found *competing.Finding) error {
	if err := found.Err(); err != nil {
		if beside, ok := errors.AsType[*competing.Error](err); ok {
			beside.Recorded = m.record.Exists(ctx)
		}
		return err //nolint:wrapcheck // says everything
	}
	return m.record.Check(ctx) //nolint:wrapcheck // says everything
}

// isRefusal reports whether an error means that the process must not work here, rather than a temporary failure.
func isRefusal(err error) bool {
	var beside *competing.Error
	return errors.As(err, &beside) || errors.Is(err, migration.ErrRefused)
}

// managerWatcher looks for competing managers while the process leads, and stops the controllers if there is one.
type managerWatcher struct {
	*managerChecker

	mgr       ctrl.Manager
	namespace string
	cancelRun context.CancelCauseFunc
}

// NeedLeaderElection returns true: standbys check before they lead.
func (w *managerWatcher) NeedLeaderElection() bool { return true }

// Start checks until ctx ends.
func (w *managerWatcher) Start(ctx context.Context) error {
	w.detector.Read(w.cached)
	suspects := newSuspectReporter(w.mgr.GetEventRecorder("supervisor"), w.namespace, w.log)
	for w.awaitChange(ctx, managerPollInterval) {
		found, err := w.detector.Check(ctx)
		if err == nil {
			suspects.report(&found)
			err = w.evaluate(ctx, &found)
		}
		switch {
		case err == nil || ctx.Err() != nil:
		case isRefusal(err):
			w.cancelRun(err)
			w.waits.stepDown(ctx, err)
			return nil
		default:
			w.log.Error(err, "Cannot see whether another lifecycle manager works")
		}
	}
	return nil
}

// leaseOf returns the object of Events about the supervisor as a whole.
func leaseOf(namespace string) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		TypeMeta:   metav1.TypeMeta{APIVersion: coordinationv1.SchemeGroupVersion.String(), Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: api.LeaseName},
	}
}
