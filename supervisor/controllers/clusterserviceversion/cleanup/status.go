package cleanup

import (
	"fmt"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
)

const (
	// finalizerTimeout is how long finalizers may block the deletion of an object before the
	// status names it.
	finalizerTimeout = time.Minute
	// namedObjects bounds the objects that the message names.
	namedObjects = 3
	// listedObjects bounds the objects of a kind in the status.
	listedObjects = 10
	// reportInterval is the time between two writes of the progress of a clean-up.
	reportInterval = 5 * time.Second
)

// stageResult states what a stage waits for. The zero value means that the stage is complete.
type stageResult struct {
	// count is the number of remaining objects, as far as it is known.
	count int64
	// first names some of them.
	first []string
	// pending are the objects that finalizers block, by kind.
	pending []operatorsv1alpha1.ResourceList
	// stuck names an object that finalizers have blocked for long, and the remedy.
	stuck string
	// note states other obstacles, and the remedy.
	note string
	// progressed is true when something has been done in this pass.
	progressed bool
	// kept states why custom resources stay although the version requests their removal, one entry
	// for each kind.
	kept []string
}

func (r *stageResult) isDone() bool { return r.count == 0 && r.note == "" }

// delay returns the pause until the next pass, after a time without changes. A decision of a user
// by an annotation causes an event.
func (r *stageResult) delay(unchanged time.Duration) time.Duration {
	shortest := stalledDelay
	switch {
	case r.progressed:
		return cleanupDelay
	case r.stuck != "":
		shortest = stuckDelay
	}
	return min(max(unchanged/delayDivisor, shortest), maxDelay)
}

// add counts a remaining object.
func (r *stageResult) add(o *metav1.PartialObjectMetadata) {
	r.count++
	if len(r.first) < namedObjects {
		r.first = append(r.first, describe(o))
	}
	if o.DeletionTimestamp.IsZero() || len(o.Finalizers) == 0 {
		return
	}
	gvk := o.GroupVersionKind()
	i := slices.IndexFunc(r.pending, func(l operatorsv1alpha1.ResourceList) bool { return l.Group == gvk.Group && l.Kind == gvk.Kind })
	if i < 0 {
		i = len(r.pending)
		r.pending = append(r.pending, operatorsv1alpha1.ResourceList{Group: gvk.Group, Kind: gvk.Kind})
	}
	if list := &r.pending[i]; len(list.Instances) < listedObjects {
		list.Instances = append(list.Instances, operatorsv1alpha1.ResourceInstance{Namespace: o.Namespace, Name: o.Name})
	}
}

// isStuck reports whether finalizers have blocked the deletion of an object for long.
func isStuck(o *metav1.PartialObjectMetadata, now time.Time) bool {
	return !o.DeletionTimestamp.IsZero() && len(o.Finalizers) > 0 && now.Sub(o.DeletionTimestamp.Time) > finalizerTimeout
}

// recordStuck records which finalizers block an object, and the command that shows it. resource is the
// name of its resource for kubectl.
func (r *stageResult) recordStuck(o *metav1.PartialObjectMetadata, resource string) {
	if r.stuck != "" {
		return
	}
	command := "kubectl get " + resource + " " + o.Name
	if o.Namespace != "" {
		command += " -n " + o.Namespace
	}
	r.stuck = fmt.Sprintf("%s has been blocked for more than a minute by the finalizers %s; see %q",
		describe(o), strings.Join(o.Finalizers, ", "), command+" -o yaml")
}

// describe names an object in the manner of kubectl.
func describe(o *metav1.PartialObjectMetadata) string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Report is the state of a clean-up, as the status shows it.
type Report struct {
	Message string
	// Pending are the objects that finalizers block, by kind.
	Pending []operatorsv1alpha1.ResourceList
	// Cause is why the clean-up needs a user; nil when it does not.
	Cause *api.Cause
	// urgent is true for a message that must be written at once.
	urgent bool
}

func waitingFor(where string, left stageResult) *Report {
	parts := []string{"waiting for " + where}
	if left.count > 0 {
		parts[0] += fmt.Sprintf(": %d left, first %s", left.count, strings.Join(left.first, ", "))
	}
	for _, more := range []string{left.stuck, left.note} {
		if more != "" {
			parts = append(parts, more)
		}
	}
	r := &Report{Message: strings.Join(parts, "; "), Pending: left.pending}
	if left.stuck != "" {
		r.Cause = &api.Cause{Reason: api.ReasonFinalizersRemaining}
	}
	return r
}

func failing(where string, err error, skipCommand string) *Report {
	return &Report{Message: where + " failed; retrying: " + err.Error() + "; " + skipCommand, urgent: true}
}

// Status returns the status with the state of a clean-up; nil when there is nothing to write yet. The
// phase stays.
func (r *Report) Status(before operatorsv1alpha1.ClusterServiceVersionStatus, now time.Time) *operatorsv1alpha1.ClusterServiceVersionStatus {
	const reason = operatorsv1alpha1.CSVReasonWaitingForCleanupToComplete
	same := before.Reason == reason && before.Message == r.Message &&
		equality.Semantic.DeepEqual(before.Cleanup.PendingDeletion, r.Pending)
	due := before.Reason != reason || r.urgent || before.LastUpdateTime == nil || now.Sub(before.LastUpdateTime.Time) >= reportInterval
	if same || !due {
		return nil
	}
	scratch := operatorsv1alpha1.ClusterServiceVersion{Status: *before.DeepCopy()}
	at := metav1.NewTime(now.Truncate(time.Second))
	scratch.SetPhase(before.Phase, reason, r.Message, &at)
	scratch.Status.Cleanup.PendingDeletion = r.Pending
	return &scratch.Status
}
