package catalogsource

import (
	"cmp"
	"context"
	"errors"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/deployment"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/digest"
)

// hostedReconciler runs hosted catalogs.
type hostedReconciler struct {
	observer       *observer
	catalogObjects *catalogObjects
	images         *digest.Resolver
	configMaps     *configMaps
	rebalancer     *rebalancer
	secrets        *secretChecker
	certificates   *certificates
	recorder       events.EventRecorder
	clock          clock.PassiveClock
	config         *Config
}

// reconcile observes a catalog, decides on its content, creates and updates its objects, and returns the
// result.
func (r *hostedReconciler) reconcile(ctx context.Context, source *operatorsv1alpha1.CatalogSource) (reconcileResult, error) {
	o, err := r.observer.observe(ctx, source)
	if err != nil {
		return reconcileResult{}, err
	}
	view := &catalogReplicas{source: source, deployment: o.Deployment, pods: o.pods, nodes: o.Nodes}
	if !catalogs.IsConfigMap(source) {
		view.waiting = "asking the registry for the digest of image " + source.Spec.Image
	}
	content, ready, h := r.content(ctx, view)
	reachable := false
	if ready {
		in := o.Input
		in.Content = content
		made, result := r.apply(ctx, &in, o.autoscalersHidden)
		if made.deployment != nil {
			view.deployment = made.deployment
		}
		reachable, h = made.service != nil, h.merge(result)
	}
	recordWanted(client.ObjectKeyFromObject(source), view.deployment)
	if view.pods, err = r.observer.podsOf(ctx, source); err != nil {
		return h, err
	}
	h = h.merge(r.maintain(ctx, view, content.ConfigMapSnapshot, reachable))
	h = r.describe(h, view).withAutoscaler(&o.Input)
	// If the Deployment could not be written, its replicas have a former version.
	if h.configMap.current && view.deployment != nil && deployment.ConfigMapOf(view.deployment) == content.ConfigMapSnapshot {
		h.configMap.revision, h.configMap.newest = view.servedRevision(), view.newestRevision()
	}
	h.created, err = r.observer.serviceTime(ctx, source)
	return h, err
}

// delete deletes the objects of a catalog that is not hosted any more.
func (r *hostedReconciler) delete(ctx context.Context, source *operatorsv1alpha1.CatalogSource) error {
	r.images.Forget(client.ObjectKeyFromObject(source))
	recordWanted(client.ObjectKeyFromObject(source), nil)
	if err := r.catalogObjects.prune(ctx, source, nil); err != nil {
		return err
	}
	pods, err := r.observer.podsOf(ctx, source)
	if err != nil {
		return err
	}
	if err := r.catalogObjects.deleteObsolete(ctx, source, pods, true); err != nil {
		return err
	}
	if err := r.configMaps.owners.release(ctx, source, ""); err != nil {
		return err
	}
	if err := r.certificates.delete(ctx, source); err != nil {
		return err
	}
	return r.configMaps.prune(ctx, source)
}

// forget drops everything that is cached for a CatalogSource.
func (r *hostedReconciler) forget(key types.NamespacedName) {
	r.images.Forget(key)
	r.configMaps.validated.forget(key)
	r.configMaps.owners.writes.forget(key)
	r.configMaps.selections.forget(key)
	r.rebalancer.moves.forget(key)
	r.secrets.results.forget(key)
	r.certificates.checked.forget(key)
}

// content returns the content to serve. ready is false if there is none at the moment. Running
// replicas then stay unchanged.
func (r *hostedReconciler) content(ctx context.Context, view *catalogReplicas) (content deployment.Content, ready bool, h reconcileResult) {
	content.Selection, h = r.filter(ctx, view.source)
	if h.problem != "" {
		return content, false, h
	}
	if catalogs.IsConfigMap(view.source) {
		found, err := r.configMaps.observe(ctx, view.source, view.deployment)
		h.configMap, h.next = servedConfigMap{reference: found.reference, current: found.current}, found.next
		if len(found.warnings) > 0 {
			h.conditions = append(h.conditions, warningsCondition(view.source, found.warnings))
		}
		if err != nil {
			h.reason, h.problem, h.failed = operatorsv1alpha1.CatalogSourceConfigMapError, err.Error(), true
		}
		content.ConfigMapVersion, content.ConfigMapSnapshot = found.version, found.snapshot
		return content, found.version != "", h
	}
	decision := r.images.Decide(ctx, &digest.Request{
		Source: view.source, Account: catalogs.AccountName(view.source), ReadLabel: deployment.ReadsLabel(view.source, &r.config.Settings),
		Running: deployment.ImageOf(view.deployment), Unpulled: view.pullFailingSince(),
	})
	content.Image = decision.Image
	switch {
	case decision.Invalid:
		h = reconcileResult{reason: operatorsv1alpha1.CatalogSourceSpecInvalidError, problem: decision.Err.Error(), blocked: api.ReasonBlocked}
	case decision.Err != nil:
		h = serverProblem(decision.Err)
		if decision.Refused {
			h.blocked = api.ReasonPolicyRefused
		}
	}
	h.polled, h.next = decision.Polled, decision.Next
	return content, decision.Ready, h
}

// apply creates and updates the objects of a catalog, and deletes the other ones.
func (r *hostedReconciler) apply(ctx context.Context, in *deployment.Input, autoscalersHidden bool) (applied, reconcileResult) {
	var next time.Duration
	if deployment.ServesTLS(in.Source, &r.config.Settings) {
		var err error
		if next, err = r.certificates.ensure(ctx, in.Source); err != nil {
			return applied{}, serverFailure(err)
		}
	}
	all, err := deployment.Desired(in, &r.config.Settings)
	if err != nil {
		return applied{}, serverFailure(err)
	}
	made, err := r.catalogObjects.ensure(ctx, in, all)
	if made.deployment != nil && autoscalersHidden {
		r.reportScaling(in, all)
	}
	if err == nil {
		err = r.catalogObjects.prune(ctx, in.Source, all)
	}
	h := serverFailure(err)
	if made.outdated {
		h.next = apply.ConflictDelay
	}
	return made, h.requeueWithin(next)
}

// reportScaling emits an Event if the controller has reset the number of replicas without permission
// to list autoscalers.
func (r *hostedReconciler) reportScaling(in *deployment.Input, all []*unstructured.Unstructured) {
	for _, wanted := range all {
		if wanted.GroupVersionKind() != deployment.KindDeployment {
			continue
		}
		if undone := in.UndoneScaling(wanted); undone != "" {
			r.recorder.Eventf(reference(in.Source), nil, corev1.EventTypeWarning, "ScalingUndone", "Host", "%s",
				api.EventNote("Deployment "+wanted.GetName()+" was reset "+undone+
					"; if a HorizontalPodAutoscaler scales it, grant the supervisor permission to list horizontalpodautoscalers of API group autoscaling"))
		}
	}
}

// maintain deletes obsolete objects, rebalances replicas and checks the pull secrets. reachable is
// true if the Service selects the replicas.
func (r *hostedReconciler) maintain(ctx context.Context, view *catalogReplicas, configMap string, reachable bool) reconcileResult {
	complete := isComplete(view.deployment)
	if err := r.catalogObjects.deleteObsolete(ctx, view.source, view.pods, reachable && complete); err != nil {
		return serverFailure(err)
	}
	if complete {
		if err := r.prune(ctx, view, configMap); err != nil {
			return serverFailure(err)
		}
	}
	served := ""
	if catalogs.IsConfigMap(view.source) {
		served = view.source.Spec.ConfigMap
	}
	if err := r.configMaps.owners.release(ctx, view.source, served); err != nil {
		return serverFailure(err)
	}
	next, err := r.rebalancer.rebalance(ctx, view)
	if err != nil {
		return serverFailure(err)
	}
	problem, again, err := r.secrets.check(ctx, view.source)
	h := serverFailure(err).requeueWithin(next).requeueWithin(again)
	h.ineffectiveSetting = cmp.Or(problem, deployment.ServeTLSProblem(view.source, &r.config.Settings))
	return h
}

// prune deletes the ConfigMaps and the certificate that the replicas of a catalog do not use.
func (r *hostedReconciler) prune(ctx context.Context, view *catalogReplicas, configMap string) error {
	used := []string{deployment.ConfigMapOf(view.deployment), configMap}
	if deployment.ServesTLS(view.source, &r.config.Settings) {
		used = append(used, catalogs.AuthorityName(view.source))
	} else if err := r.certificates.delete(ctx, view.source); err != nil {
		return err
	}
	return r.configMaps.prune(ctx, view.source, used...)
}

// describe returns a result with the conditions for the running replicas and the rollout.
func (r *hostedReconciler) describe(h reconcileResult, view *catalogReplicas) reconcileResult {
	available := view.available()
	progressing, t, next := view.progressing(r.clock.Now())
	h = h.requeueWithin(next)
	if t != nil {
		message := t.message
		if available.Status == metav1.ConditionTrue {
			message += "; the previous replicas still serve"
		}
		problem := serverProblem(errors.New(message))
		problem.shownInProgressing = true
		h = h.merge(problem)
	}
	if h.blocked != "" || (view.deployment == nil && h.problem != "") {
		progressing.Status, progressing.Reason, progressing.Message = metav1.ConditionFalse, cmp.Or(h.blocked, api.ReasonBlocked), h.problem
		h.shownInProgressing = true
	}
	h.starting = available.Status == metav1.ConditionFalse && progressing.Status == metav1.ConditionTrue && len(view.unreachable()) == 0
	h.conditions = append(h.conditions, available, progressing)
	// The status can show a time after the update only when it has passed.
	if h.configMap.current && r.clock.Since(h.configMap.reference.LastUpdateTime.Time) < 2*time.Second {
		h = h.requeueWithin(time.Second)
	}
	return h
}
