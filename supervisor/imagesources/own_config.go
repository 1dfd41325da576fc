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

// maxOwnConfigs is the number of ConfigMaps whose rules are remembered.
const maxOwnConfigs = 200

// ownConfigs remembers the rules in ConfigMaps of catalogs.
type ownConfigs struct {
	mu    sync.Mutex
	known map[types.NamespacedName]*ownConfig
}

// ownConfig is the rules in a ConfigMap.
type ownConfig struct {
	version string
	table   *sources.Table
	err     error
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

// read returns the rules in a ConfigMap. If they are invalid, it returns the last valid rules with the error.
func (o *ownConfigs) read(ctx context.Context, reader client.Reader, key types.NamespacedName) (*sources.Table, error) {
	object := &corev1.ConfigMap{}
	if err := reader.Get(ctx, key, object); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, &OwnConfigError{fmt.Errorf("ConfigMap %s, which annotation %s names, %w", key, api.AnnotationImageConfig, errNoConfigMap)}
		}
		return nil, fmt.Errorf("reading ConfigMap %s: %w", key, err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	version := string(object.UID) + ":" + object.ResourceVersion
	last := o.known[key]
	if last == nil || last.version != version {
		last = newOwnConfig(key, object, version, last)
		if o.known == nil || len(o.known) >= maxOwnConfigs {
			o.known = map[types.NamespacedName]*ownConfig{}
		}
		o.known[key] = last
	}
	return last.table, last.err
}

// newOwnConfig returns the rules in a version of a ConfigMap. If they are invalid, the last valid ones stay.
func newOwnConfig(key types.NamespacedName, object *corev1.ConfigMap, version string, last *ownConfig) *ownConfig {
	table, err := sources.Parse("ConfigMap "+key.String(), keysOf(object))
	if err == nil {
		return &ownConfig{version: version, table: table}
	}
	next := &ownConfig{version: version, err: &OwnConfigError{err}}
	if last != nil {
		next.table = last.table
	}
	return next
}

// CatalogProblem returns what is wrong with the rules that apply to a catalog; empty if nothing is.
func (s *Settings) CatalogProblem(ctx context.Context, reader client.Reader, catalog *Catalog) string {
	if catalog.Config == "" {
		return s.Problem()
	}
	table, err := s.own.read(ctx, reader, catalog.config())
	_, invalid := errors.AsType[*OwnConfigError](err)
	switch {
	case !invalid:
		return s.Problem()
	case table == nil:
		return "settings for image registries are invalid, so that no images of the catalog are pulled: " + err.Error()
	default:
		return "settings for image registries are invalid, and the last valid ones stay in use: " + err.Error()
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
