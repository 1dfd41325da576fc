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
	"github.com/chandlery/chandlery/supervisor/apiserver/refusal"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/deployment"
	"github.com/chandlery/chandlery/supervisor/informer"
)

// catalogObjects reads and writes the objects of catalogs.
type catalogObjects struct {
	// cached reads the labelled objects and all Deployments.
	cached map[schema.GroupVersionKind]client.Reader
	// live reads all objects.
	live   client.Reader
	client client.Client
}

// newObject returns an empty object of a kind.
func newObject(kind schema.GroupVersionKind) client.Object {
	switch kind {
	case deployment.KindDeployment:
		return &appsv1.Deployment{}
	case deployment.KindService:
		return &corev1.Service{}
	case deployment.KindServiceAccount:
		return &corev1.ServiceAccount{}
	case deployment.KindBudget:
		return &policyv1.PodDisruptionBudget{}
	default:
		return &networkingv1.NetworkPolicy{}
	}
}

// get reads an object from the cache, or from the API server if the cache lacks a part of it. It
// returns nil if the object does not exist.
func (c *catalogObjects) get(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (client.Object, error) {
	object := newObject(kind)
	err := informer.Reader{Cached: c.cached[kind], Live: c.live}.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // a missing object is not an error
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kind.Kind, key, err)
	}
	return object, nil
}

// find reads an object regardless of its labels. It returns nil if the object does not exist.
func (c *catalogObjects) find(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (client.Object, error) {
	object, err := c.get(ctx, kind, key)
	if object != nil || err != nil {
		return object, err
	}
	object = newObject(kind)
	if err := c.live.Get(ctx, key, object); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // a missing object is not an error
		}
		return nil, fmt.Errorf("reading %s %s: %w", kind.Kind, key, err)
	}
	return object, nil
}

// isOwnedBy reports whether a CatalogSource owns an object. OLM creates its Services, NetworkPolicies and
// older pods without a controller.
func isOwnedBy(object metav1.Object, source *operatorsv1alpha1.CatalogSource) bool {
	return slices.ContainsFunc(ownerRefs(object), func(ref metav1.OwnerReference) bool { return ref.UID == source.UID })
}

// ownerRefs returns the CatalogSources that own an object; none if another object controls it.
func ownerRefs(object metav1.Object) []metav1.OwnerReference {
	refs := object.GetOwnerReferences()
	if controller := metav1.GetControllerOfNoCopy(object); controller != nil {
		refs = []metav1.OwnerReference{*controller}
	}
	return slices.DeleteFunc(slices.Clone(refs), func(ref metav1.OwnerReference) bool {
		return ref.Kind != operatorsv1alpha1.CatalogSourceKind
	})
}

// applied holds the objects of a catalog after they were applied.
type applied struct {
	// deployment is nil if it could not be applied.
	deployment *appsv1.Deployment
	// service is nil if it could not be applied.
	service *corev1.Service
	// outdated is true if the Deployment has changed since it was observed, and was not written.
	outdated bool
}

// ensure creates and updates all objects of a catalog. It continues after an error.
func (c *catalogObjects) ensure(ctx context.Context, in *deployment.Input, all []*unstructured.Unstructured) (applied, error) {
	var (
		made     applied
		problems []error
	)
	for _, wanted := range all {
		object, err := c.ensureOne(ctx, in, wanted)
		if apierrors.IsConflict(err) && wanted.GroupVersionKind() == deployment.KindDeployment {
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

func (c *catalogObjects) ensureOne(ctx context.Context, in *deployment.Input, wanted *unstructured.Unstructured) (client.Object, error) {
	kind, key := wanted.GroupVersionKind(), client.ObjectKeyFromObject(wanted)
	live, err := c.find(ctx, kind, key)
	if err != nil {
		return nil, err
	}
	if live == nil {
		log.FromContext(ctx).Info("Creating object", "kind", kind.Kind, "object", key.String())
		return c.apply(ctx, wanted, nil)
	}
	switch {
	case !isOwnedBy(live, in.Source):
		return nil, fmt.Errorf("%s %s exists and has another owner; delete it or give the CatalogSource another name", kind.Kind, key)
	case live.GetDeletionTimestamp() != nil:
		return nil, fmt.Errorf("%s %s is being deleted; the supervisor recreates it after the deletion", kind.Kind, key)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return nil, fmt.Errorf("encoding %s %s: %w", kind.Kind, key, err)
	}
	if !deployment.Differs(wanted, &unstructured.Unstructured{Object: content}) {
		return live, nil
	}
	if d, is := live.(*appsv1.Deployment); is && !maps.Equal(d.Spec.Selector.MatchLabels, deployment.ReplicaLabels(in.Source.Name)) {
		return nil, c.orphanReplicas(ctx, d)
	}
	if err := isCurrent(in.Deployment, live); err != nil {
		return nil, err
	}
	return c.change(ctx, wanted, live)
}

// change updates an existing object.
func (c *catalogObjects) change(ctx context.Context, wanted *unstructured.Unstructured, live client.Object) (client.Object, error) {
	kind, key := wanted.GroupVersionKind(), client.ObjectKeyFromObject(wanted)
	log.FromContext(ctx).Info("Changing object", "kind", kind.Kind, "object", key.String())
	object, err := c.apply(ctx, wanted, live)
	if kind == deployment.KindDeployment || !apierrors.IsInvalid(err) {
		return object, err
	}
	if object, err = c.overwrite(ctx, wanted, live.GetUID()); refusal.Immutable(err) {
		return c.replace(ctx, live, wanted, err)
	}
	return object, err
}

// isCurrent returns a conflict if a Deployment has changed since it was observed. The number of
// replicas depends on the observed one, which an autoscaler may have set.
func isCurrent(observed *appsv1.Deployment, live client.Object) error {
	d, is := live.(*appsv1.Deployment)
	if !is || (observed != nil && observed.UID == d.UID && observed.ResourceVersion == d.ResourceVersion) {
		return nil
	}
	return apierrors.NewConflict(appsv1.Resource("deployments"), d.Name, errors.New("it has changed since it was observed"))
}

// apply writes an object. If live is set, the write fails unless the object is still the same one. A
// Deployment must also be unchanged, so that no other write to it is undone.
func (c *catalogObjects) apply(ctx context.Context, wanted *unstructured.Unstructured, live client.Object) (client.Object, error) {
	u := wanted.DeepCopy()
	if live != nil {
		u.SetUID(live.GetUID())
	}
	if d, is := live.(*appsv1.Deployment); is {
		u.SetResourceVersion(d.ResourceVersion)
	}
	err := apply.Apply(ctx, c.client, u, client.ForceOwnership)
	if err != nil {
		if u.GroupVersionKind() == deployment.KindDeployment {
			err = withSourceFields(err)
		}
		return nil, fmt.Errorf("applying %s %s: %w", u.GetKind(), client.ObjectKeyFromObject(u), err)
	}
	object := newObject(u.GroupVersionKind())
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, object); err != nil {
		return nil, fmt.Errorf("decoding %s %s: %w", u.GetKind(), client.ObjectKeyFromObject(u), err)
	}
	return object, nil
}

// overwrite replaces lists as a whole. Applying keeps elements that others added, which may conflict
// with the wanted ones, such as a second port of the same name.
func (c *catalogObjects) overwrite(ctx context.Context, wanted *unstructured.Unstructured, uid types.UID) (client.Object, error) {
	u := wanted.DeepCopy()
	u.SetUID(uid)
	object := newObject(u.GroupVersionKind())
	object.SetNamespace(u.GetNamespace())
	object.SetName(u.GetName())
	if err := apply.Patch(ctx, c.client, object, apply.MergePatch(u.Object)); err != nil {
		return nil, fmt.Errorf("overwriting %s %s: %w", u.GetKind(), client.ObjectKeyFromObject(u), err)
	}
	return object, nil
}

// replace deletes and recreates an object with an immutable field that has another value. It first
// checks with a dry run that the creation is allowed. It is not used for Deployments, which have
// replicas.
func (c *catalogObjects) replace(ctx context.Context, live client.Object, wanted *unstructured.Unstructured, cause error) (client.Object, error) {
	trial := wanted.DeepCopy()
	trial.SetName("")
	trial.SetGenerateName("trial-")
	if err := apply.Create(ctx, c.client, trial, client.DryRunAll); err != nil {
		return nil, fmt.Errorf("%w; it is not deleted, because it could not be recreated: %w", cause, err)
	}
	key := client.ObjectKeyFromObject(wanted)
	log.FromContext(ctx).Info("Replacing object that cannot be changed", "kind", wanted.GetKind(), "object", key.String(), "error", cause.Error())
	err := apply.DeleteIf(ctx, c.client, live, apply.SameUID(live))
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("%w; deleting it to recreate it: %w", cause, err)
	}
	return c.apply(ctx, wanted, nil)
}

// errRecreating reports that a Deployment is to be recreated.
var errRecreating = errors.New("another controller created it; its replicas keep serving")

// orphanReplicas deletes a Deployment with another selector, which is immutable. Its replicas stay.
func (c *catalogObjects) orphanReplicas(ctx context.Context, d *appsv1.Deployment) error {
	err := apply.DeleteIf(ctx, c.client, d, apply.SameUID(d), client.PropagationPolicy(metav1.DeletePropagationOrphan))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Deployment %s of another make: %w", client.ObjectKeyFromObject(d), err)
	}
	return fmt.Errorf("recreating Deployment %s: %w", client.ObjectKeyFromObject(d), errRecreating)
}

// prune deletes the objects of a CatalogSource that are not wanted.
func (c *catalogObjects) prune(ctx context.Context, source *operatorsv1alpha1.CatalogSource, all []*unstructured.Unstructured) error {
	wanted := map[deployment.Part]bool{}
	for _, u := range all {
		wanted[deployment.Part{Kind: u.GroupVersionKind(), Name: u.GetName()}] = true
	}
	for _, p := range deployment.Parts(source) {
		if wanted[p] {
			continue
		}
		object, err := c.get(ctx, p.Kind, client.ObjectKey{Namespace: source.Namespace, Name: p.Name})
		if err != nil {
			return err
		}
		if object == nil || !isOwnedBy(object, source) || object.GetDeletionTimestamp() != nil {
			continue
		}
		if err := c.remove(ctx, p.Kind.Kind, object); err != nil {
			return err
		}
	}
	return nil
}

func (c *catalogObjects) remove(ctx context.Context, kind string, object client.Object) error {
	log.FromContext(ctx).Info("Deleting object", "kind", kind, "object", client.ObjectKeyFromObject(object).String())
	err := apply.DeleteIf(ctx, c.client, object, apply.SameUID(object), client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting %s %s: %w", kind, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// cleanup is what to delete for a pod.
type cleanup int

const (
	keepPod cleanup = iota
	deletePod
	// deleteSet deletes the ReplicaSet of the pod, which would otherwise replace it.
	deleteSet
)

// cleanupOf returns what to delete for a pod of a catalog. replaced is true if the supervisor's
// replicas serve. Only then are the pods of other managers deleted.
func cleanupOf(pod *corev1.Pod, source *operatorsv1alpha1.CatalogSource, replaced bool) cleanup {
	ended := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	owner := metav1.GetControllerOf(pod)
	switch {
	case pod.DeletionTimestamp != nil:
		return keepPod
	case deployment.IsReplica(pod):
		if ended {
			return deletePod
		}
		return keepPod
	case isOwnedBy(pod, source):
		if ended || replaced || pod.Labels[api.LabelUpdate] != "" {
			return deletePod
		}
		return keepPod
	case owner != nil && owner.Kind == "ReplicaSet" && replaced:
		return deleteSet
	default:
		return keepPod
	}
}

// deleteObsolete deletes ended and replaced pods.
func (c *catalogObjects) deleteObsolete(ctx context.Context, source *operatorsv1alpha1.CatalogSource, pods []*corev1.Pod, replaced bool) error {
	for _, pod := range pods {
		switch cleanupOf(pod, source, replaced) {
		case deletePod:
			if err := c.remove(ctx, "Pod", pod); err != nil {
				return err
			}
		case deleteSet:
			if err := c.removeSet(ctx, pod); err != nil {
				return err
			}
		case keepPod:
		}
	}
	return nil
}

// removeSet deletes the ReplicaSet of a pod if no Deployment controls it any more.
func (c *catalogObjects) removeSet(ctx context.Context, pod *corev1.Pod) error {
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
