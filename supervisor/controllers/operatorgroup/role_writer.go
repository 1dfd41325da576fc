package operatorgroup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/informer/cachelag"
)

// roleWriter writes cluster roles that differ from the wanted ones in the cache.
type roleWriter struct {
	client client.Client
	clock  clock.PassiveClock
	lag    *cachelag.Tracker
}

// createOrUpdate creates or updates a cluster role. have is the role in the cache; nil if there is none. It
// also takes over fields of another lifecycle manager. It returns a conflict if the role has
// changed or appeared since it was cached, because the decision is then outdated.
func (w roleWriter) createOrUpdate(ctx context.Context, want, have *rbacv1.ClusterRole) (apply.Result, error) {
	u, err := encode(want)
	if err != nil {
		return "", err
	}
	if have == nil {
		_, absent, err := apply.CreateIfAbsent(ctx, w.client, u)
		if err != nil {
			return "", fmt.Errorf("creating a role: %w", err)
		}
		if !absent {
			return "", conflictError(want.Name)
		}
		return apply.Created, nil
	}
	next := merged(want, have)
	if equality.Semantic.DeepEqual(next, have) {
		return apply.Unchanged, nil
	}
	if err := apply.Replace(ctx, w.client, next, client.FieldOwner(api.ManifestFieldManager)); err != nil {
		return "", fmt.Errorf("changing ClusterRole %s: %w", want.Name, err)
	}
	w.lag.Wrote(next, w.clock.Now())
	return apply.Updated, nil
}

// merged returns have with the wanted fields. It keeps labels and owners of others, but replaces a
// reference to the same owner by another lifecycle manager. Kubernetes sets the rules of an
// aggregated role. The resourceVersion of have prevents the update of a newer role.
func merged(want, have *rbacv1.ClusterRole) *rbacv1.ClusterRole {
	next := have.DeepCopy()
	if next.Labels == nil {
		next.Labels = map[string]string{}
	}
	maps.Copy(next.Labels, want.Labels)
	for _, owner := range want.OwnerReferences {
		next.OwnerReferences = slices.DeleteFunc(next.OwnerReferences, func(ref metav1.OwnerReference) bool {
			return ref.UID == owner.UID || ref.Name == owner.Name && strings.EqualFold(ref.Kind, owner.Kind)
		})
		next.OwnerReferences = append(next.OwnerReferences, owner)
	}
	next.AggregationRule = want.AggregationRule
	if want.Rules != nil {
		next.Rules = want.Rules
	}
	return next
}

func conflictError(name string) error {
	return apierrors.NewConflict(rbacv1.Resource("clusterroles"), name, errChanged)
}

var errChanged = errors.New("it was created or changed since it was read")

// encode returns the form of a role that is applied. It omits nil rules, which another manager
// sets. It keeps empty rules, which remove all existing ones.
func encode(role *rbacv1.ClusterRole) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(role)
	if err != nil {
		return nil, fmt.Errorf("encoding ClusterRole %s: %w", role.Name, err)
	}
	if role.Rules == nil {
		delete(content, "rules")
	}
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	return &unstructured.Unstructured{Object: content}, nil
}

// get returns a cluster role from the cache; nil if it does not exist.
func (w roleWriter) get(ctx context.Context, name string) (*rbacv1.ClusterRole, error) {
	have := &rbacv1.ClusterRole{}
	err := w.client.Get(ctx, client.ObjectKey{Name: name}, have, readOnly)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // Absence is an answer here, and documented.
	}
	if err != nil {
		return nil, fmt.Errorf("getting ClusterRole %s: %w", name, err)
	}
	return have, nil
}

// isStale reports whether the cache lacks the last write of a role.
func (w roleWriter) isStale(role *rbacv1.ClusterRole) bool { return w.lag.Behind(role, w.clock.Now()) }

// remove deletes a role if it still has the UID of role.
func (w roleWriter) remove(ctx context.Context, role *rbacv1.ClusterRole) error {
	target := &metav1.PartialObjectMetadata{}
	target.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))
	target.SetName(role.Name)
	err := apply.DeleteIf(ctx, w.client, target, apply.SameUID(role))
	// A conflict means that a newer role has the name.
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting ClusterRole %s: %w", role.Name, err)
	}
	return nil
}
