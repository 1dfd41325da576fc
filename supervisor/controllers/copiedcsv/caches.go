package copiedcsv

import (
	"context"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/informer"
)

// Names of cache indexes.
const (
	// indexName finds ClusterServiceVersions and copies by name in all namespaces.
	indexName = "copies/name"
	// indexServesOthers finds the ClusterServiceVersions that are copied. Its only key is "true".
	indexServesOthers = "copies/servesOthers"
	// indexOwner finds copied roles and bindings by the version that they were copied for.
	indexOwner = "copies/owner"
)

// copiesCache is a cache that the manager starts together with its own caches, before their
// readers.
type copiesCache struct {
	cache.Cache
}

// GetCache makes the manager recognize the cache and wait for its sync.
func (c copiesCache) GetCache() cache.Cache { return c.Cache }

// newCache returns the cache of copies. It is separate from the manager's cache, which excludes
// copies: no other controller mistakes them for versions, and their specs take no memory.
func newCache(ctx context.Context, mgr ctrl.Manager) (cache.Cache, error) {
	copied, err := labels.NewRequirement(api.LabelCopiedFrom, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("selecting copies: %w", err)
	}
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient:           mgr.GetHTTPClient(),
		Scheme:               mgr.GetScheme(),
		Mapper:               mgr.GetRESTMapper(),
		DefaultLabelSelector: labels.NewSelector().Add(*copied),
		NewInformer:          informer.New,
		DefaultTransform:     informer.TransformAfter(stripMetadata),
	})
	if err != nil {
		return nil, fmt.Errorf("making the cache of copied ClusterServiceVersions: %w", err)
	}
	if err := c.IndexField(ctx, copyMetadata(), indexName, byName); err != nil {
		return nil, fmt.Errorf("indexing copied ClusterServiceVersions: %w", err)
	}
	if err := mgr.Add(copiesCache{c}); err != nil {
		return nil, fmt.Errorf("adding the cache of copied ClusterServiceVersions: %w", err)
	}
	return c, nil
}

// addIndexes adds indexes to the manager's cache.
func addIndexes(ctx context.Context, mgr ctrl.Manager) error {
	indexer := mgr.GetFieldIndexer()
	if err := indexer.IndexField(ctx, &operatorsv1alpha1.ClusterServiceVersion{}, indexName, byName); err != nil {
		return fmt.Errorf("indexing ClusterServiceVersions: %w", err)
	}
	if err := indexer.IndexField(ctx, &operatorsv1alpha1.ClusterServiceVersion{}, indexServesOthers, byServesOthers); err != nil {
		return fmt.Errorf("indexing ClusterServiceVersions that are copied: %w", err)
	}
	for _, obj := range []client.Object{&rbacv1.Role{}, &rbacv1.RoleBinding{}} {
		if err := indexer.IndexField(ctx, obj, indexOwner, byOwner); err != nil {
			return fmt.Errorf("indexing %T: %w", obj, err)
		}
	}
	return nil
}

func byName(obj client.Object) []string { return []string{obj.GetName()} }

func byServesOthers(obj client.Object) []string {
	if csv, is := obj.(*operatorsv1alpha1.ClusterServiceVersion); is && !isCopied(csv) && servesOthers(csv) {
		return []string{"true"}
	}
	return nil
}

func byOwner(obj client.Object) []string {
	owner, ok := ownerOf(obj)
	if !ok || !isCopied(obj) {
		return nil
	}
	return []string{owner.String()}
}

// stripMetadata keeps only the identity of a copy. The annotations alone contain examples of every provided
// kind, and may be larger than everything else.
func stripMetadata(obj any) (any, error) {
	meta, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return obj, nil
	}
	var kept map[string]string
	if from, ok := meta.Labels[api.LabelCopiedFrom]; ok {
		kept = map[string]string{api.LabelCopiedFrom: from}
	}
	meta.ObjectMeta = metav1.ObjectMeta{
		Namespace:         meta.Namespace,
		Name:              meta.Name,
		UID:               meta.UID,
		ResourceVersion:   meta.ResourceVersion,
		DeletionTimestamp: meta.DeletionTimestamp,
		Labels:            kept,
	}
	return meta, nil
}

// copyMetadata returns an empty object for watching copies as metadata.
func copyMetadata() *metav1.PartialObjectMetadata {
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.ClusterServiceVersionKind))
	return meta
}
