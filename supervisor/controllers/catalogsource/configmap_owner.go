package catalogsource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/catalogs"
)

// configMapOwners makes each CatalogSource an owner of its ConfigMap, which is then deleted with the
// last owner. The reference neither controls nor blocks.
type configMapOwners struct {
	cached   client.Reader
	live     client.Reader
	client   client.Client
	recorder events.EventRecorder
	clock    clock.PassiveClock
	writes   catalogMap[ownerWrites]
}

const (
	// managedByUser is the value of the label api.LabelManaged of a user's ConfigMap.
	managedByUser = "false"
	// annotationTrue is the value of an annotation that is set.
	annotationTrue = "true"
)

// Limits of writes to a ConfigMap whose reference another client removes again and again.
const (
	ownerPause = time.Minute
	maxRestore = 10
)

// ownerWrites are the writes of one reference.
type ownerWrites struct {
	configMap types.UID
	// content identifies the content that was served at the last write. count is the number of writes
	// since it changed.
	content string
	count   int
	at      time.Time
}

// pause returns how long not to write the reference of a ConfigMap. exhausted is true if no write is
// allowed before the content changes.
func (w ownerWrites) pause(configMap types.UID, now time.Time) (pause time.Duration, exhausted bool) {
	if w.configMap != configMap {
		return 0, false
	}
	// The first write is not a restoration.
	if w.count > maxRestore {
		return ownerPause, true
	}
	return max(0, ownerPause-now.Sub(w.at)), false
}

// owned returns the metadata of a ConfigMap with the label and the reference that it is to have.
// changed is false if it has them.
func owned(found *metav1.PartialObjectMetadata, source *operatorsv1alpha1.CatalogSource) (after *metav1.PartialObjectMetadata, changed bool) {
	after = found.DeepCopy()
	if _, labelled := found.Labels[api.LabelManaged]; !labelled {
		metav1.SetMetaDataLabel(&after.ObjectMeta, api.LabelManaged, managedByUser)
		changed = true
	}
	has := hasOwner(found, source.UID)
	switch keep := source.Annotations[api.AnnotationKeepConfigMap] == annotationTrue; {
	case keep && has:
		return withoutOwner(after, source.UID), true
	case !keep && !has:
		after.OwnerReferences = append(after.OwnerReferences, metav1.OwnerReference{
			APIVersion: operatorsv1alpha1.SchemeGroupVersion.String(), Kind: operatorsv1alpha1.CatalogSourceKind,
			Name: source.Name, UID: source.UID, Controller: new(false), BlockOwnerDeletion: new(false),
		})
		return after, true
	default:
		return after, changed
	}
}

func hasOwner(object metav1.Object, uid types.UID) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == uid })
}

func withoutOwner(found *metav1.PartialObjectMetadata, uid types.UID) *metav1.PartialObjectMetadata {
	after := found.DeepCopy()
	after.OwnerReferences = slices.DeleteFunc(after.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.UID == uid })
	return after
}

// ensure returns the metadata of a catalog's ConfigMap, and adds the label and the reference in one
// write. The ConfigMap is nil if it cannot be read; with another error it can be served. next is when
// to call again; 0 for at the next change.
func (o *configMapOwners) ensure(ctx context.Context, source *operatorsv1alpha1.CatalogSource) (*metav1.PartialObjectMetadata, time.Duration, error) {
	key, found := client.ObjectKey{Namespace: source.Namespace, Name: source.Spec.ConfigMap}, configMapMetadata()
	err := o.cached.Get(ctx, key, found)
	if _, changed := owned(found, source); err == nil && !changed {
		return found, 0, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return nil, 0, fmt.Errorf("reading ConfigMap %s: %w", key, err)
	}
	// The cache lacks ConfigMaps without the label, and may be late.
	found = configMapMetadata()
	if err := o.live.Get(ctx, key, found); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, 0, fmt.Errorf("%w; create ConfigMap %s, which spec.configMap names", err, key)
		}
		return nil, 0, fmt.Errorf("reading ConfigMap %s: %w", key, err)
	}
	after, changed := owned(found, source)
	if !changed {
		return found, 0, nil
	}
	if pause := o.pause(source, found); pause > 0 {
		return found, pause, nil
	}
	if err := o.isCurrent(ctx, source); err != nil {
		return nil, 0, err
	}
	err = apply.Patch(ctx, o.client, after, apply.MergeFromLocked(found))
	switch {
	case apierrors.IsConflict(err):
		return found, apply.ConflictDelay, nil
	case err != nil:
		return found, 0, fmt.Errorf(olmtext.ConfigMapOwnerFailed+"; allow the supervisor to patch ConfigMaps in namespace %s, or set the annotation %s=%s of the CatalogSource and the label %s=%s of the ConfigMap",
			err, source.Namespace, api.AnnotationKeepConfigMap, annotationTrue, api.LabelManaged, managedByUser)
	}
	if hasOwner(after, source.UID) {
		o.wrote(source, after)
	} else {
		o.writes.forget(client.ObjectKeyFromObject(source))
	}
	return after, 0, nil
}

// isCurrent returns an error if the CatalogSource no longer exists. The cache may be late, and the
// garbage collector deletes a ConfigMap whose only owner does not exist.
func (o *configMapOwners) isCurrent(ctx context.Context, source *operatorsv1alpha1.CatalogSource) error {
	live, key := catalogs.NewObject(), client.ObjectKeyFromObject(source)
	if err := o.live.Get(ctx, key, live); err != nil {
		return fmt.Errorf("reading CatalogSource %s: %w", key, err)
	}
	if live.GetUID() != source.UID || live.GetDeletionTimestamp() != nil {
		return fmt.Errorf("CatalogSource %s %w", key, errReplaced)
	}
	return nil
}

var errReplaced = errors.New("is being deleted or has been created again")

// pause returns how long not to write a reference. It emits an Event when it gives up.
func (o *configMapOwners) pause(source *operatorsv1alpha1.CatalogSource, found *metav1.PartialObjectMetadata) time.Duration {
	if source.Annotations[api.AnnotationKeepConfigMap] == annotationTrue {
		return 0
	}
	key := client.ObjectKeyFromObject(source)
	last, _ := o.writes.get(key)
	pause, exhausted := last.pause(found.UID, o.clock.Now())
	if exhausted && last.count == maxRestore+1 {
		last.count++ // One Event is enough.
		o.writes.set(key, last)
		o.recorder.Eventf(reference(source), nil, corev1.EventTypeWarning, "ConfigMapOwnerRemoved", "Host", "%s",
			api.EventNote(fmt.Sprintf("another client removes the owner reference of ConfigMap %s again and again; the supervisor does not restore it until the content changes. To keep the ConfigMap when the CatalogSource is deleted, set the annotation %s=%s of the CatalogSource",
				found.Name, api.AnnotationKeepConfigMap, annotationTrue)))
	}
	return pause
}

func (o *configMapOwners) wrote(source *operatorsv1alpha1.CatalogSource, written *metav1.PartialObjectMetadata) {
	key := client.ObjectKeyFromObject(source)
	last, _ := o.writes.get(key)
	if last.configMap != written.UID {
		last = ownerWrites{configMap: written.UID}
	}
	last.count, last.at = last.count+1, o.clock.Now()
	o.writes.set(key, last)
}

// served records the content that is served. Other content allows further writes.
func (o *configMapOwners) served(source *operatorsv1alpha1.CatalogSource, content string) {
	key := client.ObjectKeyFromObject(source)
	if last, known := o.writes.get(key); known && last.content != content {
		last.content, last.count = content, min(last.count, 1)
		o.writes.set(key, last)
	}
}

// release removes the references to a CatalogSource from all ConfigMaps of users except one.
func (o *configMapOwners) release(ctx context.Context, source *operatorsv1alpha1.CatalogSource, except string) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	// OLM's ConfigMaps of unpacked bundles have owners too, and another value of the label.
	err := o.cached.List(ctx, list, client.InNamespace(source.Namespace), client.MatchingLabels{api.LabelManaged: managedByUser})
	if err != nil {
		return fmt.Errorf("listing the ConfigMaps of CatalogSource %s/%s: %w", source.Namespace, source.Name, err)
	}
	for i := range list.Items {
		one := &list.Items[i]
		if one.Name == except || !hasOwner(one, source.UID) || metav1.IsControlledBy(one, source) {
			continue
		}
		one.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		err := apply.Patch(ctx, o.client, withoutOwner(one, source.UID), apply.MergeFromLocked(one))
		if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("removing the owner reference of ConfigMap %s/%s: %w", one.Namespace, one.Name, err)
		}
		// The supervisor itself removed it, so the next write is no restoration.
		if last, _ := o.writes.get(client.ObjectKeyFromObject(source)); last.configMap == one.UID {
			o.writes.forget(client.ObjectKeyFromObject(source))
		}
	}
	return nil
}
