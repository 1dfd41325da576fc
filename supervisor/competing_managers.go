package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/informer"
	"github.com/chandlery/chandlery/supervisor/migration"
	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

// managerPollInterval is the interval of the checks for competing managers. They read Deployments from the cache,
// so they are cheap.
const managerPollInterval = 5 * time.Second

// managerChecker prevents a supervisor from working beside another lifecycle manager: at its start, before it
// takes the lead, and while it leads.
type managerChecker struct {
	detector *competing.Detector
	// takeover takes over from a lifecycle manager; nil to refuse to start if one works.
	takeover *migration.Takeover
	record   *migration.Records
	log      logr.Logger
	// cached reads Deployments from a cache, and synced returns an error while that cache is not full.
	cached client.Reader
	synced func(context.Context) error
}

// newManagerChecker returns the checker of a process. Its writes bypass the fence: it takes over before the process
// leads, when no other process may work.
func newManagerChecker(cfg *rest.Config, o Options, log logr.Logger) (*managerChecker, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	cfg = rest.CopyConfig(cfg)
	if err := informer.ReduceReplies(cfg); err != nil {
		return nil, err //nolint:wrapcheck // says what it builds
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("preparing to look for other lifecycle managers: %w", err)
	}
	deployments := informer.ReducedLists(c)
	m := &managerChecker{
		detector: competing.NewDetector(competing.Config{
			Client: c, Deployments: deployments, Namespace: o.LeaderElectionNamespace, ManagerNamespaces: o.ManagerNamespaces, Clock: clock.RealClock{},
			OnWait: func(w competing.WaitState) {
				log.Info("Waiting to see whether another lifecycle manager works here before starting",
					"leases", w.Leases, "unreviewedServiceAccounts", w.Reviews, "atMost", w.AtMost.Round(time.Second).String())
			},
		}),
		record: migration.NewRecords(c, o.LeaderElectionNamespace), log: log,
	}
	if o.TakeOver {
		m.takeover = &migration.Takeover{Options: migration.Options{
			Config: competing.Config{
				Client: c, Deployments: deployments, Namespace: o.LeaderElectionNamespace, ManagerNamespaces: o.ManagerNamespaces, Clock: clock.RealClock{},
			},
			OnStep: func(step string) { log.Info("Taking over", "step", step) },
		}}
	}
	return m, nil
}

// use sets the cache from which Deployments are read when it is full. A cluster may have thousands.
func (m *managerChecker) use(c cache.Cache) { m.cached, m.synced = c, cachesSynced(c) }

// checkBeforeStart returns an error if the process may not start, not even as a standby.
func (m *managerChecker) checkBeforeStart(ctx context.Context) error {
	found, err := m.detector.Wait(ctx)
	if err != nil {
		return err //nolint:wrapcheck // says what was looked for
	}
	for _, hidden := range found.Hidden {
		m.log.Info("Cannot look for other lifecycle managers everywhere", "because", hidden)
	}
	if found.State == competing.Stopped && m.takeover == nil {
		m.log.Info("OLM is installed and was scaled to zero without the command takeover, so that handback cannot restore it. To record its state, run takeover before a supervisor works")
	}
	return m.errorFor(ctx, &found, m.takeover != nil)
}

// errorFor returns an error if the finding stops the process. takesOver is true for a process that takes over
// before it leads.
func (m *managerChecker) errorFor(ctx context.Context, found *competing.Finding, takesOver bool) error {
	if takesOver && len(found.Supervisors) == 0 {
		return nil
	}
	if err := found.Err(); err != nil {
		return err //nolint:wrapcheck // says everything
	}
	return m.record.Check(ctx) //nolint:wrapcheck // says everything
}

// checkBeforeLeading is called before the process takes the lead.
func (m *managerChecker) checkBeforeLeading(ctx context.Context) error {
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
	return m.errorFor(ctx, &found, false)
}

// isRefusal reports whether an error means that the process must not work here, rather than a temporary failure.
func isRefusal(err error) bool {
	var beside *competing.Error
	return errors.As(err, &beside) || errors.Is(err, migration.ErrRefused)
}

// managerWatcher looks for competing managers while the process leads, and ends the process if there is one.
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
	tick := time.NewTicker(managerPollInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		found, err := w.detector.Check(ctx)
		if err == nil {
			suspects.report(&found)
			err = w.errorFor(ctx, &found, false)
		}
		switch {
		case err == nil || ctx.Err() != nil:
		case isRefusal(err):
			w.stepDown(ctx, err)
			return nil
		default:
			w.log.Error(err, "Cannot see whether another lifecycle manager works")
		}
	}
}

// stepDown ends the process. A new process gets the same refusal until the competing manager is removed.
func (w *managerWatcher) stepDown(ctx context.Context, err error) {
	w.log.Error(err, "Stepping down")
	note := err.Error()
	w.mgr.GetEventRecorder("supervisor").Eventf(leaseOf(w.namespace), nil, corev1.EventTypeWarning, "SteppingDown", "SteppingDown", "%s", note[:min(len(note), maxNote)])
	// Events are sent asynchronously, and the process has time to wait for them.
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
	w.cancelRun(err)
}

// maxNote is the maximum length of a message in an Event, in bytes.
const maxNote = 1000

// leaseOf returns the object of Events about the supervisor as a whole.
func leaseOf(namespace string) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		TypeMeta:   metav1.TypeMeta{APIVersion: coordinationv1.SchemeGroupVersion.String(), Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: api.LeaseName},
	}
}
