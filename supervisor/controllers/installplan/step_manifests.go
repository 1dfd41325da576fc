package installplan

import (
	"context"
	"errors"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/bundleimage"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// bundleReader fetches a bundle's manifests from the catalog that serves it.
type bundleReader interface {
	Bundle(ctx context.Context, catalog types.NamespacedName, pkg, channel, name string) (plansteps.Bundle, error)
}

// imageReader reads the manifests of a bundle image.
type imageReader interface {
	Content(ctx context.Context, r bundleimage.Request) (bundleimage.Content, error)
}

// errNoImageReader is returned where this process cannot read bundle images.
var errNoImageReader = errors.New("bundle images are not unpacked here")

// content reads the objects of a plan's steps, from the plan, a catalog or a bundle image.
type content struct {
	client    client.Reader
	bundles   bundleReader
	images    imageReader
	kinds     plansteps.Kinds
	namespace string
	steps     []*operatorsv1alpha1.Step
	// fetched holds the bundles that this pass had to read, by name.
	fetched map[string]plansteps.Bundle
	// versions holds the ClusterServiceVersions of the plan that were read, by name.
	versions map[string]*unstructured.Unstructured
}

// manifest returns the object that a step names, from the bundle when the plan only refers to it.
// The object is completed with what the step determines.
func (c *content) manifest(ctx context.Context, s *operatorsv1alpha1.Step) (*unstructured.Unstructured, error) {
	u, ref, err := plansteps.Manifest(s)
	if err == nil && ref != nil {
		u, err = c.resolve(ctx, s, ref)
	}
	if err != nil {
		return nil, err
	}
	return u, plansteps.CompleteObject(u, s, c.namespace, c.kinds)
}

// resolve reads the object that a step refers to.
func (c *content) resolve(ctx context.Context, s *operatorsv1alpha1.Step, ref *plansteps.Reference) (*unstructured.Unstructured, error) {
	bundle, ok := c.fetched[ref.Bundle]
	if !ok {
		var err error
		if bundle, err = c.fetch(ctx, s, ref); err != nil {
			return nil, err
		}
		c.fetched[ref.Bundle] = bundle
	}
	if ref.Image != "" && s.Resource.Kind == operatorsv1alpha1.ClusterServiceVersionKind {
		// Only this manifest contains properties, which only the catalog has. Other manifests need
		// no catalog.
		served, err := c.bundles.Bundle(ctx, catalogOf(s), ref.Package, ref.Channel, ref.Bundle)
		if err != nil {
			return nil, err
		}
		bundle.Properties = served.Properties
	}
	return plansteps.Resolve(*ref, s, c.namespace, bundle, c.kinds)
}

// catalogOf names the catalog that a step came from.
func catalogOf(s *operatorsv1alpha1.Step) types.NamespacedName {
	return types.NamespacedName{Namespace: s.Resource.CatalogSourceNamespace, Name: s.Resource.CatalogSource}
}

// fetch reads a bundle from its catalog, and from its image where it has one.
func (c *content) fetch(ctx context.Context, s *operatorsv1alpha1.Step, ref *plansteps.Reference) (plansteps.Bundle, error) {
	catalog := catalogOf(s)
	if ref.Image == "" {
		return c.bundles.Bundle(ctx, catalog, ref.Package, ref.Channel, ref.Bundle)
	}
	if c.images == nil {
		return plansteps.Bundle{}, fmt.Errorf("reading bundle image %s: %w", ref.Image, errNoImageReader)
	}
	bundle := plansteps.Bundle{Name: ref.Bundle, Package: ref.Package, Channel: ref.Channel, Catalog: catalog}
	const byDefault = -1
	request := bundleimage.Request{Image: ref.Image, Catalog: catalog, Namespace: c.namespace, Timeout: byDefault}
	if err := c.addPullSettings(ctx, &request); err != nil {
		return plansteps.Bundle{}, err
	}
	held, err := c.images.Content(ctx, request)
	if err != nil {
		return plansteps.Bundle{}, fmt.Errorf("reading bundle image %s of %s: %w", ref.Image, ref.Bundle, err)
	}
	bundle.Image, bundle.Objects = ref.Image, held.Objects
	return bundle, nil
}

// addPullSettings adds to a request the account, the Secrets and the ConfigMaps to pull the images of its catalog with. It
// adds none without the CatalogSource: the bundle cache may have the content already.
func (c *content) addPullSettings(ctx context.Context, request *bundleimage.Request) error {
	object := catalogs.NewObject()
	if err := c.client.Get(ctx, request.Catalog, object); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil
		}
		return fmt.Errorf("%w CatalogSource %s for its pull secrets: %w", errOwnRead, request.Catalog, err)
	}
	source, err := catalogs.Decode(object)
	if err != nil {
		return fmt.Errorf("reading the pull secrets of CatalogSource %s: %w", request.Catalog, err)
	}
	request.Account, request.Secrets = catalogs.AccountName(source), source.Spec.Secrets
	request.Config, request.Policy = source.Annotations[api.AnnotationImageConfig], source.Annotations[api.AnnotationImageVerify]
	request.Pull = source.Annotations[api.AnnotationImagePull]
	return nil
}

// installs reports whether the plan has a step for a ClusterServiceVersion.
func (c *content) installs(csv string) bool {
	return slices.ContainsFunc(c.steps, func(s *operatorsv1alpha1.Step) bool {
		return s.Resource.Kind == operatorsv1alpha1.ClusterServiceVersionKind && s.Resource.Name == csv
	})
}

// version returns the ClusterServiceVersion of that name that the plan installs; nil when there is
// none.
func (c *content) version(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	if known, ok := c.versions[name]; ok {
		return known, nil
	}
	var found *unstructured.Unstructured
	for _, s := range c.steps {
		if s.Resource.Kind != operatorsv1alpha1.ClusterServiceVersionKind || s.Resource.Name != name {
			continue
		}
		u, err := c.manifest(ctx, s)
		if err != nil {
			return nil, err
		}
		found = u
	}
	c.versions[name] = found
	return found, nil
}
