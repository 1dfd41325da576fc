package catalogsource

import (
	"context"
	"fmt"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/manifests"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
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
	owners         *configMapOwners
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
	// warnings are the problems that do not prevent serving.
	warnings bundles.Problems
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
	// current is true if the newest version is served. warnings are its problems.
	current  bool
	warnings bundles.Problems
	// next is when to observe again; 0 for at the next change.
	next time.Duration
}

// observe returns the version of the ConfigMap to serve: the newest if it is valid, otherwise the
// running one, if any. The error describes the problem of the newest version.
func (c *configMaps) observe(ctx context.Context, source *operatorsv1alpha1.CatalogSource, running *appsv1.Deployment) (configMapState, error) {
	var state configMapState
	if running != nil {
		state.version, state.snapshot = running.Spec.Template.Labels[api.LabelConfigMapVersion], deployment.ConfigMapOf(running)
	}
	found, next, problem := c.owners.ensure(ctx, source)
	if found == nil {
		return state, servingOn(fmt.Errorf(olmtext.CatalogConfigMapFailed, source.Spec.ConfigMap, problem), state.version)
	}
	state.next = next
	last, err := c.validate(ctx, source, found)
	same := err == nil && state.snapshot == last.snapshot
	rollout := ""
	if same {
		rollout = state.version
	}
	state.reference = configMapReference(source.Status.ConfigMapResource, found, rollout, c.clock.Now())
	if err != nil {
		return state, servingOn(err, state.version)
	}
	c.owners.served(source, last.snapshot)
	if !same {
		// A version with the same content is no reason for a rollout.
		state.version, state.snapshot = last.version, last.snapshot
	}
	state.current, state.warnings = true, last.warnings
	return state, problem
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
	mark := apply.MergePatch{"metadata": map[string]any{"labels": map[string]string{api.LabelManaged: managedByUser}}}
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
	next := validatedConfigMap{configMap: content.UID, version: content.ResourceVersion}
	next.warnings, next.err = check(content)
	if next.err == nil {
		var err error
		if next.snapshot, err = c.ensureCopy(ctx, source, content); err != nil {
			return validatedConfigMap{}, err
		}
	}
	c.validated.set(client.ObjectKeyFromObject(source), next)
	return next, next.err
}

// check returns an error if the content of a ConfigMap cannot be served, or the problems that do not
// prevent serving.
func check(content *corev1.ConfigMap) (warnings bundles.Problems, err error) {
	data := make(map[string][]byte, len(content.Data))
	for key, value := range content.Data {
		data[key] = []byte(value)
	}
	if _, warnings, err = manifests.Catalog(data); err != nil {
		return nil, fmt.Errorf("ConfigMap %s/%s of spec.configMap: %w", content.Namespace, content.Name, err)
	}
	return warnings, nil
}

// configMapReference returns the ConfigMap reference for the status. rollout is the version that the Deployment was changed
// for, if the found version has the same content; otherwise it is empty. The time stays if that rollout was recorded before:
// a status that was not written after a rollout would show the new version as read long ago.
func configMapReference(
	old *operatorsv1alpha1.ConfigMapResourceReference, found *metav1.PartialObjectMetadata, rollout string, now time.Time,
) *operatorsv1alpha1.ConfigMapResourceReference {
	if old != nil && old.Name == found.Name && old.IsAMatch(&found.ObjectMeta) {
		return old
	}
	next := &operatorsv1alpha1.ConfigMapResourceReference{
		Name: found.Name, Namespace: found.Namespace, UID: found.UID, ResourceVersion: found.ResourceVersion,
		LastUpdateTime: metav1.NewTime(now).Rfc3339Copy(),
	}
	if rollout != "" && old != nil && old.Name == found.Name && old.UID == found.UID && !isLater(rollout, old.ResourceVersion) {
		next.LastUpdateTime = old.LastUpdateTime
	}
	return next
}

// isLater reports whether a resource version is later than another one. An unreadable version is later.
func isLater(version, other string) bool {
	order, err := resourceversion.CompareResourceVersion(version, other)
	return err != nil || order > 0
}

// maxWarnings is the number of problems in the condition ContentWarnings.
const maxWarnings = 3

// warningsCondition returns the condition for problems that do not prevent serving.
func warningsCondition(source *operatorsv1alpha1.CatalogSource, warnings bundles.Problems) metav1.Condition {
	texts := make([]string, 0, maxWarnings+1)
	for i := range warnings[:min(len(warnings), maxWarnings)] {
		texts = append(texts, warnings[i].String())
	}
	if len(warnings) > maxWarnings {
		texts = append(texts, "…")
	}
	return metav1.Condition{
		Type: api.ConditionContentWarnings, Status: metav1.ConditionTrue, Reason: api.ReasonValidationWarnings,
		Message: fmt.Sprintf("ConfigMap %s/%s is served with problems (%d): %s",
			source.Namespace, source.Spec.ConfigMap, len(warnings), strings.Join(texts, "; ")),
	}
}
