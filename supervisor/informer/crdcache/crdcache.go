// Package crdcache caches CustomResourceDefinitions without their schemas, for all controllers.
package crdcache

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/informer"
)

// Add adds a cache of CustomResourceDefinitions to a manager, which starts it with its other caches, before
// anything that reads from it. It is separate from the manager's cache, in which readers expect whole
// definitions. Schemas take megabytes in total, and no controller needs them.
//
// It makes the typed clients of this process read definitions as protobuf. A definition that many namespaces share is
// large, and changes with each installation.
func Add(mgr ctrl.Manager) (cache.Cache, error) {
	if err := apiutil.AddToProtobufScheme(apiextensionsv1.AddToScheme); err != nil {
		return nil, fmt.Errorf("selecting protobuf for CustomResourceDefinitions: %w", err)
	}
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient:       mgr.GetHTTPClient(),
		Scheme:           mgr.GetScheme(),
		Mapper:           mgr.GetRESTMapper(),
		NewInformer:      informer.New,
		DefaultTransform: informer.TransformAfter(withoutSchemas),
	})
	if err != nil {
		return nil, fmt.Errorf("making the cache of CustomResourceDefinitions: %w", err)
	}
	if err := mgr.Add(runnable{c}); err != nil {
		return nil, fmt.Errorf("adding the cache of CustomResourceDefinitions: %w", err)
	}
	return c, nil
}

// runnable makes the manager wait until the cache is filled.
type runnable struct{ cache.Cache }

// GetCache returns the cache, by which the manager recognizes it.
func (r runnable) GetCache() cache.Cache { return r.Cache }

// withoutSchemas removes what no controller reads. It keeps the annotations that name the versions sharing the
// definition, and those that delay changes of its versions.
func withoutSchemas(obj any) (any, error) {
	crd, ok := obj.(*apiextensionsv1.CustomResourceDefinition)
	if !ok {
		return obj, nil
	}
	crd.ManagedFields = nil
	promises := []string{api.AnnotationStorageVersion, api.AnnotationConversion, api.AnnotationServedVersions}
	maps.DeleteFunc(crd.Annotations, func(key, _ string) bool {
		return !strings.HasPrefix(key, api.PrefixInstalledAlongside) && !slices.Contains(promises, key)
	})
	for i := range crd.Spec.Versions {
		v := crd.Spec.Versions[i]
		crd.Spec.Versions[i] = apiextensionsv1.CustomResourceDefinitionVersion{Name: v.Name, Served: v.Served, Storage: v.Storage}
	}
	return crd, nil
}
