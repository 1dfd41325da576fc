package catalogsource

import (
	"context"
	"errors"
	"fmt"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
)

// hosted is the result of running a catalog.
type hosted struct {
	// problem describes the error, and reason is its reason for the status.
	reason  operatorsv1alpha1.ConditionReason
	problem string
	// stated is true if problem states what the condition Progressing states.
	stated bool
	// mistake describes a setting without effect. It does not affect anything else.
	mistake string
	// conditions describe the running replicas and the rollout.
	conditions []metav1.Condition
	// created is the creation time of the Service; zero if there is none.
	created metav1.Time
	// polled is when the registry was last queried; zero if it was not.
	polled time.Time
	// configMap refers to the ConfigMap that is served.
	configMap *operatorsv1alpha1.ConfigMapResourceReference
	// next is when to reconcile again; 0 for at the next change.
	next time.Duration
	// starting is true if no replica serves yet and no problem prevents it.
	starting bool
	// blocked is true if the wanted state cannot run. Running replicas stay unchanged.
	blocked bool
	// failed is true if a retry may solve the problem.
	failed bool
}

func (h *hosted) fail(reason operatorsv1alpha1.ConditionReason, err error) {
	if h.problem == "" {
		h.reason, h.problem = reason, err.Error()
		if reason == operatorsv1alpha1.CatalogSourceRegistryServerError {
			h.problem = "couldn't ensure registry server - " + h.problem
		}
	}
}

// soonest sets next to after if that is earlier.
func (h *hosted) soonest(after time.Duration) {
	if after > 0 && (h.next == 0 || after < h.next) {
		h.next = after
	}
}

// host runs a catalog: it observes, decides, acts and describes the result.
func (r *Reconciler) host(ctx context.Context, source *operatorsv1alpha1.CatalogSource) (hosted, error) {
	const serverError = operatorsv1alpha1.CatalogSourceRegistryServerError
	var h hosted
	key := client.ObjectKeyFromObject(source)
	object, err := r.children.get(ctx, kindDeployment, key)
	if err != nil {
		return h, err
	}
	running, _ := object.(*appsv1.Deployment)
	if running != nil && !owned(running, source) {
		running = nil
	}
	o, err := r.observe(ctx, source, running)
	if err != nil {
		return h, err
	}
	view := replicasOf{source: source, deployment: running, nodes: o.Nodes}
	if view.pods, err = r.podsOf(ctx, source); err != nil {
		return h, err
	}
	reachable := false
	if ready := r.filter(ctx, o, &h) && r.content(ctx, o, &h, &view); ready {
		if reachable, err = r.bringAbout(ctx, o, &view, &h); err != nil {
			h.failed = true
			h.fail(serverError, err)
		}
	}
	if view.pods, err = r.podsOf(ctx, source); err != nil {
		return h, err
	}
	err = r.tend(ctx, o, &view, &h, reachable)
	if err != nil {
		h.failed = true
		h.fail(serverError, err)
	}
	r.describe(&h, &view)
	h.tellAutoscaler(o)
	err = r.serviceTime(ctx, source, &h)
	return h, err
}

// tend deletes obsolete objects, rebalances replicas and checks the pull secrets.
func (r *Reconciler) tend(ctx context.Context, o *Observation, view *replicasOf, h *hosted, reachable bool) error {
	complete := isComplete(view.deployment)
	if err := r.children.tidy(ctx, o.Source, view.pods, reachable && complete); err != nil {
		return err
	}
	if complete {
		if err := r.configMaps.prune(ctx, o.Source, mountedConfigMap(view.deployment), o.ConfigMapSnapshot); err != nil {
			return err
		}
	}
	if err := r.balance(ctx, o, view, h); err != nil {
		return err
	}
	return r.checkSecrets(ctx, o.Source, h)
}

// bringAbout creates and updates the objects of a catalog. reachable reports whether the Service
// exists and selects the replicas.
func (r *Reconciler) bringAbout(ctx context.Context, o *Observation, view *replicasOf, h *hosted) (reachable bool, err error) {
	all, err := Desired(o, r.hosting)
	if err != nil {
		return false, err
	}
	made, err := r.children.ensure(ctx, o, all)
	if made.deployment != nil {
		view.deployment = made.deployment
		r.tellUndone(o, all)
	}
	if made.outdated {
		h.soonest(conflictDelay)
	}
	reachable = made.service != nil
	if err != nil {
		return reachable, err
	}
	return reachable, r.children.prune(ctx, o.Source, all)
}

// describe sets the conditions for the running replicas and the rollout.
func (r *Reconciler) describe(h *hosted, view *replicasOf) {
	available := view.available()
	progressing, t, next := view.progressing(r.clock.Now())
	h.soonest(next)
	if t != nil {
		message := t.message
		if available.Status == metav1.ConditionTrue {
			message += "; what served before serves on"
		}
		h.stated = h.problem == ""
		h.fail(operatorsv1alpha1.CatalogSourceRegistryServerError, errors.New(message))
	}
	if h.blocked || (view.deployment == nil && h.problem != "") {
		progressing.Status, progressing.Reason, progressing.Message = metav1.ConditionFalse, api.ReasonBlocked, h.problem
		h.stated = true
	}
	h.starting = available.Status == metav1.ConditionFalse && progressing.Status == metav1.ConditionTrue && len(view.lost()) == 0
	h.conditions = []metav1.Condition{available, progressing}
}

// serviceTime sets the creation time of the Service.
func (r *Reconciler) serviceTime(ctx context.Context, source *operatorsv1alpha1.CatalogSource, h *hosted) error {
	key := client.ObjectKey{Namespace: source.Namespace, Name: catalogs.ServiceName(source)}
	service, err := r.children.get(ctx, kindService, key)
	if err != nil {
		return err
	}
	if service != nil && owned(service, source) {
		h.created = service.GetCreationTimestamp()
	}
	return nil
}

// content determines the content to serve. It returns false if there is none at the moment. Running
// replicas then stay unchanged.
func (r *Reconciler) content(ctx context.Context, o *Observation, h *hosted, view *replicasOf) bool {
	if isConfigMap(o.Source) {
		found, err := r.configMaps.observe(ctx, o.Source, o.Deployment)
		h.configMap = found.reference
		if err != nil {
			h.failed = true
			h.fail(operatorsv1alpha1.CatalogSourceConfigMapError, err)
		}
		o.ConfigMapVersion, o.ConfigMapSnapshot = found.version, found.snapshot
		return found.version != ""
	}
	return r.pin(ctx, o, h, view)
}

// pin determines the image reference to run, and queries the registry when that is due.
func (r *Reconciler) pin(ctx context.Context, o *Observation, h *hosted, view *replicasOf) bool {
	source, now := o.Source, r.clock.Now()
	running := runningPin(o.Deployment)
	if err := checkImage(source.Spec.Image, running); err != nil {
		h.blocked = true
		h.fail(operatorsv1alpha1.CatalogSourceSpecInvalidError, err)
		return false
	}
	if needsLabel(source, r.hosting) {
		if running != nil && running.CatalogDir == "" {
			running = nil
		}
	} else if image.IsDigest(source.Spec.Image) {
		o.Pin = Pin{Image: source.Spec.Image}
		return true
	}
	answer, retry := r.asker.answer(client.ObjectKeyFromObject(source))
	ask, next := question(source, running, answer, moments{now: now, retry: retry, unpulled: view.unpulled()})
	if ask {
		r.asker.ask(ctx, source.DeepCopy())
	} else if !next.IsZero() {
		h.soonest(next.Sub(now))
	}
	pin, ok := choose(source.Spec.Image, running, answer)
	o.Pin = pin
	view.waiting = "asking the registry what image " + source.Spec.Image + " is"
	if answer != nil && answer.Pin.Image == source.Spec.Image {
		h.polled = answer.Time
		r.refused(h, answer, pin, running)
	}
	return ok
}

// refused reports a registry's error together with its consequence.
func (r *Reconciler) refused(h *hosted, answer *Answer, pin Pin, running *Pin) {
	if answer.Err != nil {
		h.fail(operatorsv1alpha1.CatalogSourceRegistryServerError, fmt.Errorf("%w; %s", answer.Err, answer.consequence(pin, running)))
	}
}

// observe reads the inputs of Desired.
func (r *Reconciler) observe(ctx context.Context, source *operatorsv1alpha1.CatalogSource, running *appsv1.Deployment) (*Observation, error) {
	o := &Observation{Source: source, Deployment: running}
	ns := namespaceMetadata()
	if err := r.reader.Get(ctx, client.ObjectKey{Name: source.Namespace}, ns); err != nil {
		return nil, fmt.Errorf("reading Namespace %s: %w", source.Namespace, err)
	}
	o.NamespaceLabels = ns.Labels
	var nodes corev1.NodeList
	if err := r.objects.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Nodes: %w", err)
	}
	for i := range nodes.Items {
		o.Nodes = append(o.Nodes, &nodes.Items[i])
	}
	err := r.lookForAutoscaler(ctx, o)
	if err != nil {
		return nil, err
	}
	o.Version, err = r.version.get()
	return o, err
}

// podsOf returns all pods with the labels of a catalog.
func (r *Reconciler) podsOf(ctx context.Context, source *operatorsv1alpha1.CatalogSource) ([]*corev1.Pod, error) {
	var list corev1.PodList
	err := r.objects.List(ctx, &list, client.InNamespace(source.Namespace), client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the pods of CatalogSource %s/%s: %w", source.Namespace, source.Name, err)
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		if catalogOfPod(&list.Items[i]) == source.Name {
			pods = append(pods, &list.Items[i])
		}
	}
	return pods, nil
}
