package clusterserviceversion

import (
	"context"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// namespaceSystem is the namespace where the API server publishes how callers authenticate.
const namespaceSystem = "kube-system"

// serve applies what Deployments that serve the API server need to start: first certificates, then
// Services and RBAC. Callers trust a new certificate before it is used.
func (r *reconciler) serve(ctx context.Context, s *scope) error {
	if s.served == nil {
		return nil
	}
	if err := r.renew(ctx, s); err != nil {
		return err
	}
	objects, err := s.desired()
	if err != nil {
		return err
	}
	for i, service := range objects.Services {
		if objects.Services[i], err = r.bridge(ctx, service); err != nil {
			return err
		}
	}
	if err := r.put(ctx, s, foundations(objects)...); err != nil {
		return err
	}
	if err := r.convertConversions(ctx, s); err != nil {
		return err
	}
	return r.remount(ctx, s)
}

// renew renews the certificates. A certificate that is due gets a successor. Callers learn to trust
// the successor, and then it replaces the old one.
func (r *reconciler) renew(ctx context.Context, s *scope) error {
	staged := false
	for _, server := range s.served.servers {
		if s.served.withheld[server.Deployment] != "" {
			continue
		}
		cert, err := webhook.Renew(s.served.certs[server.Deployment], server, s.CSV.Namespace, s.Now)
		if err != nil {
			return err
		}
		staged = staged || cert.Next != nil
		s.served.certs[server.Deployment] = cert
	}
	if err := r.putSecrets(ctx, s); err != nil || !staged {
		return err
	}
	if err := r.announceSuccessors(ctx, s); err != nil {
		return err
	}
	for deployment, cert := range s.served.certs {
		if cert.Next != nil {
			s.served.certs[deployment] = cert.Promote()
			logf.FromContext(ctx).Info("Replaced a certificate before its end", "deployment", deployment, "end", cert.NotAfter)
		}
	}
	return r.putSecrets(ctx, s)
}

// announceSuccessors adds the authorities of new certificates to the existing callers. Callers that
// are created later get them at their creation.
func (r *reconciler) announceSuccessors(ctx context.Context, s *scope) error {
	objects, err := s.desired()
	if err != nil {
		return err
	}
	if _, err := r.adopt(ctx, r.live, s, objects); err != nil {
		return err
	}
	for _, obj := range callers(objects) {
		want, err := webhook.Manifest(obj)
		if err != nil {
			return err
		}
		live, err := apply.Live(ctx, r.live, want)
		if err != nil {
			return err
		}
		if live == nil || (waits(s.CSV) && !ownsNow(s.CSV, live)) {
			continue
		}
		if err := r.put(ctx, s, obj); err != nil {
			return err
		}
	}
	return r.convertConversions(ctx, s)
}

func (r *reconciler) putSecrets(ctx context.Context, s *scope) error {
	for _, server := range s.served.servers {
		cert := s.served.certs[server.Deployment]
		if cert == nil || cert.Provided {
			continue
		}
		secret := webhook.Secret(s.CSV, server, cert)
		if err := r.put(ctx, s, secret); err != nil {
			return err
		}
		s.served.stored[secret.Name] = true
	}
	return nil
}

// bridge returns the Service that leads to the existing pods until the new ones serve.
func (r *reconciler) bridge(ctx context.Context, want *corev1.Service) (*corev1.Service, error) {
	live := &corev1.Service{}
	err := r.live.Get(ctx, client.ObjectKeyFromObject(want), live)
	if apierrors.IsNotFound(err) {
		return want, nil
	}
	if err != nil {
		return nil, fmt.Errorf("getting Service %s/%s: %w", want.Namespace, want.Name, err)
	}
	return webhook.Bridge(live, want), nil
}

// remount derives the Deployments again, with the current certificates.
func (r *reconciler) remount(ctx context.Context, s *scope) error {
	config, _, err := r.readSettings(ctx, s.CSV)
	if err != nil {
		return err
	}
	s.settings = config
	_, err = r.deriveDeployments(ctx, s)
	return err
}

// switchOver makes the API server use what the Deployments serve. Then it removes what is no longer
// used: former authorities, configurations and bindings.
func (r *reconciler) switchOver(ctx context.Context, s *scope) error {
	if s.served == nil {
		return nil
	}
	if err := r.confirm(ctx, s.CSV); err != nil {
		return err
	}
	if err := r.confirmAccount(ctx, &s.Groups[0]); err != nil {
		return err
	}
	for deployment, cert := range s.served.certs {
		s.served.certs[deployment] = cert.Settle()
	}
	objects, err := s.desired()
	if err != nil {
		return err
	}
	// Read past the cache: it lacks objects without their labels, and they would be created twice.
	surplus, err := r.adopt(ctx, r.live, s, objects)
	if err != nil {
		return err
	}
	if err := r.put(ctx, s, slices.Concat(foundations(objects), callers(objects))...); err != nil {
		return err
	}
	if err := r.convertConversions(ctx, s); err != nil {
		return err
	}
	if err := r.putSecrets(ctx, s); err != nil {
		return err
	}
	for _, extra := range surplus {
		if err := apply.Delete(ctx, r.client, extra); err != nil {
			return err
		}
	}
	return r.removeFormer(ctx, s)
}

// withdraw removes the Deployments of a version that must not run. It first removes the objects
// that make the API server call it: calls without an answer would be refused.
func (r *reconciler) withdraw(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion) error {
	for _, gvk := range []schema.GroupVersionKind{validatingKind(), mutatingKind(), webhook.APIServiceKind()} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		if err := r.fronts.List(ctx, list, ownership.Labels(csv)); err != nil {
			return fmt.Errorf("listing the %ss of ClusterServiceVersion %s/%s: %w", gvk.Kind, csv.Namespace, csv.Name, err)
		}
		for i := range list.Items {
			if err := apply.Delete(ctx, r.client, &list.Items[i]); err != nil {
				return err
			}
		}
	}
	return r.removeDeployments(ctx, csv, nil)
}

// put applies objects that differ from the live ones.
func (r *reconciler) put(ctx context.Context, s *scope, objects ...client.Object) error {
	for _, obj := range objects {
		want, err := webhook.Manifest(obj)
		if err != nil {
			return err
		}
		live, err := apply.Live(ctx, r.live, want)
		if err != nil {
			return err
		}
		if live == nil {
			err = r.putAbsent(ctx, s, want)
		} else {
			err = r.putOver(ctx, s, want, live)
		}
		if err != nil {
			return err
		}
	}
	return s.served.lookup
}

// putAbsent creates an object. It returns apply.ErrStale for a Secret that was deleted since this
// pass read it or wrote it, and for an object that was created since.
func (r *reconciler) putAbsent(ctx context.Context, s *scope, want *unstructured.Unstructured) error {
	if want.GetKind() == "Secret" && s.served.stored[want.GetName()] {
		return apply.ErrStale
	}
	_, absent, err := apply.IfAbsent(ctx, r.client, want)
	if err == nil && !absent {
		return apply.ErrStale
	}
	return err
}

// putOver updates an object that differs. It leaves an object of another owner as it is, and
// returns apply.ErrStale for a Secret that another manager has begun to provide.
func (r *reconciler) putOver(ctx context.Context, s *scope, want, live *unstructured.Unstructured) error {
	if !webhook.Stale(want, live) {
		return nil
	}
	if want.GetKind() == "Secret" && webhook.IsProvided(live) {
		return apply.ErrStale
	}
	if owner := s.served.kin.Foreign(live); owner != "" {
		return fmt.Errorf("applying what ClusterServiceVersion %s/%s serves: %s", s.CSV.Namespace, s.CSV.Name,
			webhook.ObstacleOf(live, owner))
	}
	_, _, err := apply.Over(ctx, r.client, want, live)
	return err
}

// removeFormer removes the bindings of another lifecycle manager whose names lack the namespace.
// The new bindings replace them.
func (r *reconciler) removeFormer(ctx context.Context, s *scope) error {
	for _, server := range s.served.servers {
		former := server.Former()
		cluster := &rbacv1.ClusterRoleBinding{}
		found, err := r.readFormer(ctx, client.ObjectKey{Name: former.ClusterRoleBinding}, cluster)
		if err != nil {
			return err
		}
		if found && server.Superseded(s.CSV.Namespace, cluster.Labels, cluster.RoleRef, cluster.Subjects) {
			if err := r.removeKind(ctx, cluster, rbacv1.SchemeGroupVersion.String(), "ClusterRoleBinding"); err != nil {
				return err
			}
		}
		binding := &rbacv1.RoleBinding{}
		found, err = r.readFormer(ctx, client.ObjectKey{Namespace: namespaceSystem, Name: former.RoleBinding}, binding)
		if err != nil {
			return err
		}
		if found && server.Superseded(s.CSV.Namespace, binding.Labels, binding.RoleRef, binding.Subjects) {
			if err := r.removeKind(ctx, binding, rbacv1.SchemeGroupVersion.String(), "RoleBinding"); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *reconciler) readFormer(ctx context.Context, key client.ObjectKey, into client.Object) (bool, error) {
	err := r.client.Get(ctx, key, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("getting the former binding %s: %w", key, err)
	}
	return true, nil
}

func (r *reconciler) removeKind(ctx context.Context, obj client.Object, version, kind string) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return fmt.Errorf("converting %s %s: %w", kind, obj.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetAPIVersion(version)
	u.SetKind(kind)
	return apply.Delete(ctx, r.client, u)
}
