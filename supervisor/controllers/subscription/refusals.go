package subscription

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
)

// Pauses between checks of the obstacles to a return. The controller receives no events about the
// objects that are obstacles. Each check with the same result doubles the pause, since a check
// reads objects and may need a temporary grant.
const (
	lookAgain     = time.Minute
	lookAgainMost = 16 * time.Minute
)

// refusal holds the obstacles to the return of a Subscription.
type refusal struct {
	// wish identifies the requested return.
	wish      string
	obstacles []string
	pause     time.Duration
	until     time.Time
}

// refusals holds the refusals of all Subscriptions.
type refusals struct {
	mu   sync.Mutex
	made map[types.UID]refusal
}

// wish returns a key for the requested return of a Subscription. A change of the pin or of the
// content of the bundle changes the key, and causes a check at once.
func (d *decision) wish() string {
	parts := []string{d.subscription.Annotations[api.AnnotationPin]}
	if d.present.current != nil {
		parts = append(parts, string(d.present.current.UID))
	}
	if older := d.reverts(); older != nil {
		parts = append(parts, older.Bundle)
	}
	for _, identity := range d.identities {
		parts = append(parts, identity.Content)
	}
	return strings.Join(parts, "\n")
}

// look returns the obstacles to the version that a Subscription is pinned to, and when to check
// again; none where it may have it.
func (r *Reconciler) look(ctx context.Context, o *observation, d *decision) (obstacles []string, again time.Time, err error) {
	wish, now := d.wish(), r.clock.Now()
	if d.withdraw != nil || d.reverts() != nil {
		if obstacles, again = r.refusals.known(d.subscription, wish, now); len(obstacles) > 0 {
			return obstacles, again, nil
		}
	}
	if obstacles, err = r.obstacles(ctx, o, d); err != nil {
		return nil, time.Time{}, err
	}
	if len(obstacles) > 0 {
		log.FromContext(ctx).Info("Not going back", "subscription", d.subscription.Name, "to", pinOf(d.subscription), "because", obstacles)
	}
	return obstacles, r.refusals.note(d.subscription, wish, obstacles, now), nil
}

// known returns the obstacles to a wish, until it is time to check again.
func (r *refusals) known(sub *operatorsv1alpha1.Subscription, wish string, now time.Time) (obstacles []string, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, ok := r.made[sub.UID]
	if !ok || last.wish != wish || !now.Before(last.until) {
		return nil, time.Time{}
	}
	return slices.Clone(last.obstacles), last.until
}

// note records the result of a check, and returns when to check again; zero without obstacles.
func (r *refusals) note(sub *operatorsv1alpha1.Subscription, wish string, obstacles []string, now time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Overdue refusals belong to Subscriptions that no longer ask.
	maps.DeleteFunc(r.made, func(_ types.UID, last refusal) bool { return now.Sub(last.until) > lookAgainMost })
	if len(obstacles) == 0 {
		delete(r.made, sub.UID)
		return time.Time{}
	}
	next := refusal{wish: wish, obstacles: slices.Clone(obstacles), pause: lookAgain}
	if last, ok := r.made[sub.UID]; ok && last.wish == wish {
		next.pause = min(2*last.pause, lookAgainMost)
	}
	next.until = now.Add(next.pause)
	if r.made == nil {
		r.made = map[types.UID]refusal{}
	}
	r.made[sub.UID] = next
	return next.until
}
