package catalogsource

import (
	"context"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/bundles/manifests"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/deployment"
)

// configMaps validates and copies the ConfigMaps that hold catalogs. The cache holds only the
// metadata of labelled ConfigMaps. Each version is read once and validated before a rollout.
// Replicas mount a copy, so that a later replica serves the validated content too.
type configMaps struct {
	cached         client.Reader
	live           client.Reader
	client         client.Client
	catalogObjects *catalogObjects
	clock          clock.PassiveClock
	validated      catalogMap[validatedConfigMap]
	// selections holds the selections that annotations refer to.
	selections catalogMap[parsedSelection]
}

// validatedConfigMap is the result of validating one version of a ConfigMap.
type validatedConfigMap struct {
	configMap types.UID
	version   string
	// snapshot is the name of the copy of a valid version.
	snapshot string
	err      error
}

func configMapMetadata() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	return object
}

// configMapState is the state of a catalog's ConfigMap.
type configMapState struct {
	// version is the version to serve; empty if there is none.
	version string
	// snapshot is the name of the ConfigMap with the content of version.
	snapshot string
	// reference is the reference for the status; nil if there is no ConfigMap.
	reference *operatorsv1alpha1.ConfigMapResourceReference
}

// observe returns the version of the ConfigMap to serve: the newest if it is valid, otherwise the
// running one, if any. The error describes the problem of the newest version.
func (c *configMaps) observe(ctx context.Context, source *operatorsv1alpha1.CatalogSource, running *appsv1.Deployment) (configMapState, error) {
	var state configMapState
	if running != nil {
		state.version, state.snapshot = running.Spec.Template.Labels[api.LabelConfigMapVersion], deployment.ConfigMapOf(running)
	}
	found, err := c.find(ctx, client.ObjectKey{Namespace: source.Namespace, Name: source.Spec.ConfigMap}, "spec.configMap")
	if err != nil {
		return state, servingOn(err, state.version)
	}
	state.reference = c.reference(source, found)
	last, err := c.validate(ctx, source, found)
	if err != nil {
		return state, servingOn(err, state.version)
	}
	state.version, state.snapshot = last.version, last.snapshot
	return state, nil
}

// servingOn adds to err that the last valid content is still served.
func servingOn(err error, version string) error {
	if version == "" {
		return err
	}
	return fmt.Errorf("%w; the last valid content is still served", err)
}

// find reads the metadata of a ConfigMap that a field refers to. It labels the ConfigMap, so that
// the cache includes it from then on.
func (c *configMaps) find(ctx context.Context, key client.ObjectKey, field string) (*metav1.PartialObjectMetadata, error) {
	found := configMapMetadata()
	err := c.cached.Get(ctx, key, found)
	if err == nil {
		return found, nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", key, err)
	}
	if err := c.live.Get(ctx, key, found); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("ConfigMap %s of %s does not exist; create it", key, field)
		}
		return nil, fmt.Errorf("reading ConfigMap %s: %w", key, err)
	}
	if _, labelled := found.Labels[api.LabelManaged]; labelled {
		return found, nil
	}
	// The value "false" marks the ConfigMap as the user's.
	mark := apply.MergePatch{"metadata": map[string]any{"labels": map[string]string{api.LabelManaged: "false"}}}
	if err := apply.Patch(ctx, c.client, found, mark); err != nil {
		return nil, fmt.Errorf("labelling ConfigMap %s, so that its changes are seen: %w", key, err)
	}
	return found, nil
}

// validate validates the content of a ConfigMap and creates a copy of valid content. The error is the
// problem of the content, or of the check.
func (c *configMaps) validate(ctx context.Context, source *operatorsv1alpha1.CatalogSource, found *metav1.PartialObjectMetadata) (validatedConfigMap, error) {
	last, _ := c.validated.get(client.ObjectKeyFromObject(source))
	if last.configMap == found.UID && last.version == found.ResourceVersion {
		found, err := false, last.err
		if err == nil {
			found, err = c.hasCopy(ctx, source, last.snapshot)
		}
		if found || err != nil {
			return last, err
		}
	}
	content, key := &corev1.ConfigMap{}, client.ObjectKeyFromObject(found)
	if err := c.live.Get(ctx, key, content); err != nil {
		return validatedConfigMap{}, fmt.Errorf("reading ConfigMap %s: %w", key, err)
	}
	next := validatedConfigMap{configMap: content.UID, version: content.ResourceVersion, err: check(content)}
	if next.err == nil {
		var err error
		if next.snapshot, err = c.ensureCopy(ctx, source, content); err != nil {
			return validatedConfigMap{}, err
		}
	}
	c.validated.set(client.ObjectKeyFromObject(source), next)
	return next, next.err
}

// check returns an error if the content of a ConfigMap cannot be served.
func check(content *corev1.ConfigMap) error {
	data := make(map[string][]byte, len(content.Data))
	for key, value := range content.Data {
		data[key] = []byte(value)
	}
	if _, _, err := manifests.Catalog(data); err != nil {
		return fmt.Errorf("ConfigMap %s/%s of spec.configMap: %w", content.Namespace, content.Name, err)
	}
	return nil
}

// reference returns the ConfigMap reference for the status. Its time changes only with the version.
func (c *configMaps) reference(source *operatorsv1alpha1.CatalogSource, found *metav1.PartialObjectMetadata) *operatorsv1alpha1.ConfigMapResourceReference {
	if old := source.Status.ConfigMapResource; old != nil && old.Name == found.Name && old.IsAMatch(&found.ObjectMeta) {
		return old
	}
	return &operatorsv1alpha1.ConfigMapResourceReference{
		Name: found.Name, Namespace: found.Namespace, UID: found.UID, ResourceVersion: found.ResourceVersion,
		LastUpdateTime: metav1.NewTime(c.clock.Now()).Rfc3339Copy(),
	}
}
