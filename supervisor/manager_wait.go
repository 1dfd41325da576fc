package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/informer"
	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

// stepDownTimeout is how long the Events of a leader that steps down may take.
const stepDownTimeout = 2 * time.Second

// waitReporter reports that the process waits until another lifecycle manager has stopped: in the log, in Events on
// the Lease, and in the probe of readiness.
type waitReporter struct {
	// client is not fenced: the process does not lead.
	client              client.Client
	namespace, identity string
	log                 logr.Logger
	notReady            func(error)
	// since is when the wait began; zero while there is none. reported is the last reason in the log.
	since    time.Time
	reported error
}

// newWaitReporter returns the reporter of a process. notReady is called with the reason while the process waits, and
// with nil afterwards.
func newWaitReporter(cfg *rest.Config, o Options, log logr.Logger, notReady func(error)) (*waitReporter, error) {
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
	return &waitReporter{client: c, namespace: o.LeaderElectionNamespace, identity: o.Identity, log: log, notReady: notReady}, nil
}

// stepDown reports that a leader stops because of another lifecycle manager, and begins a wait. It works although ctx
// has ended.
func (r *waitReporter) stepDown(ctx context.Context, reason error) {
	r.log.Error(reason, "Stepping down")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepDownTimeout)
	defer cancel()
	r.createEvent(ctx, api.ReasonSteppingDown, "StepDown", reason)
	r.report(ctx, reason)
}

// report reports the reason of a wait. The log and an Event have the first reason of a wait, and each other one that
// follows.
func (r *waitReporter) report(ctx context.Context, reason error) {
	r.notReady(reason)
	if r.since.IsZero() {
		r.since = time.Now()
	}
	if sameReason(r.reported, reason) {
		return
	}
	r.reported = reason
	r.log.Info("Waiting until this process may lead", "because", reason.Error())
	r.createEvent(ctx, api.ReasonWaitingToLead, "Wait", reason)
}

// sameReason reports whether two reasons of a wait are the same. The number of ready replicas of another manager, for
// example, makes no difference.
func sameReason(a, b error) bool {
	if a == nil {
		return false
	}
	before, isBeside := errors.AsType[*competing.Error](a)
	after, isAlso := errors.AsType[*competing.Error](b)
	if isBeside && isAlso {
		return before.SameManagers(after)
	}
	return a.Error() == b.Error()
}

// createEvent creates an Event on the Lease.
func (r *waitReporter) createEvent(ctx context.Context, reason, action string, why error) {
	if err := apply.Create(ctx, r.client, r.leaseEvent(reason, action, why.Error(), time.Now())); err != nil {
		r.log.Error(err, "Cannot create an Event about another lifecycle manager", "reason", reason)
	}
}

// end reports the end of a wait, if there is one.
func (r *waitReporter) end() {
	if r.since.IsZero() {
		return
	}
	r.log.Info("No other lifecycle manager works any more", "waited", time.Since(r.since).Round(time.Second).String())
	r.since, r.reported = time.Time{}, nil
	r.notReady(nil)
}

// leaseEvent returns an Event of the process on the Lease.
func (r *waitReporter) leaseEvent(reason, action, note string, now time.Time) *corev1.Event {
	lease := leaseOf(r.namespace)
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, GenerateName: api.LeaseName + "."},
		EventTime:  metav1.NewMicroTime(now), ReportingController: "supervisor", ReportingInstance: r.identity,
		Type: corev1.EventTypeWarning, Reason: reason, Action: action, Message: api.EventNote(note),
		InvolvedObject: corev1.ObjectReference{APIVersion: lease.APIVersion, Kind: lease.Kind, Namespace: r.namespace, Name: lease.Name},
	}
}
