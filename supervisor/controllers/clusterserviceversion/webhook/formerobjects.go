package webhook

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
)

// reasonFormerObjectKept is the reason of the Event about an object that stays although nothing uses it.
const reasonFormerObjectKept = "FormerObjectKept"

// namespaceSystem is the namespace where the API server publishes how callers authenticate.
const namespaceSystem = "kube-system"

// formerObjects removes the objects of versions that OLM created under other names.
type formerObjects struct {
	client client.Client
	live   client.Reader // reads past the caches
	events events.EventRecorder
}

// removeOLMBindings removes the bindings of another lifecycle manager whose names lack the namespace.
// The new bindings replace them.
func (f formerObjects) removeOLMBindings(ctx context.Context, s *State) error {
	namespace := s.version.CSV.Namespace
	for _, server := range s.servers {
		old := server.OLMBindings()
		cluster := &rbacv1.ClusterRoleBinding{}
		found, err := f.readBinding(ctx, client.ObjectKey{Name: old.ClusterRoleBinding}, cluster)
		if err != nil {
			return err
		}
		if found && server.IsSuperseded(namespace, cluster.Labels, cluster.RoleRef, cluster.Subjects) {
			if err := f.deleteRBAC(ctx, cluster, "ClusterRoleBinding"); err != nil {
				return err
			}
		}
		binding := &rbacv1.RoleBinding{}
		found, err = f.readBinding(ctx, client.ObjectKey{Namespace: namespaceSystem, Name: old.RoleBinding}, binding)
		if err != nil {
			return err
		}
		if found && server.IsSuperseded(namespace, binding.Labels, binding.RoleRef, binding.Subjects) {
			if err := f.deleteRBAC(ctx, binding, "RoleBinding"); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeOldestNames removes the objects with the oldest names. The Service is last: API servers may still call it.
func (f formerObjects) removeOldestNames(ctx context.Context, s *State) error {
	namespace := s.version.CSV.Namespace
	for _, server := range s.servers {
		for _, old := range server.OldestNames() {
			if old.Service == server.ServiceName() {
				continue
			}
			objects := []*unstructured.Unstructured{
				named(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), "", old.Bindings.ClusterRoleBinding),
				named(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), namespaceSystem, old.Bindings.RoleBinding),
				named(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), namespace, old.Secret),
				named(rbacv1.SchemeGroupVersion.WithKind("Role"), namespace, old.Secret),
				named(corev1.SchemeGroupVersion.WithKind("Secret"), namespace, old.Secret),
				named(serviceKind(), namespace, old.Service),
			}
			for _, o := range objects {
				if err := f.removeOwned(ctx, s, o); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// removeOwned removes an object if its labels name the version as owner. The object stays if a
// permission is missing, because nothing depends on its removal. An Event then names it.
func (f formerObjects) removeOwned(ctx context.Context, s *State, o *unstructured.Unstructured) error {
	live, err := apply.Live(ctx, f.live, o)
	if err == nil && live != nil && ownership.Names(live.GetLabels(), s.version.CSV) {
		err = apply.Delete(ctx, f.client, live)
	}
	if apierrors.IsForbidden(err) {
		f.events.Eventf(s.version.CSV, nil, corev1.EventTypeWarning, reasonFormerObjectKept, "Install", "%s", api.EventNote(fmt.Sprintf(
			"%s %s has a former name and cannot be removed: %v; delete it, or grant the supervisor this permission", o.GetKind(), o.GetName(), err)))
		return nil
	}
	return err
}

func named(gvk schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	u := ofKind(gvk)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

func (f formerObjects) readBinding(ctx context.Context, key client.ObjectKey, into client.Object) (bool, error) {
	err := f.client.Get(ctx, key, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("getting the former binding %s: %w", key, err)
	}
	return true, nil
}

func (f formerObjects) deleteRBAC(ctx context.Context, obj client.Object, kind string) error {
	u, err := toUnstructured(obj, rbacv1.SchemeGroupVersion.WithKind(kind))
	if err != nil {
		return err
	}
	return apply.Delete(ctx, f.client, u)
}
