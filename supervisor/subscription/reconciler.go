package subscription

import (
	"context"
	"errors"
	"fmt"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/event"
	"github.com/chandlery/chandlery/supervisor/plan"
	"github.com/chandlery/chandlery/supervisor/resolver"
)

// retryAfter is how soon a namespace is looked at again in which something
// failed that may pass.
const retryAfter = 5 * time.Second

// catalogStore gives the content of catalogs.
type catalogStore interface {
	State(key types.NamespacedName) (catalogs.State, bool)
	Bundle(ctx context.Context, catalog types.NamespacedName, pkg, channel, name string) (plan.Bundle, error)
}

// Reconciler serves the Subscriptions of one namespace at a time.
type Reconciler struct {
	client   client.Client
	live     client.Reader
	reader   client.Reader
	catalogs catalogStore
	recorder events.EventRecorder
	clock    clock.PassiveClock
	global   string
	memo     resolver.Memo
	library  library
}

// Reconcile observes the namespace that the request names, decides, makes the
// plans that are called for, and writes each Subscription's status.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	o, err := r.observe(ctx, req.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if len(o.subscriptions) == 0 {
		r.memo.Forget(req.Name)
		r.library.keep(req.Name, nil)
		return ctrl.Result{}, nil
	}
	begin := r.clock.Now()
	decisions := r.decide(ctx, o)
	resolutions.Observe(r.clock.Since(begin).Seconds())
	r.learn(ctx, o, decisions)
	for _, d := range decisions {
		o.identify(d)
	}
	plans := r.ensurePlans(ctx, o, decisions)
	r.join(ctx, decisions)
	if err := r.retire(ctx, superseded(o, decisions, plans)); err != nil {
		return ctrl.Result{}, err
	}
	now := metav1.NewTime(r.clock.Now()).Rfc3339Copy()
	var failed []error
	again := false
	for _, d := range decisions {
		log.FromContext(ctx).V(1).Info("Decided", "subscription", d.subscription.Name, "decision", describe(d))
		again = again || passing(d.err)
		// A conflict is no failure: what the others wrote is on its way here.
		if apierrors.IsConflict(d.err) {
			continue
		}
		if err := r.write(ctx, d, derive(o, d, plans[d.subscription.Name], now), now); err != nil {
			failed = append(failed, err)
		}
	}
	if err := errors.Join(failed...); err != nil {
		return ctrl.Result{}, err
	}
	if again {
		return ctrl.Result{RequeueAfter: retryAfter}, nil
	}
	return ctrl.Result{}, nil
}

// decide decides with what is remembered of the namespace. Where nothing is resolved,
// nothing is: the content of a catalog may be gone meanwhile.
func (r *Reconciler) decide(ctx context.Context, o *observation) []*decision {
	if o.groups.problem(o.namespace) != nil {
		r.memo.Forget(o.namespace)
	}
	return decide(ctx, o, r.memo.Resolve)
}

// passing says whether an error may pass without a change that this controller
// would see.
func passing(err error) bool {
	var (
		unsatisfiable *resolver.UnsatisfiableError
		groups        *groupsError
	)
	lasting := errors.As(err, &unsatisfiable) || errors.As(err, &groups) ||
		errors.Is(err, plan.ErrNoInlineManifests) || errors.Is(err, errContentUnknown)
	return err != nil && !lasting
}

// write writes a Subscription's status when it says something new.
func (r *Reconciler) write(ctx context.Context, d *decision, status operatorsv1alpha1.SubscriptionStatus, now metav1.Time) error {
	before := d.subscription
	if !changed(before.Status, status, equality.Semantic.DeepEqual) {
		return nil
	}
	after := before.DeepCopy()
	after.Status = status
	after.Status.LastUpdated = now
	// The list of conditions is replaced as a whole, so the write must not pass
	// when somebody else has changed it meanwhile.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, after, patch); err != nil {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("writing the status of Subscription %s/%s: %w", before.Namespace, before.Name, err)
	}
	r.announce(ctx, d, after)
	return nil
}

// announce makes an Event and a log line of what a person would want to be
// told.
func (r *Reconciler) announce(ctx context.Context, d *decision, after *operatorsv1alpha1.Subscription) {
	before := d.subscription
	log.FromContext(ctx).Info("Wrote status", "subscription", after.Name, "state", after.Status.State,
		"currentCSV", after.Status.CurrentCSV, "installedCSV", after.Status.InstalledCSV)
	for _, c := range after.Status.Conditions {
		bad := c.Type == operatorsv1alpha1.SubscriptionResolutionFailed || c.Type == operatorsv1alpha1.SubscriptionBundleUnpackFailed
		if bad && !before.Status.GetCondition(c.Type).Equals(c) {
			r.recorder.Eventf(after, nil, corev1.EventTypeWarning, string(c.Type), "Resolve", "%s", event.Note(c.Message))
		}
	}
	if d.adopts {
		r.recorder.Eventf(after, nil, corev1.EventTypeNormal, "Adopted", "Resolve", "%s was there already and belongs to this Subscription from now on", after.Status.CurrentCSV)
		return
	}
	if before.Status.InstalledCSV != after.Status.InstalledCSV && after.Status.InstalledCSV != "" {
		r.recorder.Eventf(after, nil, corev1.EventTypeNormal, "Installed", "Install", "%s is installed", after.Status.InstalledCSV)
	}
}
