package uninstall

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/supervisor/api"
)

// pollInterval is the time between two checks whether an object is deleted.
const pollInterval = 500 * time.Millisecond

// remover deletes what a plan names.
type remover struct {
	client    client.Client
	namespace string
	timeout   time.Duration
	// report is called with each step.
	report func(step string)
}

// remove carries out a plan. It may be called again.
func (r *remover) remove(ctx context.Context, p *Plan) error {
	if p.Everything {
		if err := r.deleteOperators(ctx); err != nil {
			return err
		}
		if err := r.deleteOwned(ctx); err != nil {
			return err
		}
		if err := r.waitForGarbageCollector(ctx); err != nil {
			return err
		}
	}
	for _, object := range p.Remove {
		r.report("deleting " + object.String())
		deleteOne := r.delete
		if object.Kind == "Deployment" {
			deleteOne = r.deleteWithPods
		}
		if err := deleteOne(ctx, object); err != nil {
			return err
		}
	}
	for _, object := range p.Remove {
		if err := r.waitForDeletion(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

func (r *remover) delete(ctx context.Context, object Object) error {
	err := r.client.Delete(ctx, object.metadata(), client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil && !isAbsent(err) {
		return fmt.Errorf("deleting %s: %w", object, err)
	}
	return nil
}

// deleteWithPods deletes a Deployment and waits for its pods to end.
func (r *remover) deleteWithPods(ctx context.Context, object Object) error {
	var d appsv1.Deployment
	err := r.client.Get(ctx, client.ObjectKey{Namespace: object.Namespace, Name: object.Name}, &d)
	if isAbsent(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", object, err)
	}
	pods, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return fmt.Errorf("reading the selector of %s: %w", object, err)
	}
	if err := r.delete(ctx, object); err != nil {
		return err
	}
	return r.waitForPods(ctx, object, pods)
}

// waitForPods waits for the pods of a Deployment to end while they still have permission to release their Lease and to
// delete their APIService. A pod on a lost node does not end; the timeout bounds the wait.
func (r *remover) waitForPods(ctx context.Context, deployment Object, selector labels.Selector) error {
	err := r.poll(ctx, func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		err := r.client.List(ctx, &pods, client.InNamespace(deployment.Namespace), client.MatchingLabelsSelector{Selector: selector})
		return len(pods.Items) == 0, err //nolint:wrapcheck // wrapped below
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		r.report(fmt.Sprintf("continuing, although a pod of %s still exists after %s", deployment, r.timeout))
		return nil
	}
	if err != nil {
		return fmt.Errorf("waiting for the pods of %s to stop: %w", deployment, err)
	}
	return nil
}

// waitForDeletion waits until an object is deleted.
func (r *remover) waitForDeletion(ctx context.Context, object Object) error {
	err := r.poll(ctx, func(ctx context.Context) (bool, error) {
		live := object.metadata()
		err := r.client.Get(ctx, client.ObjectKeyFromObject(live), live)
		if isAbsent(err) {
			return true, nil
		}
		return false, err //nolint:wrapcheck // wrapped below
	})
	if err != nil {
		return fmt.Errorf("waiting until %s is deleted: %w", object, err)
	}
	return nil
}

// deleteOperators deletes all Subscriptions, ClusterServiceVersions, InstallPlans, OperatorGroups and
// CatalogSources. A running supervisor cleans up after them. If none runs, this function removes
// the supervisor's finalizers.
func (r *remover) deleteOperators(ctx context.Context) error {
	supervisors, err := readSupervisors(ctx, r.client, r.namespace, time.Now())
	if err != nil {
		return err
	}
	// A supervisor may have been started since the plan.
	if obstacles := supervisors.obstacles(r.namespace, true); len(obstacles) > 0 {
		return &console.Coded{Code: console.Negative, Err: errors.New(strings.Join(obstacles, "; "))}
	}
	running := supervisors.Ready
	if !running {
		r.report("no supervisor is ready to clean up operators: removing its finalizers")
	}
	kinds := append(managed(), operatorsv1alpha1.SchemeGroupVersion.WithKind("ClusterServiceVersion"))
	var left []string
	err = r.poll(ctx, func(ctx context.Context) (bool, error) {
		left = nil
		for _, gvk := range kinds {
			list, err := listOf(ctx, r.client, gvk)
			if err != nil {
				return false, err
			}
			for i := range list {
				list[i].SetGroupVersionKind(gvk)
				left = append(left, gvk.Kind+" "+list[i].Namespace+"/"+list[i].Name)
				if err := r.deleteObject(ctx, &list[i], !running); err != nil {
					return false, err
				}
			}
		}
		return len(left) == 0, nil
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("after %s, these objects still exist: %s; the status of each shows the reason. Run the command again with a longer --timeout; "+
			"to skip the clean-up, scale the supervisor to 0 replicas first", r.timeout, enumerate(left))
	}
	return err //nolint:wrapcheck // wrapped where it arises
}

// deleteOwned deletes the objects that versions and groups own outside their namespaces and that no
// supervisor has removed. A remaining webhook configuration would refuse writes of other clients.
func (r *remover) deleteOwned(ctx context.Context) error {
	const rbac, admission = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"
	for _, one := range []struct {
		gvk       schema.GroupVersionKind
		namespace string
	}{
		{schema.GroupVersionKind{Group: admission, Version: "v1", Kind: "ValidatingWebhookConfiguration"}, ""},
		{schema.GroupVersionKind{Group: admission, Version: "v1", Kind: "MutatingWebhookConfiguration"}, ""},
		{schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}, ""},
		{schema.GroupVersionKind{Group: rbac, Version: "v1", Kind: "ClusterRoleBinding"}, ""},
		{schema.GroupVersionKind{Group: rbac, Version: "v1", Kind: "ClusterRole"}, ""},
		{schema.GroupVersionKind{Group: rbac, Version: "v1", Kind: "RoleBinding"}, metav1.NamespaceSystem},
		{schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"}, ""},
	} {
		list, err := listOf(ctx, r.client, one.gvk, client.HasLabels{api.LabelOwner}, client.InNamespace(one.namespace))
		if err != nil {
			return err
		}
		for i := range list {
			object := Object{one.gvk.Group, one.gvk.Version, one.gvk.Kind, list[i].Namespace, list[i].Name}
			r.report("deleting " + object.String())
			if err := r.delete(ctx, object); err != nil {
				return err
			}
		}
	}
	return nil
}

// waitForGarbageCollector waits until the garbage collector has deleted the objects that versions and
// catalogs owned. After the kind of an owner is deleted, the garbage collector would never delete them.
func (r *remover) waitForGarbageCollector(ctx context.Context) error {
	r.report("waiting for the garbage collector")
	var left []string
	err := r.poll(ctx, func(ctx context.Context) (bool, error) {
		left = nil
		for _, gvk := range []schema.GroupVersionKind{
			appsv1.SchemeGroupVersion.WithKind("Deployment"), corev1.SchemeGroupVersion.WithKind("Service"),
			corev1.SchemeGroupVersion.WithKind("ServiceAccount"), corev1.SchemeGroupVersion.WithKind("Secret"),
			corev1.SchemeGroupVersion.WithKind("ConfigMap"), rbacv1.SchemeGroupVersion.WithKind("Role"),
			rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
		} {
			list, err := listOf(ctx, r.client, gvk)
			if err != nil {
				return false, err
			}
			for i := range list {
				if slices.ContainsFunc(list[i].OwnerReferences, ownedByOperatorsKind) {
					left = append(left, gvk.Kind+" "+list[i].Namespace+"/"+list[i].Name)
				}
			}
		}
		return len(left) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the garbage collector to delete %s: %w", enumerate(left), err)
	}
	return nil
}

// ownedByOperatorsKind reports whether an owner is of a kind of operators.coreos.com.
func ownedByOperatorsKind(ref metav1.OwnerReference) bool {
	group, _, _ := strings.Cut(ref.APIVersion, "/")
	return group == operatorsv1alpha1.GroupName
}

// deleteObject deletes an object. If release is set, it removes the supervisor's finalizers.
func (r *remover) deleteObject(ctx context.Context, o *metav1.PartialObjectMetadata, release bool) error {
	if release && finalized(o) {
		before := o.DeepCopy()
		o.Finalizers = slices.DeleteFunc(slices.Clone(o.Finalizers), func(name string) bool { return slices.Contains(finalizers(), name) })
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := r.client.Patch(ctx, o, patch); err != nil && !isAbsent(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("removing the finalizers of %s %s/%s: %w", o.Kind, o.Namespace, o.Name, err)
		}
	}
	if !o.DeletionTimestamp.IsZero() {
		return nil
	}
	if err := r.client.Delete(ctx, o); err != nil && !isAbsent(err) {
		return fmt.Errorf("deleting %s %s/%s: %w", o.Kind, o.Namespace, o.Name, err)
	}
	return nil
}

func (r *remover) poll(ctx context.Context, done wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextTimeout(ctx, pollInterval, r.timeout, true, done) //nolint:wrapcheck // the callers say what for
}
