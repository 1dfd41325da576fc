package server

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta/table"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest/manifest"
)

// retryAfter is when clients repeat a request that cannot be answered yet, in seconds.
const retryAfter = 2

// storage answers get and list. Watches are not supported, as in OLM: a list can have two items of one name, which
// the caches of clients cannot hold.
type storage struct{ index *manifest.Index }

var (
	_ rest.Getter               = storage{}
	_ rest.Lister               = storage{}
	_ rest.Scoper               = storage{}
	_ rest.SingularNameProvider = storage{}
)

// New returns an empty object.
func (storage) New() runtime.Object { return &PackageManifest{} }

// NewList returns an empty list.
func (storage) NewList() runtime.Object { return &PackageManifestList{} }

// Destroy does nothing.
func (storage) Destroy() {}

// NamespaceScoped returns true.
func (storage) NamespaceScoped() bool { return true }

// GetSingularName returns the singular name of the resource.
func (storage) GetSingularName() string { return singular }

// Get returns a package. Of several of a name, it is always the same one.
func (s storage) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	item, err := find(ctx, s.index, name)
	if err != nil {
		return nil, err
	}
	found := object(item, request.NamespaceValue(ctx))
	return &found, nil
}

// find returns a package that the namespace of a request shows.
func find(ctx context.Context, index *manifest.Index, name string) (manifest.Item, error) {
	if !index.Ready() {
		return manifest.Item{}, notReady()
	}
	item, found := index.Get(request.NamespaceValue(ctx), name)
	if !found {
		return manifest.Item{}, apierrors.NewNotFound(GroupVersion.WithResource(resource).GroupResource(), name)
	}
	return item, nil
}

// notReady returns the error before the catalogs have been read.
func notReady() error { return unavailable("the catalogs are being read") }

// unavailable returns the error of a request that clients should repeat.
func unavailable(message string) error {
	err := apierrors.NewServiceUnavailable(message)
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfter}
	return err
}

// List returns the packages that the namespace of a request shows. It ignores limits.
func (s storage) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	list, err := s.list(ctx, options)
	if err != nil {
		return nil, err
	}
	return list, nil
}

func (s storage) list(ctx context.Context, options *internalversion.ListOptions) (*PackageManifestList, error) {
	if !s.index.Ready() {
		return nil, notReady()
	}
	selected := newSelection(options)
	namespace := request.NamespaceValue(ctx)
	list := &PackageManifestList{Items: []PackageManifest{}}
	for _, item := range s.index.List(namespace) {
		p := object(item, namespace)
		if selected.matches(&p.ObjectMeta) {
			list.Items = append(list.Items, p)
		}
	}
	return list, nil
}

// object returns a package as a namespace shows it.
func object(item manifest.Item, namespace string) PackageManifest {
	if namespace == "" {
		namespace = item.Source.Namespace
	}
	p := PackageManifest{
		TypeMeta: metav1.TypeMeta{APIVersion: GroupVersion.String(), Kind: kind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: item.Package.Name, Labels: item.Package.Labels(item.Source), CreationTimestamp: metav1.NewTime(item.Source.Created),
		},
		Status: Status{item: item},
	}
	if since := item.Source.UnavailableSince; !since.IsZero() {
		p.Annotations = map[string]string{api.AnnotationUnavailableSince: since.UTC().Format(time.RFC3339)}
	}
	return p
}

// ConvertToTable returns the columns of kubectl.
func (storage) ConvertToTable(_ context.Context, o, options runtime.Object) (*metav1.Table, error) {
	out := &metav1.Table{Rows: []metav1.TableRow{}}
	if settings, is := options.(*metav1.TableOptions); !is || !settings.NoHeaders {
		out.ColumnDefinitions = columns()
	}
	switch of := o.(type) {
	case *PackageManifest:
		out.Rows = append(out.Rows, row(of))
	case *PackageManifestList:
		for i := range of.Items {
			out.Rows = append(out.Rows, row(&of.Items[i]))
		}
	}
	return out, nil
}

func columns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "Name of the package."},
		{Name: "Catalog", Type: "string", Description: "Name of the catalog for users."},
		{Name: "Age", Type: "date", Description: "Age of the CatalogSource."},
	}
}

func row(p *PackageManifest) metav1.TableRow {
	return metav1.TableRow{
		Cells:  []any{p.Name, p.Status.item.Source.DisplayName, table.ConvertToHumanReadableDateType(p.CreationTimestamp)},
		Object: runtime.RawExtension{Object: p},
	}
}
