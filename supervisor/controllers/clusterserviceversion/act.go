package clusterserviceversion

import (
	"context"
	"errors"
	"fmt"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
	"github.com/chandlery/chandlery/supervisor/crdguard"
)

// act performs one action. All actions are idempotent.
func (r *reconciler) act(ctx context.Context, action Action, s *scope) error {
	switch action {
	case Annotate:
		return r.writer.annotate(ctx, s.CSV, &s.Groups[0])
	case Serve:
		return r.serveConfirmed(ctx, s)
	case Install:
		return r.install(ctx, s)
	case Switch:
		return r.switchConfirmed(ctx, s)
	case Withdraw:
		return r.withdraw(ctx, s.CSV)
	case Renew:
		return r.renewConfirmed(ctx, s)
	case LiftRoles:
		return r.liftRolesConfirmed(ctx, s)
	case DeleteSelf:
		return r.writer.delete(ctx, s.CSV)
	}
	return fmt.Errorf("unknown action %q", action)
}

// serveConfirmed applies the objects that must exist before anything runs, and derives the
// Deployments again, with the current certificates. Like install, it takes over objects that an
// earlier version created.
func (r *reconciler) serveConfirmed(ctx context.Context, s *scope) error {
	if err := r.confirm(ctx, s.CSV); err != nil || s.webhooks == nil {
		return err
	}
	if err := r.webhookWriter.Prepare(ctx, s.webhooks); err != nil {
		return err
	}
	config, _, err := r.readSettings(ctx, s.CSV)
	if err != nil {
		return err
	}
	s.settings = config
	_, err = r.deriveDeployments(ctx, s)
	return err
}

// switchConfirmed makes the API server use what the Deployments serve.
func (r *reconciler) switchConfirmed(ctx context.Context, s *scope) error {
	if s.webhooks == nil {
		return nil
	}
	if err := r.confirm(ctx, s.CSV); err != nil {
		return err
	}
	if err := r.confirmAccount(ctx, &s.Groups[0]); err != nil {
		return err
	}
	return r.webhookWriter.Switch(ctx, s.webhooks)
}

// renewConfirmed replaces the certificates of a waiting version, and the pods that have them.
func (r *reconciler) renewConfirmed(ctx context.Context, s *scope) error {
	if err := r.confirm(ctx, s.CSV); err != nil {
		return err
	}
	return r.webhookWriter.Renew(ctx, s.webhooks)
}

// withdraw removes the Deployments of a version that must not run. It first removes the objects
// that make the API server call it: calls without an answer would be refused.
func (r *reconciler) withdraw(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion) error {
	if err := r.webhookWriter.Remove(ctx, csv); err != nil {
		return err
	}
	return r.removeDeployments(ctx, csv, nil)
}

// install applies everything that runs. It first confirms at the API, not in the cache, that this
// version is still the one to install. It takes Deployments over, and a version that has handed
// over must not take them back.
func (r *reconciler) install(ctx context.Context, s *scope) error {
	if err := r.confirm(ctx, s.CSV); err != nil {
		return err
	}
	if err := r.confirmAccount(ctx, &s.Groups[0]); err != nil {
		return err
	}
	if err := r.liftRoles(ctx, s); err != nil {
		return err
	}
	if err := r.putDeployments(ctx, s); err != nil {
		return err
	}
	return r.removeDeployments(ctx, s.CSV, s.deployments)
}

func (r *reconciler) confirm(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion) error {
	var live operatorsv1alpha1.ClusterServiceVersion
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(csv), &live); err != nil {
		return fmt.Errorf("confirming ClusterServiceVersion %s/%s: %w", csv.Namespace, csv.Name, err)
	}
	if live.UID != csv.UID || live.Generation != csv.Generation ||
		live.Status.Phase != csv.Status.Phase || !live.DeletionTimestamp.IsZero() {
		return apply.ErrStale
	}
	return nil
}

// confirmAccount returns apply.ErrStale if an OperatorGroup no longer names the account that it named
// when it was read. Nothing is applied with the rights of an earlier account.
func (r *reconciler) confirmAccount(ctx context.Context, group *operatorsv1.OperatorGroup) error {
	var live operatorsv1.OperatorGroup
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(group), &live); err != nil {
		if apierrors.IsNotFound(err) {
			return apply.ErrStale
		}
		return fmt.Errorf("confirming OperatorGroup %s/%s: %w", group.Namespace, group.Name, err)
	}
	if live.Spec.ServiceAccountName != group.Spec.ServiceAccountName {
		return apply.ErrStale
	}
	return nil
}

// convert returns an object in the form that apply sends: without status, and without the times
// that an API type encodes as null.
func convert(obj client.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("converting %s %s: %w", obj.GetObjectKind().GroupVersionKind().Kind, obj.GetName(), err)
	}
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(content, "spec", "template", "metadata", "creationTimestamp")
	return &unstructured.Unstructured{Object: content}, nil
}

// apply creates an object or updates it to the wanted state.
func (r *reconciler) apply(ctx context.Context, obj client.Object) error {
	u, err := convert(obj)
	if err != nil {
		return err
	}
	live, err := apply.Live(ctx, r.live, u)
	if err != nil {
		return err
	}
	if live == nil {
		_, absent, err := apply.IfAbsent(ctx, r.client, u)
		if err == nil && !absent {
			return apply.ErrStale
		}
		return err
	}
	_, err = apply.TakeOver(ctx, r.client, u, live)
	return err
}

// liftRolesConfirmed confirms first that the version exists. After its clean-up, nothing would
// delete the objects that this call creates.
func (r *reconciler) liftRolesConfirmed(ctx context.Context, s *scope) error {
	if err := r.confirm(ctx, s.CSV); err != nil {
		return err
	}
	return r.liftRoles(ctx, s)
}

// liftRoles applies the roles for all namespaces and removes those no longer wanted.
func (r *reconciler) liftRoles(ctx context.Context, s *scope) error {
	for _, role := range s.lift.Roles {
		if roleLifted(s.CSV, role, s.rbac) {
			continue
		}
		if err := r.apply(ctx, role); err != nil {
			return err
		}
	}
	for _, binding := range s.lift.Bindings {
		if bindingLifted(s.CSV, binding, s.rbac) {
			continue
		}
		if err := r.apply(ctx, binding); err != nil {
			return err
		}
	}
	extra := surplus(s.CSV, s.lift, s.rbac)
	for i := range extra {
		if err := apply.Delete(ctx, r.client, &extra[i]); err != nil {
			return err
		}
	}
	return nil
}

// removeDeployments deletes the Deployments that a version created, except some. A Deployment that
// another version has taken over has the labels of that version.
func (r *reconciler) removeDeployments(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion, keep []*appsv1.Deployment) error {
	var list appsv1.DeploymentList
	if err := r.client.List(ctx, &list, client.InNamespace(csv.Namespace), ownership.Labels(csv)); err != nil {
		return fmt.Errorf("listing Deployments of ClusterServiceVersion %s/%s: %w", csv.Namespace, csv.Name, err)
	}
	for i := range list.Items {
		if slices.ContainsFunc(keep, func(d *appsv1.Deployment) bool { return d.Name == list.Items[i].Name }) {
			continue
		}
		list.Items[i].SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
		if err := apply.Delete(ctx, r.client, &list.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// refused reports whether the API, or the guard of definitions, has refused an object for its
// content. Another try at once will not change that.
func refused(err error) bool {
	if _, guarded := errors.AsType[*crdguard.RefusalError](err); guarded {
		return true
	}
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) ||
		apierrors.IsMethodNotSupported(err) || apierrors.IsRequestEntityTooLargeError(err)
}
