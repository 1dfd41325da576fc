package clusterserviceversion

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/informer"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// serviceKind returns the kind Service, which leads to operators like the kinds below.
func serviceKind() schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind("Service") }

func validatingKind() schema.GroupVersionKind {
	return admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration")
}

func mutatingKind() schema.GroupVersionKind {
	return admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration")
}

// fronts is a cache of the Services, webhook configurations and API services of operators. It holds
// the whole objects with the label of managed objects, which are few. It is separate from the
// manager's cache, from which others read objects without the label.
type fronts struct{ cache.Cache }

// GetCache returns the cache. The manager recognizes a cache by it, and waits for the cache.
func (f fronts) GetCache() cache.Cache { return f.Cache }

func newFronts(mgr ctrl.Manager) (fronts, error) {
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient:           mgr.GetHTTPClient(),
		Scheme:               mgr.GetScheme(),
		Mapper:               mgr.GetRESTMapper(),
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{api.LabelManaged: "true"}),
		NewInformer:          informer.New,
		DefaultTransform:     informer.Transform,
	})
	if err != nil {
		return fronts{}, fmt.Errorf("making the cache of what operators serve: %w", err)
	}
	if err := mgr.Add(fronts{c}); err != nil {
		return fronts{}, fmt.Errorf("adding the cache of what operators serve: %w", err)
	}
	return fronts{c}, nil
}

// frontEvents maps the events of all these kinds to the owners of the objects.
type frontEvents struct{ sources []source.SyncingSource }

func (f fronts) events(m mapper) frontEvents {
	var out frontEvents
	for _, gvk := range []schema.GroupVersionKind{serviceKind(), validatingKind(), mutatingKind(), webhook.APIServiceKind()} {
		out.sources = append(out.sources, source.Kind(f.Cache, ofKind(gvk), handler.TypedEnqueueRequestsFromMapFunc(
			func(ctx context.Context, u *unstructured.Unstructured) []reconcile.Request { return m.owner(ctx, u) })))
	}
	return out
}

// Start starts all sources.
func (e frontEvents) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	for _, s := range e.sources {
		if err := s.Start(ctx, queue); err != nil {
			return fmt.Errorf("watching what operators serve: %w", err)
		}
	}
	return nil
}

// WaitForSync waits for all sources.
func (e frontEvents) WaitForSync(ctx context.Context) error {
	for _, s := range e.sources {
		if err := s.WaitForSync(ctx); err != nil {
			return fmt.Errorf("waiting for what operators serve: %w", err)
		}
	}
	return nil
}

func ofKind(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u
}

// readFront returns the live counterpart of an object from the caches. It reads the API where they
// have none, or one that differs: they lag behind writes, and lack objects without their labels.
func (r *reconciler) readFront(ctx context.Context, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	switch want.GetKind() {
	case "Secret": // is in no cache
	case "Role", "RoleBinding", "ClusterRoleBinding":
		live, err := r.readRight(ctx, want)
		if err != nil || !webhook.Stale(want, live) {
			return live, err
		}
	default:
		live, err := apply.Live(ctx, r.fronts, want)
		if err != nil || live != nil && !informer.Trimmed(live) && !webhook.Stale(want, live) {
			return live, err
		}
	}
	return apply.Live(ctx, r.live, want)
}

// readRight returns a role or binding from the manager's cache.
func (r *reconciler) readRight(ctx context.Context, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	made, err := r.client.Scheme().New(want.GroupVersionKind())
	if err != nil {
		return nil, fmt.Errorf("making a %s: %w", want.GetKind(), err)
	}
	obj, is := made.(client.Object)
	if !is {
		return nil, fmt.Errorf("%s is not an object", want.GetKind())
	}
	err = r.client.Get(ctx, client.ObjectKeyFromObject(want), obj)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // nothing is no error
	}
	if err != nil {
		return nil, fmt.Errorf("getting %s %s: %w", want.GetKind(), client.ObjectKeyFromObject(want), err)
	}
	obj.GetObjectKind().SetGroupVersionKind(want.GroupVersionKind())
	live, err := convert(obj)
	if err != nil {
		return nil, err
	}
	return live, nil
}
