package catalogsource

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/deployment"
)

// configMapCopy returns an immutable copy of a ConfigMap's content. Its name includes a hash of the
// content. The copy omits annotations, so it is not larger than the original.
func configMapCopy(source *operatorsv1alpha1.CatalogSource, content *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	text, err := json.Marshal([]any{content.Data, content.BinaryData})
	if err != nil {
		return nil, fmt.Errorf("encoding ConfigMap %s: %w", client.ObjectKeyFromObject(content), err)
	}
	const enough = 6
	sum := sha256.Sum256(text)
	return &corev1.ConfigMap{
		ObjectMeta: deployment.Meta(source, fmt.Sprintf("%s-%x", source.Name, sum[:enough])),
		Data:       content.Data, BinaryData: content.BinaryData, Immutable: new(true),
	}, nil
}

// ensureCopy creates the copy of valid content, unless it exists, and returns its name.
func (c *configMaps) ensureCopy(ctx context.Context, source *operatorsv1alpha1.CatalogSource, content *corev1.ConfigMap) (named string, err error) {
	made, err := configMapCopy(source, content)
	if err != nil {
		return "", err
	}
	key := client.ObjectKeyFromObject(made)
	err = apply.Create(ctx, c.client, made)
	switch {
	case err == nil:
		log.FromContext(ctx).Info("Copied ConfigMap", "configMap", client.ObjectKeyFromObject(content).String(), "copy", key.String())
		return key.Name, nil
	case !apierrors.IsAlreadyExists(err):
		return "", fmt.Errorf("copying ConfigMap %s to %s: %w", client.ObjectKeyFromObject(content), key, err)
	}
	there := configMapMetadata()
	if err := c.live.Get(ctx, key, there); err != nil {
		return "", fmt.Errorf("reading ConfigMap %s: %w", key, err)
	}
	if !isOwnedBy(there, source) || there.DeletionTimestamp != nil {
		return "", fmt.Errorf("ConfigMap %s, a copy of %s, has another owner or is being deleted; delete it", key, client.ObjectKeyFromObject(content))
	}
	return key.Name, nil
}

// hasCopy reports whether the cache contains a copy.
func (c *configMaps) hasCopy(ctx context.Context, source *operatorsv1alpha1.CatalogSource, named string) (bool, error) {
	key, there := client.ObjectKey{Namespace: source.Namespace, Name: named}, configMapMetadata()
	if err := c.cached.Get(ctx, key, there); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, fmt.Errorf("reading ConfigMap %s: %w", key, err)
	}
	return isOwnedBy(there, source) && there.DeletionTimestamp == nil, nil
}

// prune deletes the copies of a CatalogSource that are not in used.
func (c *configMaps) prune(ctx context.Context, source *operatorsv1alpha1.CatalogSource, used ...string) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	err := c.cached.List(ctx, list, client.InNamespace(source.Namespace), client.MatchingLabels(deployment.ServiceLabels(source.Name)))
	if err != nil {
		return fmt.Errorf("listing the ConfigMaps of CatalogSource %s/%s: %w", source.Namespace, source.Name, err)
	}
	for i := range list.Items {
		one := &list.Items[i]
		if slices.Contains(used, one.Name) || !metav1.IsControlledBy(one, source) || one.DeletionTimestamp != nil {
			continue
		}
		if err := c.catalogObjects.remove(ctx, "ConfigMap", &corev1.ConfigMap{ObjectMeta: one.ObjectMeta}); err != nil {
			return err
		}
	}
	return nil
}
