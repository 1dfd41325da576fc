package clusterserviceversion

import (
	"context"
	"errors"
	"fmt"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/api"
)

const (
	// cleanupDelay is the pause between looks while objects are going.
	cleanupDelay = time.Second
	// stalledDelay is the pause between looks when nothing moves any more, which
	// only somebody else can change.
	stalledDelay = 5 * time.Second
	// stuckDelay is that pause when nothing has moved for so long that somebody has to
	// be asked.
	stuckDelay = 20 * time.Second
	// restDelay is the longest pause. A look may cost a right that is lent and given back,
	// so that pauses grow with the time in which nothing moved.
	restDelay = 5 * time.Minute
	// restShare is what part of that time a pause is.
	restShare = 4
)

// cleanup carries one pass over what a ClusterServiceVersion leaves behind.
type cleanup struct {
	csv *operatorsv1alpha1.ClusterServiceVersion
	// others are the ClusterServiceVersions of all namespaces, copies left out.
	others csvs
	now    time.Time
	// heirs are the versions that share objects with this one; nil until they are asked for.
	heirs map[brought]types.NamespacedName
	// left says of each kind of custom resources why they stay.
	left []string
}

// leave notes that the custom resources of a kind stay though the version asks for their
// removal.
func (c *cleanup) leave(crd, why string) {
	c.left = append(c.left, crd+" (as "+why+")")
}

// stage is one step of a clean-up. It looks for what is left to do, does a part
// of it, and returns what there is still to wait for.
type stage struct {
	name string
	run  func(context.Context, *cleanup) (remains, error)
}

// stages are in the order in which they come. Custom resources go first, while
// their operator and its rights are there to let them go; then nothing asks the
// operator any more; then rights are taken away before their definitions, and what else a
// bundle brought that is in no namespace; copies go last, since what was made in the namespaces of their targets may belong to
// them. Everything in the version's own namespace, certificates and Services
// among it, belongs to it by owner references and follows it.
func (r *reconciler) stages() []stage {
	return []stage{
		{"custom resources", r.cleanResources},
		{"webhook configurations", r.sweep(webhookConfigurations()...)},
		{"API services", r.sweep(apiServiceKind())},
		{"conversions", r.cleanConversions},
		{"bindings", r.sweep(bindings()...)},
		{"roles", r.sweep(roles()...)},
		{"other objects of the bundle", r.cleanContent},
		{"copies", r.sweep(copies())},
	}
}

// finalize cleans up after a ClusterServiceVersion that is being deleted and
// lets it go when nothing is left. Each pass starts from the beginning and
// finds what is left to do by looking, so it may be broken off anywhere.
func (r *reconciler) finalize(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(csv, api.FinalizerCleanup) {
		return ctrl.Result{}, nil
	}
	if there, err := r.isThere(ctx, csv); err != nil || !there {
		return ctrl.Result{}, err
	}
	r.gauges.record(csv, Transition{Phase: csv.Status.Phase, Reason: csv.Status.Reason})
	c, err := r.observeCleanup(ctx, csv)
	if err != nil {
		return ctrl.Result{}, err
	}
	stages := r.stages()
	for i, s := range stages {
		left, err := s.run(ctx, c)
		if err == nil && left.none() {
			continue
		}
		where := fmt.Sprintf("clean-up, stage %d of %d (%s)", i+1, len(stages), s.name)
		if err != nil {
			told := r.tell(ctx, c, failing(where, err, c.lastResort()))
			return ctrl.Result{}, errors.Join(fmt.Errorf("%s of ClusterServiceVersion %s/%s: %w", where, csv.Namespace, csv.Name, err), told)
		}
		logf.FromContext(ctx).V(1).Info("Waiting for objects to go", "stage", s.name, "left", left.count)
		return ctrl.Result{RequeueAfter: left.delay(c.quiet())}, r.tell(ctx, c, waitingFor(where, left))
	}
	logf.FromContext(ctx).Info("Cleaned up", "customResourcesLeft", c.left)
	announceLeft(r.events, csv, c.left)
	return ctrl.Result{}, client.IgnoreNotFound(r.setFinalizer(ctx, csv, controllerutil.RemoveFinalizer))
}

// isThere asks the API whether a ClusterServiceVersion that is being deleted still holds
// its name, which it does while it has the finalizer. The cache may show one that has
// been let go, and by then another of that name may own what its labels find.
func (r *reconciler) isThere(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion) (bool, error) {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.ClusterServiceVersionKind))
	err := r.live.Get(ctx, client.ObjectKeyFromObject(csv), live)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("getting ClusterServiceVersion %s/%s before its clean-up: %w", csv.Namespace, csv.Name, err)
	}
	return live.UID == csv.UID && controllerutil.ContainsFinalizer(live, api.FinalizerCleanup), nil
}

func (r *reconciler) observeCleanup(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion) (*cleanup, error) {
	var list operatorsv1alpha1.ClusterServiceVersionList
	if err := r.client.List(ctx, &list, readOnly); err != nil {
		return nil, fmt.Errorf("listing ClusterServiceVersions: %w", err)
	}
	return &cleanup{csv: csv, others: originals(list.Items), now: r.clock.Now()}, nil
}

// replaced reports whether another version of the operator takes over what this
// one leaves, so that nothing must go that users made.
func (c *cleanup) replaced() bool {
	if c.csv.Status.Phase == operatorsv1alpha1.CSVPhaseDeleting {
		return true
	}
	return c.others.in(c.csv.Namespace).successor(c.csv) != nil
}

// quiet is how long nothing has changed about what the status says of the clean-up.
func (c *cleanup) quiet() time.Duration {
	status := c.csv.Status
	if status.Reason != operatorsv1alpha1.CSVReasonWaitingForCleanupToComplete || status.LastUpdateTime == nil {
		return 0
	}
	return c.now.Sub(status.LastUpdateTime.Time)
}

// in returns those of one namespace.
func (c csvs) in(namespace string) csvs {
	var out csvs
	for _, csv := range c {
		if csv.Namespace == namespace {
			out = append(out, csv)
		}
	}
	return out
}

// cleanConversions ends the conversion of custom resources by webhooks that go.
// Where that would damage them it waits for somebody to decide.
func (r *reconciler) cleanConversions(ctx context.Context, c *cleanup) (remains, error) {
	note, err := r.unserve(ctx, c)
	if err != nil || note == "" || c.skips() || c.csv.Annotations[api.AnnotationWithdrawn] == api.WithdrawnToInstall {
		return remains{}, err
	}
	return remains{note: note + "; " + c.wayOut()}, nil
}

// skips reports whether somebody has decided to leave custom resources as they
// are.
func (c *cleanup) skips() bool { return c.csv.Annotations[api.AnnotationSkipCleanup] == "true" }

// withdrawn reports whether the version is deleted because an older one, which goes on
// with its custom resources, is to take its place.
func (c *cleanup) withdrawn() bool { return c.csv.Annotations[api.AnnotationWithdrawn] != "" }

// lastResort is the command by which a version goes though something is left of it.
func (c *cleanup) lastResort() string {
	return fmt.Sprintf("as a last resort, %q removes the version and leaves what is still there",
		fmt.Sprintf(`kubectl patch csv %s -n %s --type=merge -p '{"metadata":{"finalizers":null}}'`, c.csv.Name, c.csv.Namespace))
}

// wayOut is the command by which that is decided.
func (c *cleanup) wayOut() string {
	return fmt.Sprintf("%q goes on and leaves custom resources as they are", fmt.Sprintf("kubectl annotate csv %s -n %s %s=true",
		c.csv.Name, c.csv.Namespace, api.AnnotationSkipCleanup))
}

// tell writes what the clean-up waits for, if it differs. The phase stays as it
// is: where the object stands among the phases says what it was when it was
// deleted. What changes from second to second is written every few.
func (r *reconciler) tell(ctx context.Context, c *cleanup, t telling) error {
	want := cleanupStatus(c.csv.Status, t, c.now)
	if want == nil {
		return nil
	}
	err := r.writeStatus(ctx, c.csv, *want)
	if err == nil {
		announceCleanup(r.events, c.csv, t)
	}
	return client.IgnoreNotFound(err)
}

// setFinalizer adds or removes the finalizer. The optimistic lock is there
// because a merge patch replaces the list of finalizers as a whole.
func (r *reconciler) setFinalizer(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion,
	change func(client.Object, string) bool,
) error {
	changed := csv.DeepCopy()
	if !change(changed, api.FinalizerCleanup) {
		return nil
	}
	patch := client.MergeFromWithOptions(csv, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, changed, patch, client.FieldOwner(api.FieldManager)); err != nil {
		return fmt.Errorf("changing finalizers of ClusterServiceVersion %s/%s: %w", csv.Namespace, csv.Name, err)
	}
	if csv.DeletionTimestamp.IsZero() {
		r.lag.Wrote(changed, r.clock.Now())
	} else {
		r.lag.Forget(csv.UID)
	}
	return nil
}
