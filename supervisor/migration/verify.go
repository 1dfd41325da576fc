package migration

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
)

const (
	// stableTime is how long the inventory of a cluster must not change before it is compared, and inventoryInterval the
	// interval at which it is read.
	stableTime        = 10 * time.Second
	inventoryInterval = 2 * time.Second
)

// Verification checks a cluster after a takeover or a handback.
type Verification struct {
	Options

	// Timeout is the maximum wait for the other manager, and that for an inventory that does not change.
	Timeout time.Duration
}

// Supervisors returns an instruction if no Deployment of supervisors has replicas; empty otherwise.
func (v *Verification) Supervisors(ctx context.Context) (string, error) {
	var list appsv1.DeploymentList
	if err := v.Client.List(ctx, &list, client.InNamespace(v.Namespace), client.MatchingLabels{labelSupervisor: api.LeaseName}); err != nil {
		return "", fmt.Errorf("looking for the Deployment of the supervisors: %w", err)
	}
	if len(list.Items) == 0 {
		return fmt.Sprintf("no supervisors are installed in namespace %s; install them with: kubectl apply -k deploy/", v.Namespace), nil
	}
	if slices.ContainsFunc(list.Items, func(d appsv1.Deployment) bool { return ptr.Deref(d.Spec.Replicas, 1) > 0 }) {
		return "", nil
	}
	return fmt.Sprintf("the supervisors have 0 replicas; start them with: kubectl -n %s scale deployment %s --replicas=2", v.Namespace, list.Items[0].Name), nil
}

// AwaitSupervisor waits until a supervisor leads, and returns the holder of the Lease.
func (v *Verification) AwaitSupervisor(ctx context.Context) (string, error) {
	var first *time.Time
	return v.await(ctx, "no supervisor leads", func() (string, bool, error) {
		lease := &coordinationv1.Lease{}
		err := v.Client.Get(ctx, client.ObjectKey{Namespace: v.Namespace, Name: api.LeaseName}, lease)
		if apierrors.IsNotFound(err) {
			return "", false, nil
		}
		if err != nil {
			return "", false, fmt.Errorf("reading Lease %s/%s: %w", v.Namespace, api.LeaseName, err)
		}
		holder := ptr.Deref(lease.Spec.HolderIdentity, "")
		if holder == "" || lease.Spec.RenewTime == nil {
			return "", false, nil
		}
		if first == nil {
			first = &lease.Spec.RenewTime.Time
		}
		return holder, lease.Spec.RenewTime.After(*first), nil
	})
}

// AwaitOLM waits until the Deployments of OLM in a record have their replicas.
func (v *Verification) AwaitOLM(ctx context.Context, deployments []client.ObjectKey) error {
	_, err := v.await(ctx, "OLM is not ready", func() (string, bool, error) {
		for _, key := range deployments {
			d := &appsv1.Deployment{}
			if err := v.Client.Get(ctx, key, d); err != nil {
				return "", false, fmt.Errorf("reading Deployment %s: %w", key, err)
			}
			if d.Status.ReadyReplicas < ptr.Deref(d.Spec.Replicas, 1) || d.Status.ObservedGeneration < d.Generation {
				return "", false, nil
			}
		}
		return "", true, nil
	})
	return err
}

// AwaitInventory waits until the inventory does not change any more, and returns it.
func (v *Verification) AwaitInventory(ctx context.Context) (Inventory, error) {
	begun, since := v.Clock.Now(), v.Clock.Now()
	last, err := ReadInventory(ctx, v.Client)
	for err == nil && v.Clock.Since(since) < stableTime && v.Clock.Since(begun) < v.Timeout {
		if err := v.pauseFor(ctx, inventoryInterval); err != nil {
			return nil, err
		}
		now, err := ReadInventory(ctx, v.Client)
		if err != nil {
			return nil, err
		}
		if len(now.Differences(last, nil)) > 0 {
			since = v.Clock.Now()
		}
		last = now
	}
	return last, err
}

// await calls check until it reports true, and returns its text. The error after the timeout has a reason.
func (v *Verification) await(ctx context.Context, reason string, check func() (string, bool, error)) (string, error) {
	begun := v.Clock.Now()
	for {
		text, done, err := check()
		if err != nil || done {
			return text, err
		}
		if v.Clock.Since(begun) > v.Timeout {
			return "", fmt.Errorf("%s after %s", reason, v.Timeout)
		}
		if err := v.pause(ctx); err != nil {
			return "", err
		}
	}
}
