package wait

import (
	"context"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/catalogs"
)

// Reader reads objects of a namespace.
type Reader struct {
	Client    client.Reader
	Namespace string
}

// Subscription returns a Subscription with the objects that show its state.
func (r Reader) Subscription(ctx context.Context, name string) (*Objects, error) {
	sub := &operatorsv1alpha1.Subscription{}
	found, err := r.get(ctx, operatorsv1alpha1.SubscriptionKind, name, sub)
	if err != nil || !found {
		return &Objects{}, err
	}
	o := &Objects{Subscription: sub}
	if ref := sub.Status.InstallPlanRef; ref != nil {
		p := &operatorsv1alpha1.InstallPlan{}
		if found, err = r.get(ctx, operatorsv1alpha1.InstallPlanKind, ref.Name, p); err != nil {
			return nil, err
		}
		if found {
			o.Plan = p
		}
	}
	if o.Installed, err = r.version(ctx, sub.Status.InstalledCSV); err != nil {
		return nil, err
	}
	if o.Current = o.Installed; sub.Status.CurrentCSV != sub.Status.InstalledCSV {
		o.Current, err = r.version(ctx, sub.Status.CurrentCSV)
	}
	return o, err
}

// version returns a ClusterServiceVersion; nil if it does not exist or the name is empty.
func (r Reader) version(ctx context.Context, name string) (*operatorsv1alpha1.ClusterServiceVersion, error) {
	if name == "" {
		return nil, nil //nolint:nilnil // a version that does not exist is no error
	}
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	found, err := r.get(ctx, operatorsv1alpha1.ClusterServiceVersionKind, name, csv)
	if err != nil || !found {
		return nil, err
	}
	return csv, nil
}

// Catalog returns a CatalogSource; nil if it does not exist.
func (r Reader) Catalog(ctx context.Context, name string) (*operatorsv1alpha1.CatalogSource, error) {
	u := catalogs.NewObject()
	found, err := r.get(ctx, operatorsv1alpha1.CatalogSourceKind, name, u)
	if err != nil || !found {
		return nil, err
	}
	return catalogs.Decode(u)
}

// get reads an object. found is false if the object does not exist.
func (r Reader) get(ctx context.Context, kind, name string, into client.Object) (found bool, err error) {
	err = r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, into)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading %s %s/%s: %w", kind, r.Namespace, name, err)
	}
	return true, nil
}
