package clusterserviceversion

import (
	"context"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"golang.org/x/time/rate"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pace bounds how fast all clean-ups together delete, so that other clients of
// the API server do not feel them.
type pace struct {
	// resources is for custom resources: each deletion makes work for an operator.
	resources *rate.Limiter
	// objects is for what was made here.
	objects *rate.Limiter
}

func newPace() pace {
	const resources, objects = 20, 100
	return pace{resources: rate.NewLimiter(resources, resources), objects: rate.NewLimiter(objects, objects)}
}

// kind is a kind of object that a ClusterServiceVersion leaves behind where no
// owner reference reaches. Such objects are found by their labels.
type kind struct {
	gvk schema.GroupVersionKind
	// resource is what kubectl calls it.
	resource string
	// labels select the objects of a ClusterServiceVersion.
	labels func(*operatorsv1alpha1.ClusterServiceVersion) client.MatchingLabels
	// belongs says which of those selected are meant.
	belongs func(*operatorsv1alpha1.ClusterServiceVersion, *metav1.PartialObjectMetadata) bool
}

// labelledKind is a kind whose objects name their owner by labels. Those in the
// owner's own namespace have an owner reference too, and may be shared with the
// version that takes over: they follow their owners.
func labelledKind(gvk schema.GroupVersionKind, resource string) kind {
	return kind{
		gvk: gvk, resource: resource, labels: ownerLabels,
		belongs: func(csv *operatorsv1alpha1.ClusterServiceVersion, o *metav1.PartialObjectMetadata) bool {
			return o.Namespace != csv.Namespace
		},
	}
}

func webhookConfigurations() []kind {
	group := admissionregistrationv1.SchemeGroupVersion
	return []kind{
		labelledKind(group.WithKind("ValidatingWebhookConfiguration"), "validatingwebhookconfigurations"),
		labelledKind(group.WithKind("MutatingWebhookConfiguration"), "mutatingwebhookconfigurations"),
	}
}

func apiServiceKind() kind {
	return labelledKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}, "apiservices")
}

func bindings() []kind {
	return []kind{
		labelledKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), "clusterrolebindings"),
		labelledKind(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), "rolebindings"),
	}
}

func roles() []kind {
	return []kind{
		labelledKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), "clusterroles"),
		labelledKind(rbacv1.SchemeGroupVersion.WithKind("Role"), "roles"),
	}
}

func copies() kind {
	return kind{
		gvk:      operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.ClusterServiceVersionKind),
		resource: "clusterserviceversions",
		labels: func(csv *operatorsv1alpha1.ClusterServiceVersion) client.MatchingLabels {
			return client.MatchingLabels{operatorsv1alpha1.CopiedLabelKey: csv.Namespace}
		},
		belongs: func(csv *operatorsv1alpha1.ClusterServiceVersion, o *metav1.PartialObjectMetadata) bool {
			return o.Name == csv.Name && o.Namespace != csv.Namespace
		},
	}
}

// sweep returns the work of a stage that deletes the objects of some kinds, one
// kind after the other.
func (r *reconciler) sweep(kinds ...kind) func(context.Context, *cleanup) (remains, error) {
	return func(ctx context.Context, c *cleanup) (remains, error) {
		for _, k := range kinds {
			left, err := r.sweepKind(ctx, c, k)
			if err != nil || !left.none() {
				return left, err
			}
		}
		return remains{}, nil
	}
}

// sweepKind deletes the objects of a kind and returns those that are still there,
// by the API's count and not the cache's.
func (r *reconciler) sweepKind(ctx context.Context, c *cleanup, k kind) (remains, error) {
	found, err := r.find(ctx, c.csv, k)
	if err != nil {
		return remains{}, err
	}
	if found, err = r.handOver(ctx, c, found); err != nil || len(found) == 0 {
		return remains{}, err
	}
	moving, err := r.removeAll(ctx, found)
	if err != nil {
		return remains{}, err
	}
	if moving {
		if found, err = r.find(ctx, c.csv, k); err != nil {
			return remains{}, err
		}
	}
	left := remains{moving: moving}
	for i := range found {
		left.add(&found[i])
		if held(&found[i], c.now) {
			left.blame(&found[i], k.resource)
		}
	}
	return left, nil
}

// removeAll deletes objects as far as the pace allows, and says whether there were any to
// delete.
func (r *reconciler) removeAll(ctx context.Context, found []metav1.PartialObjectMetadata) (moving bool, err error) {
	for i := range found {
		if !found[i].DeletionTimestamp.IsZero() {
			continue
		}
		moving = true
		if !r.pace.objects.Allow() {
			break
		}
		// A conflict says that somebody has written to it, who may have taken it over.
		if err := r.remove(ctx, &found[i]); err != nil && !apierrors.IsConflict(err) {
			return moving, err
		}
	}
	return moving, nil
}

// selectable says whether labels can have the values that they are looked for by. The
// name of a ClusterServiceVersion may be too long for that; nothing was made for such a one,
// and to look for it would be refused.
func selectable(labels client.MatchingLabels) bool {
	for _, value := range labels {
		if len(validation.IsValidLabelValue(value)) > 0 {
			return false
		}
	}
	return true
}

// find returns the objects of a kind that csv leaves behind. A kind that the
// cluster does not have has none.
func (r *reconciler) find(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion, k kind) ([]metav1.PartialObjectMetadata, error) {
	labels := k.labels(csv)
	if !selectable(labels) {
		return nil, nil
	}
	list := metadataList(k.gvk)
	err := r.live.List(ctx, list, labels)
	if apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", k.resource, err)
	}
	var out []metav1.PartialObjectMetadata
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(k.gvk)
		if k.belongs(csv, &list.Items[i]) {
			out = append(out, list.Items[i])
		}
	}
	return out, nil
}

func metadataList(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	gvk.Kind += "List"
	list.SetGroupVersionKind(gvk)
	return list
}
