package catalogsource

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/informer"
	"github.com/chandlery/chandlery/supervisor/refusal"
)

// children reads and writes the objects of catalogs.
type children struct {
	// cached has the objects that bear our labels, and all Deployments.
	cached map[schema.GroupVersionKind]client.Reader
	// live finds those that do not.
	live   client.Reader
	client client.Client
}

// prototypes are empty objects of the kinds that a catalog consists of.
func prototype(kind schema.GroupVersionKind) client.Object {
	switch kind {
	case kindDeployment:
		return &appsv1.Deployment{}
	case kindService:
		return &corev1.Service{}
	case kindServiceAccount:
		return &corev1.ServiceAccount{}
	case kindBudget:
		return &policyv1.PodDisruptionBudget{}
	default:
		return &networkingv1.NetworkPolicy{}
	}
}

// get reads an object from the cache, or at the API server where the cache lacks a part of
// it; nil when it is not there.
func (c *children) get(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (client.Object, error) {
	object := prototype(kind)
	err := informer.Reader{Cached: c.cached[kind], Live: c.live}.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // that it is not there is no error
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kind.Kind, key, err)
	}
	return object, nil
}

// find reads an object that is wanted, whatever its labels are; nil when it is
// not there.
func (c *children) find(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (client.Object, error) {
	object, err := c.get(ctx, kind, key)
	if object != nil || err != nil {
		return object, err
	}
	object = prototype(kind)
	if err := c.live.Get(ctx, key, object); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // that it is not there is no error
		}
		return nil, fmt.Errorf("reading %s %s: %w", kind.Kind, key, err)
	}
	return object, nil
}

// owned says whether an object belongs to a CatalogSource, whoever made it. OLM
// makes its Services, NetworkPolicies and older pods without a controller.
func owned(object metav1.Object, source *operatorsv1alpha1.CatalogSource) bool {
	return slices.ContainsFunc(owners(object), func(ref metav1.OwnerReference) bool { return ref.UID == source.UID })
}

// owners are the CatalogSources that an object belongs to; none when something
// else controls it.
func owners(object metav1.Object) []metav1.OwnerReference {
	refs := object.GetOwnerReferences()
	if controller := metav1.GetControllerOfNoCopy(object); controller != nil {
		refs = []metav1.OwnerReference{*controller}
	}
	return slices.DeleteFunc(slices.Clone(refs), func(ref metav1.OwnerReference) bool {
		return ref.Kind != operatorsv1alpha1.CatalogSourceKind
	})
}

// ensured is what a catalog consists of after it was brought to what is wanted.
type ensured struct {
	deployment *appsv1.Deployment
	// service is nil when the Service is not as it should be.
	service *corev1.Service
	// outdated tells that the Deployment is another one than was observed, and was left
	// alone.
	outdated bool
}

// ensure brings all objects of a catalog to what is wanted. What goes wrong with
// one keeps no other from it.
func (c *children) ensure(ctx context.Context, o *Observation, all []*unstructured.Unstructured) (ensured, error) {
	var (
		made     ensured
		problems []error
	)
	for _, wanted := range all {
		object, err := c.ensureOne(ctx, o, wanted)
		if apierrors.IsConflict(err) && wanted.GroupVersionKind() == kindDeployment {
			made.outdated = true
			continue
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		switch o := object.(type) {
		case *appsv1.Deployment:
			made.deployment = o
		case *corev1.Service:
			made.service = o
		}
	}
	return made, errors.Join(problems...)
}

func (c *children) ensureOne(ctx context.Context, o *Observation, wanted *unstructured.Unstructured) (client.Object, error) {
	kind, key := wanted.GroupVersionKind(), client.ObjectKeyFromObject(wanted)
	live, err := c.find(ctx, kind, key)
	if err != nil {
		return nil, err
	}
	if live == nil {
		log.FromContext(ctx).Info("Making object", "kind", kind.Kind, "object", key.String())
		return c.apply(ctx, wanted, nil)
	}
	switch {
	case !owned(live, o.Source):
		return nil, fmt.Errorf("%s %s is there and has another owner; delete it or give the CatalogSource another name", kind.Kind, key)
	case live.GetDeletionTimestamp() != nil:
		return nil, fmt.Errorf("%s %s is being deleted; it is made again when it is gone", kind.Kind, key)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return nil, fmt.Errorf("encoding %s %s: %w", kind.Kind, key, err)
	}
	if !differs(wanted, &unstructured.Unstructured{Object: content}) {
		return live, nil
	}
	if d, is := live.(*appsv1.Deployment); is && !maps.Equal(d.Spec.Selector.MatchLabels, replicaLabels(o.Source.Name)) {
		return nil, c.release(ctx, d)
	}
	if err := o.isCurrent(live); err != nil {
		return nil, err
	}
	return c.change(ctx, wanted, live)
}

// change brings an object that is there to what is wanted.
func (c *children) change(ctx context.Context, wanted *unstructured.Unstructured, live client.Object) (client.Object, error) {
	kind, key := wanted.GroupVersionKind(), client.ObjectKeyFromObject(wanted)
	log.FromContext(ctx).Info("Changing object", "kind", kind.Kind, "object", key.String())
	object, err := c.apply(ctx, wanted, live)
	if kind == kindDeployment || !apierrors.IsInvalid(err) {
		return object, err
	}
	if object, err = c.overwrite(ctx, wanted, live.GetUID()); refusal.Immutable(err) {
		return c.replace(ctx, live, wanted, err)
	}
	return object, err
}

// isCurrent says whether what is wanted of a Deployment follows from the one that is
// there: its number of replicas may be what an autoscaler gave it.
func (o *Observation) isCurrent(live client.Object) error {
	d, is := live.(*appsv1.Deployment)
	if !is || (o.Deployment != nil && o.Deployment.UID == d.UID && o.Deployment.ResourceVersion == d.ResourceVersion) {
		return nil
	}
	return apierrors.NewConflict(appsv1.Resource("deployments"), d.Name, errors.New("it has changed since it was observed"))
}

// apply writes an object. If one is there, it has to be that one; a Deployment has to
// be as it was, too, or what somebody else wrote to it meanwhile would be undone.
func (c *children) apply(ctx context.Context, wanted *unstructured.Unstructured, live client.Object) (client.Object, error) {
	u := wanted.DeepCopy()
	if live != nil {
		u.SetUID(live.GetUID())
	}
	if d, is := live.(*appsv1.Deployment); is {
		u.SetResourceVersion(d.ResourceVersion)
	}
	err := c.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(api.FieldManager), client.ForceOwnership)
	if err != nil {
		if u.GroupVersionKind() == kindDeployment {
			err = inTerms(err)
		}
		return nil, fmt.Errorf("applying %s %s: %w", u.GetKind(), client.ObjectKeyFromObject(u), err)
	}
	object := prototype(u.GroupVersionKind())
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, object); err != nil {
		return nil, fmt.Errorf("decoding %s %s: %w", u.GetKind(), client.ObjectKeyFromObject(u), err)
	}
	return object, nil
}

// overwrite writes whole lists where applying them leaves what somebody added,
// which may not stand beside ours: a second port of the same name.
func (c *children) overwrite(ctx context.Context, wanted *unstructured.Unstructured, uid types.UID) (client.Object, error) {
	u := wanted.DeepCopy()
	u.SetUID(uid)
	text, err := u.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encoding %s %s: %w", u.GetKind(), client.ObjectKeyFromObject(u), err)
	}
	object := prototype(u.GroupVersionKind())
	object.SetNamespace(u.GetNamespace())
	object.SetName(u.GetName())
	if err := c.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, text), client.FieldOwner(api.FieldManager)); err != nil {
		return nil, fmt.Errorf("overwriting %s %s: %w", u.GetKind(), client.ObjectKeyFromObject(u), err)
	}
	return object, nil
}

// replace deletes an object that somebody gave a value which cannot be taken
// back, and makes it again, if that is sure to be allowed. Only Deployments have
// anything that lives on in them.
func (c *children) replace(ctx context.Context, live client.Object, wanted *unstructured.Unstructured, cause error) (client.Object, error) {
	trial := wanted.DeepCopy()
	trial.SetName("")
	trial.SetGenerateName("trial-")
	if err := c.client.Create(ctx, trial, client.DryRunAll, client.FieldOwner(api.FieldManager)); err != nil {
		return nil, fmt.Errorf("%w; it is not deleted either, for it could not be made again: %w", cause, err)
	}
	uid := live.GetUID()
	key := client.ObjectKeyFromObject(wanted)
	log.FromContext(ctx).Info("Replacing object that cannot be changed", "kind", wanted.GetKind(), "object", key.String(), "error", cause.Error())
	err := c.client.Delete(ctx, live, client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("%w; deleting it to make it again: %w", cause, err)
	}
	return c.apply(ctx, wanted, nil)
}

// errReleased reports that a Deployment is to be recreated.
var errReleased = errors.New("another controller created it; its replicas keep serving")

// release deletes a Deployment whose selector, which cannot be changed, is of
// another make, and leaves its replicas where they are.
func (c *children) release(ctx context.Context, d *appsv1.Deployment) error {
	uid := d.UID
	err := c.client.Delete(ctx, d, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationOrphan))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Deployment %s of another make: %w", client.ObjectKeyFromObject(d), err)
	}
	return fmt.Errorf("making Deployment %s again: %w", client.ObjectKeyFromObject(d), errReleased)
}

// part names an object that a catalog may once have had.
type part struct {
	kind schema.GroupVersionKind
	name string
}

// parts are all objects that a catalog may have had, in whatever version and
// form.
func parts(source *operatorsv1alpha1.CatalogSource) []part {
	other := *source
	other.Spec.SourceType = operatorsv1alpha1.SourceTypeGrpc
	all := []part{
		{kindDeployment, source.Name},
		{kindBudget, source.Name},
		{kindService, source.Name},
		{kindService, catalogs.ServiceName(&other)},
		{kindServiceAccount, source.Name + "-configmap-server"},
		{kindNetworkPolicy, policyName(source)},
		// It was for Jobs that do not run any more: bundles are read in process.
		{kindNetworkPolicy, source.Name + "-unpack-bundles"},
	}
	if !sharesAccount(&other) {
		all = append(all, part{kindServiceAccount, source.Name})
	}
	return all
}

// prune deletes what belongs to a CatalogSource and is not wanted.
func (c *children) prune(ctx context.Context, source *operatorsv1alpha1.CatalogSource, all []*unstructured.Unstructured) error {
	wanted := map[part]bool{}
	for _, u := range all {
		wanted[part{u.GroupVersionKind(), u.GetName()}] = true
	}
	for _, p := range parts(source) {
		if wanted[p] {
			continue
		}
		object, err := c.get(ctx, p.kind, client.ObjectKey{Namespace: source.Namespace, Name: p.name})
		if err != nil {
			return err
		}
		if object == nil || !owned(object, source) || object.GetDeletionTimestamp() != nil {
			continue
		}
		if err := c.remove(ctx, p.kind.Kind, object); err != nil {
			return err
		}
	}
	return nil
}

func (c *children) remove(ctx context.Context, kind string, object client.Object) error {
	uid := object.GetUID()
	log.FromContext(ctx).Info("Deleting object", "kind", kind, "object", client.ObjectKeyFromObject(object).String())
	err := c.client.Delete(ctx, object, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting %s %s: %w", kind, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// fate is what becomes of a pod.
type fate int

const (
	stays fate = iota
	goes
	// goesWithSet is a pod whose ReplicaSet would replace it.
	goesWithSet
)

// judge says what becomes of a pod of a catalog. replaced tells that our replicas
// serve: what others left behind may go then, and not before.
func judge(pod *corev1.Pod, source *operatorsv1alpha1.CatalogSource, replaced bool) fate {
	ended := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	owner := metav1.GetControllerOf(pod)
	switch {
	case pod.DeletionTimestamp != nil:
		return stays
	case pod.Labels[labelManagedBy] == managedBy:
		if ended {
			return goes
		}
		return stays
	case owned(pod, source):
		if ended || replaced || pod.Labels[api.LabelUpdate] != "" {
			return goes
		}
		return stays
	case owner != nil && owner.Kind == "ReplicaSet" && replaced:
		return goesWithSet
	default:
		return stays
	}
}

// tidy removes pods that have had their day.
func (c *children) tidy(ctx context.Context, source *operatorsv1alpha1.CatalogSource, pods []*corev1.Pod, replaced bool) error {
	for _, pod := range pods {
		switch judge(pod, source, replaced) {
		case goes:
			if err := c.remove(ctx, "Pod", pod); err != nil {
				return err
			}
		case goesWithSet:
			if err := c.removeSet(ctx, pod); err != nil {
				return err
			}
		case stays:
		}
	}
	return nil
}

// removeSet deletes the ReplicaSet of a pod, if it was left behind by a
// Deployment that a catalog had before.
func (c *children) removeSet(ctx context.Context, pod *corev1.Pod) error {
	set := &appsv1.ReplicaSet{}
	key := client.ObjectKey{Namespace: pod.Namespace, Name: metav1.GetControllerOf(pod).Name}
	if err := c.live.Get(ctx, key, set); err != nil {
		return client.IgnoreNotFound(err)
	}
	if metav1.GetControllerOf(set) != nil || set.DeletionTimestamp != nil {
		return nil
	}
	return c.remove(ctx, "ReplicaSet", set)
}
