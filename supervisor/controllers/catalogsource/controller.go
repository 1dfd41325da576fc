package catalogsource

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"google.golang.org/grpc/connectivity"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/catalogs/dialtls"
)

// stateReader returns the state of a catalog.
type stateReader interface {
	State(key types.NamespacedName) (catalogs.State, bool)
}

// reconciler reconciles one CatalogSource: it runs the catalog if it is hosted, and updates the
// status.
type reconciler struct {
	// reader reads CatalogSources.
	reader  client.Reader
	client  client.Client
	version *serverVersion
	hosted  *hostedReconciler
	// settings checks the settings for image registries.
	settings *imageSettings
	status   *statusWriter
	// failures computes the back-off of each CatalogSource.
	failures workqueue.TypedRateLimiter[types.NamespacedName]
}

// Reconcile creates and updates the objects of a catalog, derives the status and writes it if it
// has changed.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	u := catalogs.NewObject()
	if err := r.reader.Get(ctx, req.NamespacedName, u); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("reading CatalogSource %s: %w", req, err)
	}
	recordExists(req.NamespacedName)
	if u.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, nil
	}
	source, err := catalogs.Decode(u)
	if err != nil {
		return ctrl.Result{}, err
	}
	if again, err := r.resolveTemplate(ctx, u, source); again || err != nil {
		return apply.RequeueConflict(client.IgnoreNotFound(err))
	}
	h, err := r.serve(ctx, source)
	if err != nil {
		return ctrl.Result{}, err
	}
	followUp, err := r.status.update(ctx, u, source, &h)
	if err != nil {
		return apply.RequeueConflict(client.IgnoreNotFound(err))
	}
	if followUp {
		h = h.requeueWithin(apply.ConflictDelay)
	}
	return ctrl.Result{RequeueAfter: r.next(req.NamespacedName, h)}, nil
}

func (r *reconciler) forget(key types.NamespacedName) {
	deleteMetrics(key)
	r.hosted.forget(key)
	r.failures.Forget(key)
}

// next returns when to reconcile again. After failures, the pause grows.
func (r *reconciler) next(key types.NamespacedName, h reconcileResult) time.Duration {
	if h.failed {
		pause := r.failures.When(key)
		h = h.requeueWithin(pause + rand.N(pause/10+1)) //nolint:gosec // nothing depends on it being hard to guess
	} else {
		r.failures.Forget(key)
	}
	if h.next > 0 && h.next < apply.ConflictDelay {
		return apply.ConflictDelay
	}
	return h.next
}

// serve runs a catalog as its spec says, and checks the settings for its images. With an invalid spec,
// it changes nothing.
func (r *reconciler) serve(ctx context.Context, source *operatorsv1alpha1.CatalogSource) (reconcileResult, error) {
	if _, problem := catalogs.SpecProblem(source); problem != "" {
		return reconcileResult{}, nil
	}
	h, err := r.host(ctx, source)
	if err != nil {
		return h, err
	}
	invalid, next := r.settings.check(ctx, source)
	if invalid != nil {
		h.conditions = append(h.conditions, *invalid)
	}
	return h.requeueWithin(next), nil
}

// host runs a hosted catalog, or deletes the objects of one that was hosted before.
func (r *reconciler) host(ctx context.Context, source *operatorsv1alpha1.CatalogSource) (reconcileResult, error) {
	if catalogs.Hosted(source) {
		return r.hosted.reconcile(ctx, source)
	}
	if err := r.hosted.delete(ctx, source); err != nil {
		return serverFailure(fmt.Errorf("stopping the previous catalog: %w", err)), nil
	}
	return reconcileResult{}, nil
}

// resolveTemplate writes the image that the template of a CatalogSource resolves to. again is true
// if it changed the CatalogSource, which triggers another reconciliation.
func (r *reconciler) resolveTemplate(ctx context.Context, u *unstructured.Unstructured, source *operatorsv1alpha1.CatalogSource) (again bool, err error) {
	if source.Annotations[api.AnnotationCatalogImageTemplate] == "" {
		return false, nil
	}
	version, err := r.version.get()
	if err != nil {
		return false, err
	}
	resolved := templateImage(source, version)
	if resolved == "" || resolved == source.Spec.Image {
		return false, nil
	}
	after := u.DeepCopy()
	if err := unstructured.SetNestedField(after.Object, resolved, "spec", "image"); err != nil {
		return false, fmt.Errorf("setting spec.image of CatalogSource %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	if err := apply.Patch(ctx, r.client, after, apply.MergeFromLocked(u), apply.UserAgent); err != nil {
		return false, fmt.Errorf("writing spec.image of CatalogSource %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	log.FromContext(ctx).Info("Resolved image template", "template", source.Annotations[api.AnnotationCatalogImageTemplate], "image", resolved)
	return true, nil
}

// statusWriter writes the status of CatalogSources, and emits Events for its changes.
type statusWriter struct {
	client   client.Client
	store    stateReader
	version  *serverVersion
	recorder events.EventRecorder
	clock    clock.PassiveClock
}

// update writes the status if it has changed. followUp is true if it shows a state of the connection that has already
// passed, so that the current one must follow.
func (w *statusWriter) update(
	ctx context.Context, u *unstructured.Unstructured, source *operatorsv1alpha1.CatalogSource, h *reconcileResult,
) (followUp bool, err error) {
	key := client.ObjectKeyFromObject(source)
	state, followed := w.store.State(key)
	recordReady(key, state.Ready() && state.Address == catalogs.Address(source))
	now := metav1.NewTime(w.clock.Now()).Rfc3339Copy()
	status := deriveStatus(source, state, followed, h, now)
	status.Message = bundles.Clip(status.Message, maxMessage)
	if version, err := w.version.get(); err == nil {
		setTemplateConditions(&status.Conditions, source, version, now)
	}
	if equality.Semantic.DeepEqual(source.Status, status) {
		return false, nil
	}
	if err := w.write(ctx, u, status); err != nil {
		return false, err
	}
	w.emitEvents(u, source.Status, status, h.shownInProgressing)
	connection := status.GRPCConnectionState
	return connection != nil && connection.LastObservedState != state.Connectivity, nil
}

// write replaces the status. A merge patch from the old to the new status also removes fields. The
// patch includes the resourceVersion, so that a former leader cannot overwrite the status of its
// successor.
func (w *statusWriter) write(ctx context.Context, u *unstructured.Unstructured, status operatorsv1alpha1.CatalogSourceStatus) error {
	text, err := json.Marshal(status)
	if err != nil {
		return fmt.Errorf("encoding the status of CatalogSource %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	content := map[string]any{}
	if err := json.Unmarshal(text, &content); err != nil {
		return fmt.Errorf("encoding the status of CatalogSource %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	after := u.DeepCopy()
	after.Object["status"] = content
	if err := apply.PatchStatus(ctx, w.client, after, apply.MergeFromLocked(u), apply.UserAgent); err != nil {
		return fmt.Errorf("writing the status of CatalogSource %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	return nil
}

// emitEvents emits Events for relevant changes of the status. shownInProgressing is that of the result.
func (w *statusWriter) emitEvents(u *unstructured.Unstructured, before, after operatorsv1alpha1.CatalogSourceStatus, shownInProgressing bool) {
	if after.Message != "" && after.Message != before.Message {
		w.recorder.Eventf(u, nil, corev1.EventTypeWarning, string(after.Reason), "Connect", "%s", api.EventNote(after.Message))
	}
	for _, c := range changedConditions(before, after, shownInProgressing) {
		w.recorder.Eventf(u, nil, eventType(c), c.Reason, "Host", "%s", api.EventNote(c.Message))
	}
	if c := newWarnings(before, after); c != nil {
		w.recorder.Eventf(u, nil, corev1.EventTypeWarning, "CatalogWarnings", "Host", "%s", api.EventNote(c.Message))
	}
	if c := newInvalidSettings(before, after); c != nil {
		w.recorder.Eventf(u, nil, corev1.EventTypeWarning, c.Type, "Host", "%s", api.EventNote(c.Message))
	}
	was, is := before.GRPCConnectionState, after.GRPCConnectionState
	if after.Message != "" || is == nil || (was != nil && was.LastObservedState == is.LastObservedState) {
		return
	}
	kind := corev1.EventTypeNormal
	if is.LastObservedState == connectivity.TransientFailure.String() {
		kind = corev1.EventTypeWarning
	}
	w.recorder.Eventf(u, nil, kind, "ConnectionState", "Connect", "%s",
		api.EventNote("connection to "+is.Address+" is "+is.LastObservedState))
}

// newInvalidSettings returns the condition about settings for image registries that have become invalid; nil for none.
func newInvalidSettings(before, after operatorsv1alpha1.CatalogSourceStatus) *metav1.Condition {
	was := apimeta.FindStatusCondition(before.Conditions, api.ConditionImageSettingsInvalid)
	is := apimeta.FindStatusCondition(after.Conditions, api.ConditionImageSettingsInvalid)
	if is == nil || was != nil && was.Message == is.Message {
		return nil
	}
	return is
}

// newWarnings returns the condition with the warnings of new content; nil if there are none.
func newWarnings(before, after operatorsv1alpha1.CatalogSourceStatus) *metav1.Condition {
	was := apimeta.FindStatusCondition(before.Conditions, api.ConditionContentWarnings)
	is := apimeta.FindStatusCondition(after.Conditions, api.ConditionContentWarnings)
	if is == nil {
		return nil
	}
	read, reads := before.ConfigMapResource, after.ConfigMapResource
	if was != nil && was.Message == is.Message && read != nil && reads != nil && read.LastUpdateTime.Equal(&reads.LastUpdateTime) {
		return nil
	}
	return is
}

// changedConditions returns the changed conditions that deserve an Event. It omits the condition
// Progressing if the status message states the same.
func changedConditions(before, after operatorsv1alpha1.CatalogSourceStatus, shownInProgressing bool) []*metav1.Condition {
	var news []*metav1.Condition
	for _, kind := range []string{api.ConditionAvailable, api.ConditionProgressing, api.ConditionConnectionSecured} {
		was, is := apimeta.FindStatusCondition(before.Conditions, kind), apimeta.FindStatusCondition(after.Conditions, kind)
		switch {
		case is == nil, was != nil && was.Reason == is.Reason:
		case is.Reason == api.ReasonAskingRegistry, is.Reason == api.ReasonSpecInvalid:
		case is.Reason == api.ReasonNoReplicaServes && was == nil:
		case kind == api.ConditionConnectionSecured && is.Status != metav1.ConditionFalse && is.Reason != string(dialtls.ClientCertificateExpiring):
		case kind == api.ConditionProgressing && shownInProgressing:
		default:
			news = append(news, is)
		}
	}
	return news
}

// eventType returns Warning for a condition that reports a problem, and Normal otherwise.
func eventType(c *metav1.Condition) string {
	if c.Reason == string(dialtls.ClientCertificateExpiring) {
		return corev1.EventTypeWarning
	}
	if c.Status == metav1.ConditionFalse && c.Reason != api.ReasonRolledOut || c.Reason == api.ReasonReplicaLost {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}
