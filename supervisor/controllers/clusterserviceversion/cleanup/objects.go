package cleanup

import (
	"context"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apiserver/pager"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// kind is a kind of objects of a ClusterServiceVersion that have no owner reference. Labels
// identify such objects.
type kind struct {
	gvk schema.GroupVersionKind
	// resource is the name of the resource for kubectl.
	resource string
	// labels select the objects of a ClusterServiceVersion.
	labels func(*operatorsv1alpha1.ClusterServiceVersion) client.MatchingLabels
	// belongs reports whether a selected object belongs to the ClusterServiceVersion.
	belongs func(*operatorsv1alpha1.ClusterServiceVersion, *metav1.PartialObjectMetadata) bool
}

// labelledKind returns a kind whose objects name their owner by labels. Objects in the owner's
// namespace are excluded: they have an owner reference too, and the next version may share them.
func labelledKind(gvk schema.GroupVersionKind, resource string) kind {
	return kind{
		gvk: gvk, resource: resource, labels: ownership.Labels,
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

// deleteKinds returns the function of a stage that deletes the objects of some kinds, one kind after the
// other.
func (c *Cleaner) deleteKinds(kinds ...kind) func(context.Context, *cleanup) (stageResult, error) {
	return func(ctx context.Context, up *cleanup) (stageResult, error) {
		for _, k := range kinds {
			left, err := c.deleteKind(ctx, up, k)
			if err != nil || !left.isDone() {
				return left, err
			}
		}
		return stageResult{}, nil
	}
}

// deleteKind deletes the objects of a kind and returns the remaining ones, as the API server lists
// them.
func (c *Cleaner) deleteKind(ctx context.Context, up *cleanup, k kind) (stageResult, error) {
	found, err := c.find(ctx, up.csv, k)
	if err != nil {
		return stageResult{}, err
	}
	if found, err = c.transferShared(ctx, up, found); err != nil || len(found) == 0 {
		return stageResult{}, err
	}
	progressed, err := c.removeAll(ctx, found)
	if err != nil {
		return stageResult{}, err
	}
	if progressed {
		if found, err = c.find(ctx, up.csv, k); err != nil {
			return stageResult{}, err
		}
	}
	left := stageResult{progressed: progressed}
	for i := range found {
		left.add(&found[i])
		if isStuck(&found[i], up.now) {
			left.recordStuck(&found[i], k.resource)
		}
	}
	return left, nil
}

// removeAll deletes objects as far as the pace allows, and reports whether there were objects to
// delete.
func (c *Cleaner) removeAll(ctx context.Context, found []metav1.PartialObjectMetadata) (progressed bool, err error) {
	for i := range found {
		if !found[i].DeletionTimestamp.IsZero() {
			continue
		}
		progressed = true
		if !c.limit.Allow() {
			break
		}
		// After a conflict, another version may have taken the object over.
		if err := apply.Delete(ctx, c.client, &found[i]); err != nil && !apierrors.IsConflict(err) {
			return progressed, err
		}
	}
	return progressed, nil
}

// selectable reports whether label values are valid. The name of a ClusterServiceVersion may be too
// long for a label. No objects exist for such a version, and the API server would refuse the
// selector.
func selectable(labels client.MatchingLabels) bool {
	for _, value := range labels {
		if len(validation.IsValidLabelValue(value)) > 0 {
			return false
		}
	}
	return true
}

// find returns the objects of a kind that belong to csv, as cleanupMetadata returns them. It returns
// none for a kind that the cluster lacks.
func (c *Cleaner) find(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion, k kind) ([]metav1.PartialObjectMetadata, error) {
	labels := k.labels(csv)
	if !selectable(labels) {
		return nil, nil
	}
	var out []metav1.PartialObjectMetadata
	newPage := func() *metav1.PartialObjectMetadataList { return metadataList(k.gvk) }
	err := pager.EachPage(ctx, c.live, newPage, func(page *metav1.PartialObjectMetadataList) bool {
		for i := range page.Items {
			if k.belongs(csv, &page.Items[i]) {
				out = append(out, cleanupMetadata(&page.Items[i], k.gvk))
			}
		}
		return true
	}, labels)
	if apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", k.resource, err)
	}
	return out, nil
}

func metadataList(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	gvk.Kind += "List"
	list.SetGroupVersionKind(gvk)
	return list
}

// cleanupMetadata returns a copy of the metadata of an object with only the parts that a clean-up
// reads. A tenant may create many objects with 1.5 MB of metadata and the labels of a version.
func cleanupMetadata(o *metav1.PartialObjectMetadata, gvk schema.GroupVersionKind) metav1.PartialObjectMetadata {
	kept := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion,
		DeletionTimestamp: o.DeletionTimestamp, Finalizers: firstFinalizers(o.Finalizers),
	}}
	kept.SetGroupVersionKind(gvk)
	if o.Namespace == "" {
		// Other versions take over only cluster-scoped objects, by these labels.
		kept.Labels = plansteps.ComponentLabels(o.Labels)
		for _, key := range []string{api.LabelOwner, api.LabelOwnerNamespace} {
			if value, has := o.Labels[key]; has {
				kept.Labels[key] = value
			}
		}
	}
	return kept
}

// maxFinalizers is the number of bytes of an object's finalizers that a clean-up keeps to name them.
const maxFinalizers = 1 << 10

// firstFinalizers returns the first finalizers of an object; at least one if there are any.
func firstFinalizers(all []string) []string {
	end, size := 0, 0
	for end < len(all) && (end == 0 || size+len(all[end]) <= maxFinalizers) {
		size += len(all[end])
		end++
	}
	return slices.Clone(all[:end])
}
