package clusterserviceversion

import (
	"context"
	"errors"
	"fmt"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/webhook"
	"github.com/chandlery/chandlery/supervisor/crd/upgradesafety"
)

// installer writes the objects of versions. It first confirms at the API, not in the cache, that the
// version is still the one to install.
type installer struct {
	client      client.Client // cached reads, all writes but those of Deployments
	live        client.Reader // reads past the cache
	derived     deploymentReader
	deployments deploymentWriter
	webhooks    *webhook.Writer
}

// prepareWebhooks applies the objects that must exist before anything runs, and derives the Deployments
// again, with the current certificates. Like install, it takes over objects that an earlier version
// created.
func (i *installer) prepareWebhooks(ctx context.Context, s *state) error {
	if err := i.confirm(ctx, s.CSV); err != nil || s.webhooks == nil {
		return err
	}
	if err := i.webhooks.Prepare(ctx, s.webhooks); err != nil {
		return err
	}
	config, _, err := i.derived.settings(ctx, s.CSV)
	if err != nil {
		return err
	}
	desired, _, err := i.derived.derive(ctx, s.CSV, config, s.webhooks)
	if err != nil {
		return err
	}
	s.settings, s.deployments = config, desired
	return nil
}

// switchWebhooks makes the API server use what the Deployments serve.
func (i *installer) switchWebhooks(ctx context.Context, s *state) error {
	if s.webhooks == nil {
		return nil
	}
	if err := i.confirm(ctx, s.CSV); err != nil {
		return err
	}
	if err := i.confirmAccount(ctx, &s.Groups[0]); err != nil {
		return err
	}
	return i.webhooks.Switch(ctx, s.webhooks)
}

// renewCertificates replaces the certificates of a waiting version, and the pods that have them.
func (i *installer) renewCertificates(ctx context.Context, s *state) error {
	if err := i.confirm(ctx, s.CSV); err != nil {
		return err
	}
	return i.webhooks.Renew(ctx, s.webhooks)
}

// removeDeployments removes the Deployments of a version that must not run. It first removes the objects
// that make the API server call it: calls without an answer would be refused.
func (i *installer) removeDeployments(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion) error {
	if err := i.webhooks.Remove(ctx, csv); err != nil {
		return err
	}
	return i.deployments.remove(ctx, csv, nil)
}

// install applies everything that runs. It first confirms at the API, not in the cache, that this
// version is still the one to install. It takes Deployments over, and a version that has handed
// over must not take them back.
func (i *installer) install(ctx context.Context, s *state) error {
	if err := i.confirm(ctx, s.CSV); err != nil {
		return err
	}
	if err := i.confirmAccount(ctx, &s.Groups[0]); err != nil {
		return err
	}
	if err := i.copyRBAC(ctx, s); err != nil {
		return err
	}
	if err := i.deployments.put(ctx, s); err != nil {
		return err
	}
	if err := i.deployments.remove(ctx, s.CSV, s.deployments); err != nil {
		return err
	}
	if s.webhooks == nil || s.Webhooks.Switch.Due {
		// Switch follows, or nothing serves the API server.
		return nil
	}
	return i.webhooks.RemoveOldestNames(ctx, s.webhooks)
}

func (i *installer) confirm(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion) error {
	var live operatorsv1alpha1.ClusterServiceVersion
	if err := i.live.Get(ctx, client.ObjectKeyFromObject(csv), &live); err != nil {
		return fmt.Errorf("confirming ClusterServiceVersion %s/%s: %w", csv.Namespace, csv.Name, err)
	}
	if live.UID != csv.UID || live.Generation != csv.Generation ||
		live.Status.Phase != csv.Status.Phase || !live.DeletionTimestamp.IsZero() {
		return apply.ErrStale
	}
	return nil
}

// confirmAccount returns apply.ErrStale if an OperatorGroup no longer names the account that it named
// when it was read. Nothing is applied with the permissions of an earlier account.
func (i *installer) confirmAccount(ctx context.Context, group *operatorsv1.OperatorGroup) error {
	var live operatorsv1.OperatorGroup
	if err := i.live.Get(ctx, client.ObjectKeyFromObject(group), &live); err != nil {
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

// apply creates an object or updates it to the wanted state.
func (i *installer) apply(ctx context.Context, obj client.Object) error {
	u, err := convert(obj)
	if err != nil {
		return err
	}
	live, err := apply.Live(ctx, i.live, u)
	if err != nil {
		return err
	}
	if live == nil {
		_, absent, err := apply.CreateIfAbsent(ctx, i.client, u)
		if err == nil && !absent {
			return apply.ErrStale
		}
		return err
	}
	_, err = apply.Adopt(ctx, i.client, u, live)
	return err
}

// copyRBACConfirmed confirms first that the version exists. After its clean-up, nothing would
// delete the objects that this call creates.
func (i *installer) copyRBACConfirmed(ctx context.Context, s *state) error {
	if err := i.confirm(ctx, s.CSV); err != nil {
		return err
	}
	return i.copyRBAC(ctx, s)
}

// copyRBAC applies the roles for all namespaces and removes those no longer wanted.
func (i *installer) copyRBAC(ctx context.Context, s *state) error {
	for _, role := range s.copies.Roles {
		if hasRoleCopy(s.CSV, role, s.rbac) {
			continue
		}
		if err := i.apply(ctx, role); err != nil {
			return err
		}
	}
	for _, binding := range s.copies.Bindings {
		if hasBindingCopy(s.CSV, binding, s.rbac) {
			continue
		}
		if err := i.apply(ctx, binding); err != nil {
			return err
		}
	}
	extra := obsoleteCopies(s.CSV, s.copies, s.rbac)
	for n := range extra {
		if err := apply.Delete(ctx, i.client, &extra[n]); err != nil {
			return err
		}
	}
	return nil
}

// isRefused reports whether the API, or package upgradesafety, has refused an object for its
// content. Another try at once will not change that.
func isRefused(err error) bool {
	if _, unsafe := errors.AsType[*upgradesafety.RefusalError](err); unsafe {
		return true
	}
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) ||
		apierrors.IsMethodNotSupported(err) || apierrors.IsRequestEntityTooLargeError(err)
}
