package clusterserviceversion

import (
	"context"
	"errors"
	"fmt"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/api"
)

const (
	// cleanupDelay is the pause between passes while objects are being deleted.
	cleanupDelay = time.Second
	// stalledDelay is the pause between passes without progress.
	stalledDelay = 5 * time.Second
	// stuckDelay is that pause after objects have been stuck for so long that the status asks a
	// user.
	stuckDelay = 20 * time.Second
	// restDelay is the longest pause. A pass may cost a temporary grant. Pauses therefore grow with
	// the time without progress.
	restDelay = 5 * time.Minute
	// restShare is the divisor of that time that yields the pause.
	restShare = 4
)

// cleanup is one pass over the objects of a deleted ClusterServiceVersion.
type cleanup struct {
	csv *operatorsv1alpha1.ClusterServiceVersion
	// others are the ClusterServiceVersions of all namespaces, without copies.
	others csvs
	now    time.Time
	// inheritance is what other versions may take over; nil until the first read.
	inheritance *inheritance
	// left states why custom resources stay, one entry for each kind.
	left []string
}

// leave records that the custom resources of a kind stay although the version requests their
// removal.
func (c *cleanup) leave(crd, why string) {
	c.left = append(c.left, crd+" (as "+why+")")
}

// stage is one step of a clean-up. It finds the remaining objects, deletes some, and returns what
// the clean-up still waits for.
type stage struct {
	name string
	run  func(context.Context, *cleanup) (remains, error)
}

// stages returns the stages in their order. Custom resources come first, while their operator and
// its RBAC exist to remove their finalizers. Then the API server stops calling the operator. Then
// bindings are deleted before their roles, and then the other cluster-scoped objects of the bundle.
// Copies follow, since objects in their namespaces may belong to them. The records of install plans
// come last: the clean-up of custom resources needs them, and each pass begins with it. Objects in
// the version's own namespace, such as certificates and Services, are garbage collected by their
// owner references.
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
		{"records of install plans", removeRecords(r)},
	}
}

// finalize cleans up after a ClusterServiceVersion that is being deleted, and removes its finalizer
// when nothing is left. Each pass begins with the first stage and reads what is left, so that it
// may be interrupted anywhere.
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

// isThere reports whether a ClusterServiceVersion that is being deleted still exists with its
// finalizer, from the API server. The cache may show a deleted version, and a new one of that name
// may own the labelled objects.
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

// replaced reports whether another version of the operator takes over the objects of this one.
// Objects of users must stay then.
func (c *cleanup) replaced() bool {
	if c.csv.Status.Phase == operatorsv1alpha1.CSVPhaseDeleting {
		return true
	}
	return c.others.in(c.csv.Namespace).successor(c.csv) != nil
}

// quiet returns how long the status of the clean-up has not changed.
func (c *cleanup) quiet() time.Duration {
	status := c.csv.Status
	if status.Reason != operatorsv1alpha1.CSVReasonWaitingForCleanupToComplete || status.LastUpdateTime == nil {
		return 0
	}
	return c.now.Sub(status.LastUpdateTime.Time)
}

// in returns the versions of one namespace.
func (c csvs) in(namespace string) csvs {
	var out csvs
	for _, csv := range c {
		if csv.Namespace == namespace {
			out = append(out, csv)
		}
	}
	return out
}

// cleanConversions ends the conversion of custom resources by webhooks of the version. Where that
// would damage objects, it waits for a decision of a user.
func (r *reconciler) cleanConversions(ctx context.Context, c *cleanup) (remains, error) {
	note, err := r.unserve(ctx, c)
	if err != nil || note == "" || c.skips() || c.csv.Annotations[api.AnnotationWithdrawn] == api.WithdrawnToInstall {
		return remains{}, err
	}
	return remains{note: note + "; " + c.wayOut()}, nil
}

// skips reports whether a user has decided that custom resources stay.
func (c *cleanup) skips() bool { return c.csv.Annotations[api.AnnotationSkipCleanup] == "true" }

// withdrawn reports whether the version is deleted so that an older one replaces it and keeps its
// custom resources.
func (c *cleanup) withdrawn() bool { return c.csv.Annotations[api.AnnotationWithdrawn] != "" }

// lastResort returns the command that removes the version although objects of it remain.
func (c *cleanup) lastResort() string {
	return fmt.Sprintf("as a last resort, %q removes the version and leaves what is still there",
		fmt.Sprintf(`kubectl patch csv %s -n %s --type=merge -p '{"metadata":{"finalizers":null}}'`, c.csv.Name, c.csv.Namespace))
}

// wayOut returns the command that makes the clean-up leave custom resources.
func (c *cleanup) wayOut() string {
	return fmt.Sprintf("%q goes on and leaves custom resources as they are", fmt.Sprintf("kubectl annotate csv %s -n %s %s=true",
		c.csv.Name, c.csv.Namespace, api.AnnotationSkipCleanup))
}

// tell writes into the status what the clean-up waits for, if it differs. It does not change the
// phase, which remains the one at the time of the deletion. Progress is written every few seconds.
func (r *reconciler) tell(ctx context.Context, c *cleanup, t telling) error {
	want := cleanupStatus(c.csv.Status, t, c.now)
	if want == nil {
		return nil
	}
	err := r.write(ctx, c.csv, *want, t.cause)
	if err == nil {
		announceCleanup(r.events, c.csv, t)
	}
	return client.IgnoreNotFound(err)
}

// setFinalizer adds or removes the finalizer. It uses an optimistic lock because a merge patch
// replaces the whole list of finalizers.
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
