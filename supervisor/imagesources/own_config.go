package imagesources

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/image/sources"
	"github.com/chandlery/chandlery/supervisor/api"
)

// Limits of the rules that are remembered: the number of ConfigMaps, and their size in one namespace.
const (
	maxOwnConfigs   = 1000
	maxOwnConfigMiB = 8
)

// OwnConfigs reads the rules of some kind in ConfigMaps of catalogs, and caches them. It is safe for concurrent use.
type OwnConfigs[T any] struct {
	// annotation names the ConfigMap of a catalog, and parse reads it.
	annotation string
	parse      func(origin string, keys map[string][]byte) (*T, error)

	mu    sync.Mutex
	known map[types.NamespacedName]*OwnConfig[T]
}

// NewOwnConfigs returns a reader of the ConfigMaps that an annotation names. The errors of parse name the object.
func NewOwnConfigs[T any](annotation string, parse func(origin string, keys map[string][]byte) (*T, error)) *OwnConfigs[T] {
	return &OwnConfigs[T]{annotation: annotation, parse: parse, known: map[types.NamespacedName]*OwnConfig[T]{}}
}

// OwnConfig is the rules in a ConfigMap.
type OwnConfig[T any] struct {
	// Version identifies the content of the ConfigMap.
	Version string
	// Rules are the rules in force; nil if there have never been valid ones.
	Rules *T
	// Err says why the current content is not used.
	Err error

	// size is the size of the ConfigMap in bytes.
	size int
}

// OwnConfigError means that the ConfigMap with the rules of a catalog is missing or invalid.
type OwnConfigError struct {
	// Err names the ConfigMap, the problem and the remedy.
	Err error
}

// Error returns the cause.
func (e *OwnConfigError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *OwnConfigError) Unwrap() error { return e.Err }

var errNoConfigMap = errors.New("does not exist; create it, or remove the annotation")

// Read returns the rules in a ConfigMap. If they are missing or invalid, Err is an [*OwnConfigError].
func (o *OwnConfigs[T]) Read(ctx context.Context, reader client.Reader, key types.NamespacedName) OwnConfig[T] {
	object := &corev1.ConfigMap{}
	if err := reader.Get(ctx, key, object); err != nil {
		if apierrors.IsNotFound(err) {
			return OwnConfig[T]{Err: &OwnConfigError{fmt.Errorf("ConfigMap %s, which annotation %s names, %w", key, o.annotation, errNoConfigMap)}}
		}
		return OwnConfig[T]{Err: fmt.Errorf("reading ConfigMap %s: %w", key, err)}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	version := string(object.UID) + ":" + object.ResourceVersion
	last := o.known[key]
	if last == nil || last.Version != version {
		last = o.next(key, object, version, last)
		o.forget(key.Namespace, last.size)
		o.known[key] = last
	}
	return *last
}

// forget makes room for the rules in another ConfigMap of a namespace.
func (o *OwnConfigs[T]) forget(namespace string, size int) {
	if len(o.known) >= maxOwnConfigs {
		clear(o.known)
	}
	for key, config := range o.known {
		if key.Namespace == namespace {
			size += config.size
		}
	}
	if size > maxOwnConfigMiB<<20 {
		maps.DeleteFunc(o.known, func(key types.NamespacedName, _ *OwnConfig[T]) bool { return key.Namespace == namespace })
	}
}

// next returns the rules in a version of a ConfigMap. If they are invalid, the last valid ones stay.
func (o *OwnConfigs[T]) next(key types.NamespacedName, object *corev1.ConfigMap, version string, last *OwnConfig[T]) *OwnConfig[T] {
	keys := keysOf(object)
	size := 0
	for _, text := range keys {
		size += len(text)
	}
	rules, err := o.parse("ConfigMap "+key.String(), keys)
	if err == nil {
		return &OwnConfig[T]{Version: version, Rules: rules, size: size}
	}
	next := &OwnConfig[T]{Version: version, Err: &OwnConfigError{err}, size: size}
	if last != nil {
		next.Rules = last.Rules
	}
	return next
}

// parseOwn reads the rules of a catalog for the sources of its images.
func parseOwn(origin string, keys map[string][]byte) (*sources.Table, error) {
	if _, found := keys[sources.KeyVerification]; found {
		return nil, &sources.InvalidError{
			File: origin + " key " + sources.KeyVerification, Problem: "rules for signatures have no effect here",
			Remedy: "move them to a ConfigMap that annotation " + api.AnnotationImageVerify + " names",
		}
	}
	return sources.Parse(origin, keys) //nolint:wrapcheck // names the object
}

// CatalogProblem returns what is wrong with the rules that apply to a catalog; empty if nothing is.
func (s *Settings) CatalogProblem(ctx context.Context, reader client.Reader, catalog *Catalog) string {
	if catalog.Config == "" {
		return s.Problem()
	}
	own := s.own.Read(ctx, reader, catalog.config())
	_, invalid := errors.AsType[*OwnConfigError](own.Err)
	switch {
	case !invalid:
		return s.Problem()
	case own.Rules == nil:
		return "settings for image registries are invalid, so that no images of the catalog are pulled: " + own.Err.Error()
	default:
		return "settings for image registries are invalid, and the last valid ones stay in use: " + own.Err.Error()
	}
}

// keysOf returns the keys of a ConfigMap.
func keysOf(object *corev1.ConfigMap) map[string][]byte {
	all := map[string][]byte{}
	for key, text := range object.Data {
		all[key] = []byte(text)
	}
	maps.Copy(all, object.BinaryData)
	return all
}

// ownRouter finds sources by the rules of a catalog, and then by those of the cluster.
type ownRouter struct {
	settings *Settings
	table    *sources.Table
}

// Route returns the sources of an image.
func (r *ownRouter) Route(ref name.Reference) (image.Route, error) {
	return r.settings.routeBy(r.table, ref)
}
