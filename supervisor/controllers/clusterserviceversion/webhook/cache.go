package webhook

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
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

func serviceKind() schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind("Service") }

func validatingKind() schema.GroupVersionKind {
	return admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration")
}

func mutatingKind() schema.GroupVersionKind {
	return admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration")
}

// Cache is a cache of the Services, webhook configurations and API services of operators. It holds
// the whole objects with the label of managed objects, which are few. It is separate from the
// manager's cache, from which others read objects without the label.
type Cache struct{ cache.Cache }

// GetCache returns the cache. The manager recognizes a cache by it, and waits for the cache.
func (c Cache) GetCache() cache.Cache { return c.Cache }

// NewCache adds a cache to a manager.
func NewCache(mgr ctrl.Manager) (Cache, error) {
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient:           mgr.GetHTTPClient(),
		Scheme:               mgr.GetScheme(),
		Mapper:               mgr.GetRESTMapper(),
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{api.LabelManaged: "true"}),
		NewInformer:          informer.New,
		DefaultTransform:     informer.Transform,
	})
	if err != nil {
		return Cache{}, fmt.Errorf("making the cache of webhook objects: %w", err)
	}
	if err := mgr.Add(Cache{c}); err != nil {
		return Cache{}, fmt.Errorf("adding the cache of webhook objects: %w", err)
	}
	return Cache{c}, nil
}

// Source returns the source of the events of all kinds in the cache. owner maps an object to the
// ClusterServiceVersion that owns it.
func (c Cache) Source(owner handler.TypedMapFunc[client.Object, reconcile.Request]) source.SyncingSource {
	var all sources
	for _, gvk := range []schema.GroupVersionKind{serviceKind(), validatingKind(), mutatingKind(), webhook.APIServiceKind()} {
		all = append(all, source.Kind(c.Cache, ofKind(gvk), handler.TypedEnqueueRequestsFromMapFunc(
			func(ctx context.Context, u *unstructured.Unstructured) []reconcile.Request { return owner(ctx, u) })))
	}
	return all
}

// sources are several sources of events as one.
type sources []source.SyncingSource

// Start starts all sources.
func (s sources) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	for _, one := range s {
		if err := one.Start(ctx, queue); err != nil {
			return fmt.Errorf("watching webhook objects: %w", err)
		}
	}
	return nil
}

// WaitForSync waits for all sources.
func (s sources) WaitForSync(ctx context.Context) error {
	for _, one := range s {
		if err := one.WaitForSync(ctx); err != nil {
			return fmt.Errorf("waiting for webhook objects: %w", err)
		}
	}
	return nil
}

func ofKind(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u
}

// reader reads objects from caches, and from the API where that is necessary.
type reader struct {
	manager client.Client // reads RBAC from the manager's cache
	cache   client.Reader // of Services, webhook configurations and API services
	live    client.Reader // reads past the caches
}

// read returns the live counterpart of an object; nil if there is none. It reads the API where the
// caches have none, or one that differs: they lag behind writes, and lack objects without their
// labels.
func (r reader) read(ctx context.Context, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	switch want.GetKind() {
	case "Secret", webhook.CertificateRequestKind().Kind: // are in no cache
	case "Role", "RoleBinding", "ClusterRoleBinding":
		live, err := r.readRBAC(ctx, want)
		if err != nil || !webhook.NeedsUpdate(want, live) {
			return live, err
		}
	default:
		live, err := apply.Live(ctx, r.cache, want)
		if err != nil || live != nil && !informer.Trimmed(live) && !webhook.NeedsUpdate(want, live) {
			return live, err
		}
	}
	return apply.Live(ctx, r.live, want)
}

// readRBAC returns a role or binding from the manager's cache.
func (r reader) readRBAC(ctx context.Context, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	made, err := r.manager.Scheme().New(want.GroupVersionKind())
	if err != nil {
		return nil, fmt.Errorf("making a %s: %w", want.GetKind(), err)
	}
	obj, is := made.(client.Object)
	if !is {
		return nil, fmt.Errorf("%s is not an object", want.GetKind())
	}
	err = r.manager.Get(ctx, client.ObjectKeyFromObject(want), obj)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // absence is documented
	}
	if err != nil {
		return nil, fmt.Errorf("getting %s %s: %w", want.GetKind(), client.ObjectKeyFromObject(want), err)
	}
	return toUnstructured(obj, want.GroupVersionKind())
}

// toUnstructured returns an object of a kind without its Go type.
func toUnstructured(obj client.Object, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("converting %s %s: %w", gvk.Kind, obj.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	return u, nil
}
