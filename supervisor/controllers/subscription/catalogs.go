package subscription

import (
	"errors"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	grpcstatus "google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/resolution"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// Catalog is a CatalogSource and the state of its catalog.
type Catalog struct {
	Source *operatorsv1alpha1.CatalogSource
	State  catalogs.State
	// Followed is false before the first attempt to connect, and for an unusable source.
	Followed bool
}

// origin is a package in a catalog that a version may have come from.
type origin struct {
	catalog types.NamespacedName
	pkg     string
}

// originOf returns the package and the catalog that a Subscription names.
func originOf(sub *operatorsv1alpha1.Subscription) origin {
	return origin{catalog: catalogOf(sub), pkg: sub.Spec.Package}
}

// bundleKey identifies a bundle of a catalog.
type bundleKey struct {
	catalog            types.NamespacedName
	pkg, channel, name string
}

// bundleKeyOf returns the key of the bundle of a version.
func bundleKeyOf(c *resolution.Choice) bundleKey {
	return bundleKey{
		catalog: catalogFor(c), pkg: c.Package, channel: c.Channel, name: c.Bundle,
	}
}

// catalogSet holds the catalogs in scope by the namespace and name of their CatalogSource.
type catalogSet map[types.NamespacedName]Catalog

// pkg returns a package of a catalog; nil if the catalog has no content or lacks the package.
func (s catalogSet) pkg(catalog types.NamespacedName, name string) *content.Package {
	snapshot := s[catalog].State.Snapshot
	if snapshot == nil {
		return nil
	}
	return snapshot.Content.Package(name)
}

// has reports whether a catalog has a version in a package.
func (s catalogSet) has(from origin, version string) bool {
	pkg := s.pkg(from.catalog, from.pkg)
	return pkg != nil && pkg.Bundle(version) != nil
}

// digest returns the digest of manifests in the snapshot of a catalog; empty when the snapshot lacks
// it.
func (s catalogSet) digest(m bundleKey) string {
	snapshot := s[m.catalog].State.Snapshot
	if snapshot == nil {
		return ""
	}
	return snapshot.Manifests(m.pkg, m.name)
}

// loading reports whether a catalog is being read for the first time.
func (s catalogSet) loading(key types.NamespacedName) bool {
	c, found := s[key]
	return found && resolverCatalog(c).Pending
}

// packageWith returns the package of a Subscription in its catalog, if the package has a version.
// The version must be in the channel of the Subscription or, when that is empty, in any channel. It
// returns nil otherwise.
func (s catalogSet) packageWith(sub *operatorsv1alpha1.Subscription, version string) *content.Package {
	pkg := s.pkg(catalogOf(sub), sub.Spec.Package)
	if pkg == nil || version == "" {
		return nil
	}
	for _, channel := range pkg.Channels {
		if (sub.Spec.Channel == "" || sub.Spec.Channel == channel.Name) && channel.Entry(version) != nil {
			return pkg
		}
	}
	return nil
}

// resolverCatalogs returns the content of the catalogs for the resolver.
func (s catalogSet) resolverCatalogs() map[resolution.CatalogKey]resolution.Catalog {
	list := map[resolution.CatalogKey]resolution.Catalog{}
	for key, c := range s {
		list[resolution.CatalogKey{Namespace: key.Namespace, Name: key.Name}] = resolverCatalog(c)
	}
	return list
}

// resolverCatalog returns the content of a catalog for the resolver: the last good snapshot, even if
// the catalog is unreachable now.
func resolverCatalog(c Catalog) resolution.Catalog {
	from := resolution.Catalog{Priority: c.Source.Spec.Priority}
	_, problem := catalogs.SpecProblem(c.Source)
	switch {
	case c.State.Snapshot != nil:
		from.Content = c.State.Snapshot.Content
	case problem != "":
		from.Err = fmt.Errorf("%w: %s", catalogs.ErrNotConnected, problem)
	case c.State.Err != nil:
		from.Err = c.State.Err
		if errors.Is(c.State.Err, catalogs.ErrNotConnected) {
			// OLM has a client of each valid catalog, whose calls fail.
			from.Err = grpcstatus.Error(codes.Unavailable, c.State.Err.Error())
		}
	case c.Followed && c.State.Connectivity == connectivity.TransientFailure.String():
		from.Err = grpcstatus.Errorf(codes.Unavailable, "nothing answers at %s", c.State.Address)
	default:
		from.Pending = true
	}
	return from
}

// catalogOf returns the catalog that a Subscription names.
func catalogOf(sub *operatorsv1alpha1.Subscription) types.NamespacedName {
	return types.NamespacedName{Namespace: sub.Spec.CatalogSourceNamespace, Name: sub.Spec.CatalogSource}
}

// catalogFor returns the catalog that a version was chosen from.
func catalogFor(c *resolution.Choice) types.NamespacedName {
	return types.NamespacedName{Namespace: c.Catalog.Namespace, Name: c.Catalog.Name}
}

// incomingVersion is a version that a plan in progress installs. It counts as existing: no other plan
// may install a version of the package, and other versions may depend on it.
type incomingVersion struct {
	operator resolution.Operator
	replaces string
}

// incomingVersion returns the version of a step, from its manifest or from the catalog.
func (s catalogSet) incomingVersion(step *operatorsv1alpha1.Step) (incomingVersion, bool) {
	u, ref, err := plansteps.Manifest(step)
	if err != nil {
		return incomingVersion{}, false
	}
	a := incomingVersion{operator: resolution.Operator{Name: step.Resource.Name}}
	if ref == nil {
		csv := &operatorsv1alpha1.ClusterServiceVersion{}
		csv.Annotations = u.GetAnnotations()
		f := readProperties(csv)
		a.operator.Subject, a.operator.Requires = f.subject, f.requires
		a.replaces, _, err = unstructured.NestedString(u.Object, "spec", "replaces")
		return a, err == nil
	}
	a.replaces, a.operator.Subject.Package = ref.Replaces, ref.Package
	catalog := types.NamespacedName{Namespace: step.Resource.CatalogSourceNamespace, Name: step.Resource.CatalogSource}
	if pkg := s.pkg(catalog, ref.Package); pkg != nil && pkg.Bundle(ref.Bundle) != nil {
		bundle := pkg.Bundle(ref.Bundle)
		a.operator.Subject, a.operator.Requires = bundle.Subject, bundle.Requires
	}
	return a, true
}
