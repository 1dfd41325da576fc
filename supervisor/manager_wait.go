package supervisor

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
)

// waitReporter reports that the process waits until another lifecycle manager has stopped: in the log, in an Event on
// the Lease, and in the probe of readiness.
type waitReporter struct {
	// client is not fenced: the process does not lead.
	client              client.Client
	namespace, identity string
	log                 logr.Logger
	notReady            func(error)
	// since is when the wait began; zero while there is none.
	since time.Time
}

// report reports the reason of a wait. Only the first one of a wait is in the log and in an Event.
func (r *waitReporter) report(ctx context.Context, reason error) {
	r.notReady(reason)
	if !r.since.IsZero() {
		return
	}
	r.since = time.Now()
	r.log.Info("Waiting until this process may lead", "because", reason.Error())
	if err := apply.Create(ctx, r.client, waitingEvent(r.namespace, r.identity, reason.Error(), r.since)); err != nil {
		r.log.Error(err, "Cannot create an Event about the wait")
	}
}

// end reports the end of a wait, if there is one.
func (r *waitReporter) end() {
	if r.since.IsZero() {
		return
	}
	r.log.Info("No other lifecycle manager works any more", "waited", time.Since(r.since).Round(time.Second).String())
	r.since = time.Time{}
	r.notReady(nil)
}

// waitingEvent returns the Event about a process that waits.
func waitingEvent(namespace, identity, note string, now time.Time) *corev1.Event {
	lease := leaseOf(namespace)
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: api.LeaseName + "."},
		EventTime:  metav1.NewMicroTime(now), ReportingController: "supervisor", ReportingInstance: identity,
		Type: corev1.EventTypeWarning, Reason: api.ReasonWaitingToLead, Action: "Wait", Message: api.EventNote(note),
		InvolvedObject: corev1.ObjectReference{APIVersion: lease.APIVersion, Kind: lease.Kind, Namespace: namespace, Name: lease.Name},
	}
}
