package failover

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/apply"
)

// parallel is the number of concurrent requests. After the loss of a node, replicas of many
// catalogs need an action at once.
const parallel = 8

// actTimeout limits one request, so that a hanging one does not delay the others.
const actTimeout = 5 * time.Second

// actor executes actions and records them. It is not safe for concurrent use.
type actor struct {
	client   client.Client
	recorder events.EventRecorder
	clock    clock.PassiveClock
	marks    map[types.UID]Mark
	attempts map[Target]Attempt
}

// act executes the actions and records them. It returns true if all of them succeeded. Failed
// actions are decided on again after a back-off.
func (a *actor) act(ctx context.Context, seen *clusterState, actions []Action, now time.Time) bool {
	a.forget(seen, now)
	var lock sync.Mutex
	complete := true
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, action := range actions {
		group.Go(func() error {
			err := a.do(ctx, action, seen.pods[action.Replica.UID])
			lock.Lock()
			defer lock.Unlock()
			switch {
			case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
				// Another client was faster. The cache will receive its change.
				log.FromContext(ctx).V(1).Info("Skipping pod", "pod", action.Replica.Name, "cause", err.Error())
				a.record(action, now)
			case err != nil:
				complete = false
				attempt := a.attempts[action.target()]
				a.attempts[action.target()] = Attempt{Catalog: action.Catalog, Last: now, Refusals: attempt.Refusals + 1}
				log.FromContext(ctx).Error(err, "Acting on replica failed", "action", action.Verb, "reason", action.Reason,
					"catalogSource", action.Catalog.String(), "pod", action.Replica.Name, "node", action.Replica.Node)
			default:
				a.record(action, now)
				a.recordMark(action, now)
				a.report(ctx, action, seen)
			}
			return nil
		})
	}
	_ = group.Wait() // the functions return no error
	return complete
}

// do executes one action. The request contains the UID of the pod, so that a newer pod of the same
// name stays unchanged. A mark also contains the resourceVersion.
func (a *actor) do(ctx context.Context, action Action, pod *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, actTimeout)
	defer cancel()
	var err error
	switch action.Verb {
	case MarkNotReady:
		err = a.setReady(ctx, pod, corev1.ConditionFalse, action)
	case MarkReady:
		err = a.setReady(ctx, pod, corev1.ConditionTrue, action)
	case Delete:
		err = apply.DeleteIf(ctx, a.client, pod, apply.SameUID(pod), client.GracePeriodSeconds(0))
	}
	if err != nil {
		return fmt.Errorf("failover (%s) of pod %s/%s: %w", action.Verb, pod.Namespace, pod.Name, err)
	}
	return nil
}

// setReady writes the pod's Ready condition and no other part of its status.
func (a *actor) setReady(ctx context.Context, pod *corev1.Pod, status corev1.ConditionStatus, action Action) error {
	condition := map[string]any{
		"type": corev1.PodReady, "status": status, "reason": nil, "message": nil,
		"lastTransitionTime": metav1.NewTime(a.clock.Now()),
	}
	if action.Verb == MarkNotReady {
		condition["reason"], condition["message"] = action.Reason, action.Message
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID, "resourceVersion": pod.ResourceVersion},
		"status":   map[string]any{"conditions": []any{condition}},
	})
	if err != nil {
		return fmt.Errorf("encoding the patch: %w", err)
	}
	target := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	return apply.PatchStatus(ctx, a.client, target, client.RawPatch(types.StrategicMergePatchType, patch), apply.UserAgent)
}

// record records a successful action. It blocks the repetition of a deletion for a while, because
// a deleted pod can remain for some time.
func (a *actor) record(action Action, now time.Time) {
	delete(a.attempts, action.target())
	if action.Verb == Delete {
		a.attempts[action.target()] = Attempt{Catalog: action.Catalog, Last: now}
	}
}

// recordMark counts a mark, so that it is not repeated without end.
func (a *actor) recordMark(action Action, now time.Time) {
	if action.Verb != MarkNotReady {
		return
	}
	mark := a.marks[action.Replica.UID]
	if !mark.UnreachableSince.Equal(action.Replica.Since) {
		mark = Mark{UnreachableSince: action.Replica.Since}
	}
	mark.Count++
	mark.Last = now
	a.marks[action.Replica.UID] = mark
}

// forget deletes the records of pods that are gone. It keeps the record of a deletion until the
// replacement pod can be visible.
func (a *actor) forget(seen *clusterState, now time.Time) {
	maps.DeleteFunc(a.marks, func(uid types.UID, _ Mark) bool { return seen.pods[uid] == nil })
	maps.DeleteFunc(a.attempts, func(target Target, attempt Attempt) bool {
		return seen.pods[target.UID] == nil && now.Sub(attempt.Last) > replacementTime
	})
}
