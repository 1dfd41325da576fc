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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// parallel is the number of concurrent requests. After the loss of a node, replicas of many
// catalogs need an action at once.
const parallel = 8

// actTimeout limits one request, so that a hanging one does not delay the others.
const actTimeout = 5 * time.Second

// act executes the actions and records them. It returns true if all of them succeeded. Failed
// actions are decided on again after a back-off.
func (r *Reconciler) act(ctx context.Context, seen *scope, actions []Action) bool {
	r.forget(seen)
	var lock sync.Mutex
	complete := true
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, action := range actions {
		group.Go(func() error {
			err := r.do(ctx, action, seen.pods[action.Replica.UID])
			lock.Lock()
			defer lock.Unlock()
			switch {
			case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
				// Another client was faster. The cache will receive its change.
				log.FromContext(ctx).V(1).Info("Leaving pod alone", "pod", action.Replica.Name, "cause", err.Error())
				r.remember(action, seen)
			case err != nil:
				complete = false
				attempt := r.attempts[action.target()]
				r.attempts[action.target()] = Attempt{Catalog: action.Catalog, Last: seen.Now, Refusals: attempt.Refusals + 1}
				log.FromContext(ctx).Error(err, "Acting on replica failed", "action", action.Verb, "reason", action.Reason,
					"catalogSource", action.Catalog.String(), "pod", action.Replica.Name, "node", action.Replica.Node)
			default:
				r.remember(action, seen)
				r.mark(action, seen)
				r.announce(ctx, action, seen)
			}
			return nil
		})
	}
	_ = group.Wait() // the functions return no error
	return complete
}

// do executes one action. The request contains the UID of the pod, so that a newer pod of the same
// name stays unchanged. A mark also contains the resourceVersion.
func (r *Reconciler) do(ctx context.Context, action Action, pod *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, actTimeout)
	defer cancel()
	var err error
	switch action.Verb {
	case MarkNotReady:
		err = r.setReady(ctx, pod, corev1.ConditionFalse, action)
	case MarkReady:
		err = r.setReady(ctx, pod, corev1.ConditionTrue, action)
	case Delete:
		err = r.client.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
	}
	if err != nil {
		return fmt.Errorf("failover (%s) of pod %s/%s: %w", action.Verb, pod.Namespace, pod.Name, err)
	}
	return nil
}

// setReady writes the pod's Ready condition and no other part of its status.
func (r *Reconciler) setReady(ctx context.Context, pod *corev1.Pod, status corev1.ConditionStatus, action Action) error {
	condition := map[string]any{
		"type": corev1.PodReady, "status": status, "reason": nil, "message": nil,
		"lastTransitionTime": metav1.NewTime(r.clock.Now()),
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
	return r.client.Status().Patch(ctx, target, client.RawPatch(types.StrategicMergePatchType, patch))
}

// remember records a successful action. It blocks the repetition of a deletion for a while, because
// a deleted pod can remain for some time.
func (r *Reconciler) remember(action Action, seen *scope) {
	delete(r.attempts, action.target())
	if action.Verb == Delete {
		r.attempts[action.target()] = Attempt{Catalog: action.Catalog, Last: seen.Now}
	}
}

// mark counts a mark, so that it is not repeated without end.
func (r *Reconciler) mark(action Action, seen *scope) {
	if action.Verb != MarkNotReady {
		return
	}
	mark := r.marks[action.Replica.UID]
	if !mark.Silence.Equal(action.Replica.Since) {
		mark = Mark{Silence: action.Replica.Since}
	}
	mark.Count++
	mark.Last = seen.Now
	r.marks[action.Replica.UID] = mark
}

// forget deletes the records of pods that are gone. It keeps the record of a deletion until the
// replacement pod can be visible.
func (r *Reconciler) forget(seen *scope) {
	maps.DeleteFunc(r.marks, func(uid types.UID, _ Mark) bool { return seen.pods[uid] == nil })
	maps.DeleteFunc(r.attempts, func(target Target, attempt Attempt) bool {
		return seen.pods[target.UID] == nil && seen.Now.Sub(attempt.Last) > replacing
	})
}
