package migration

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
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
		return fmt.Sprintf("no supervisors are installed in namespace %s; install them with: kubectl apply -k deploy/, or with the chart", v.Namespace), nil
	}
	if slices.ContainsFunc(list.Items, func(d appsv1.Deployment) bool { return ptr.Deref(d.Spec.Replicas, 1) > 0 }) {
		return "", nil
	}
	return fmt.Sprintf("the supervisors have 0 replicas; start them with: kubectl -n %s scale deployment %s --replicas=2", v.Namespace, list.Items[0].Name), nil
}

// Outdated returns an instruction if pods of the supervisors have earlier settings than their Deployment; empty otherwise. While
// OLM runs, a rollout does not delete them: it waits until new pods are ready. They would lead when OLM has stopped.
func (v *Verification) Outdated(ctx context.Context) (string, error) {
	var list appsv1.DeploymentList
	if err := v.Client.List(ctx, &list, client.InNamespace(v.Namespace), client.MatchingLabels{labelSupervisor: api.LeaseName}); err != nil {
		return "", fmt.Errorf("looking for the Deployment of the supervisors: %w", err)
	}
	for i := range list.Items {
		d := &list.Items[i]
		if n := d.Status.Replicas - d.Status.UpdatedReplicas; n > 0 && d.Status.ObservedGeneration >= d.Generation {
			return fmt.Sprintf("%d pod%s of Deployment %s/%s have earlier settings than the Deployment; replace all its pods with: kubectl -n %s delete replicasets --cascade=foreground -l %s=%s",
				n, plural(int(n)), d.Namespace, d.Name, d.Namespace, labelSupervisor, api.LeaseName), nil
		}
	}
	return "", nil
}

// Unstarted returns why no supervisor can lead yet; empty if the container of a supervisor has started. A supervisor that
// waits for OLM to stop has started, but is not ready.
func (v *Verification) Unstarted(ctx context.Context) (string, error) {
	var pods corev1.PodList
	if err := v.Client.List(ctx, &pods, client.InNamespace(v.Namespace), client.MatchingLabels{labelSupervisor: api.LeaseName}); err != nil {
		return "", fmt.Errorf("listing the pods of the supervisors: %w", err)
	}
	reason := "there is no pod"
	for i := range pods.Items {
		pod := &pods.Items[i]
		reason = fmt.Sprintf("Pod %s is %s", pod.Name, pod.Status.Phase)
		for j := range pod.Status.ContainerStatuses {
			c := &pod.Status.ContainerStatuses[j]
			if c.State.Running != nil && ptr.Deref(c.Started, true) {
				return "", nil
			}
			if c.State.Waiting != nil {
				reason = fmt.Sprintf("Pod %s: %s (image %s)", pod.Name, c.State.Waiting.Reason, c.Image)
			}
		}
	}
	return fmt.Sprintf("no supervisor has started in namespace %s: %s; see: kubectl -n %s describe pods", v.Namespace, reason, v.Namespace), nil
}

// AwaitStart waits until a supervisor has started.
func (v *Verification) AwaitStart(ctx context.Context) error {
	_, err := v.await(ctx, func() (string, bool, error) {
		reason, err := v.Unstarted(ctx)
		return reason, reason == "", err
	})
	return err
}

// AwaitSupervisor waits until a supervisor leads, and returns the holder of the Lease.
func (v *Verification) AwaitSupervisor(ctx context.Context) (string, error) {
	var first *time.Time
	none := fmt.Sprintf("no supervisor leads; see: kubectl -n %s logs -l %s=%s", v.Namespace, labelSupervisor, api.LeaseName)
	return v.await(ctx, func() (string, bool, error) {
		lease := &coordinationv1.Lease{}
		err := v.Client.Get(ctx, client.ObjectKey{Namespace: v.Namespace, Name: api.LeaseName}, lease)
		if apierrors.IsNotFound(err) {
			return none, false, nil
		}
		if err != nil {
			return "", false, fmt.Errorf("reading Lease %s/%s: %w", v.Namespace, api.LeaseName, err)
		}
		holder := ptr.Deref(lease.Spec.HolderIdentity, "")
		if holder == "" || lease.Spec.RenewTime == nil {
			return none, false, nil
		}
		if first == nil {
			first = &lease.Spec.RenewTime.Time
		}
		if !lease.Spec.RenewTime.After(*first) {
			return none, false, nil
		}
		return holder, true, nil
	})
}

// AwaitOLM waits until the Deployments of OLM in a record have their replicas.
func (v *Verification) AwaitOLM(ctx context.Context, deployments []client.ObjectKey) error {
	_, err := v.await(ctx, func() (string, bool, error) {
		for _, key := range deployments {
			d := &appsv1.Deployment{}
			if err := v.Client.Get(ctx, key, d); err != nil {
				return "", false, fmt.Errorf("reading Deployment %s: %w", key, err)
			}
			if d.Status.ReadyReplicas < ptr.Deref(d.Spec.Replicas, 1) || d.Status.ObservedGeneration < d.Generation {
				return fmt.Sprintf("OLM is not ready; see: kubectl -n %s describe deployment %s", key.Namespace, key.Name), false, nil
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

// await calls check until it reports true, and returns its text. The error after the timeout has the last text.
func (v *Verification) await(ctx context.Context, check func() (string, bool, error)) (string, error) {
	begun := v.Clock.Now()
	for {
		text, done, err := check()
		if err != nil || done {
			return text, err
		}
		if v.Clock.Since(begun) > v.Timeout {
			return "", fmt.Errorf("after %s, %s", v.Timeout, text)
		}
		if err := v.pause(ctx); err != nil {
			return "", err
		}
	}
}
