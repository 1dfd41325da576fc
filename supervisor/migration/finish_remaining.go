package migration

import (
	"context"
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
)

// remaining states which NetworkPolicies, accounts and permissions of OLM stay when objects are deleted, and why.
func (f *Finish) remaining(ctx context.Context, deleted []*unstructured.Unstructured) ([]string, error) {
	namespaces, accounts := deploymentsIn(deleted)
	var (
		missing missingPermissions
		left    []string
	)
	for _, namespace := range namespaces {
		text, err := f.remainingPolicies(ctx, namespace, deleted)
		if missing.collect(err) != nil {
			return nil, err
		}
		if text != "" {
			left = append(left, text)
		}
	}
	for _, account := range accounts {
		text, err := f.remainingAccount(ctx, account, deleted)
		if missing.collect(err) != nil {
			return nil, err
		}
		if text != "" {
			left = append(left, text)
		}
	}
	return left, missing.err()
}

// deploymentsIn returns the namespaces and the ServiceAccounts of Deployments, each once.
func deploymentsIn(objects []*unstructured.Unstructured) (namespaces []string, accounts []client.ObjectKey) {
	for _, o := range objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		if !slices.Contains(namespaces, o.GetNamespace()) {
			namespaces = append(namespaces, o.GetNamespace())
		}
		name, _, _ := unstructured.NestedString(o.Object, "spec", "template", "spec", "serviceAccountName")
		if key := (client.ObjectKey{Namespace: o.GetNamespace(), Name: name}); name != "" && name != "default" && !slices.Contains(accounts, key) {
			accounts = append(accounts, key)
		}
	}
	return namespaces, accounts
}

// remainingPolicies returns a text about the NetworkPolicies of a namespace that stay; empty for none. OLM's have no label. Those
// for all pods, for catalogs and for pods that pull bundle images also apply to the pods of supervisors. Those of a catalog
// have an owner.
func (f *Finish) remainingPolicies(ctx context.Context, namespace string, deleted []*unstructured.Unstructured) (string, error) {
	all, err := f.list(ctx, networkPolicies().gvk, namespace)
	if err != nil {
		return "", err
	}
	var names []string
	for i := range all {
		isDeleted := slices.ContainsFunc(deleted, func(o *unstructured.Unstructured) bool { return objectKey(o) == objectKey(&all[i]) })
		if !isDeleted && len(all[i].GetOwnerReferences()) == 0 {
			names = append(names, all[i].GetName())
		}
	}
	slices.Sort(names)
	const reason = "may apply to pods of catalogs, to pods that pull bundle images, and to others that stay"
	switch len(names) {
	case 0:
		return "", nil
	case 1:
		return fmt.Sprintf("NetworkPolicy %s of namespace %s stays, because it %s", names[0], namespace, reason), nil
	default:
		return fmt.Sprintf("NetworkPolicies %s of namespace %s stay, because they %s", strings.Join(names, ", "), namespace, reason), nil
	}
}

// remainingAccount returns a text about a ServiceAccount that stays and those of its ClusterRoleBindings that stay; empty if it
// does not exist.
func (f *Finish) remainingAccount(ctx context.Context, account client.ObjectKey, deleted []*unstructured.Unstructured) (string, error) {
	if err := f.Client.Get(ctx, account, &corev1.ServiceAccount{}); err != nil {
		return "", client.IgnoreNotFound(err) //nolint:wrapcheck // names the object
	}
	var bindings rbacv1.ClusterRoleBindingList
	if err := f.Client.List(ctx, &bindings); err != nil {
		return "", fmt.Errorf("listing every ClusterRoleBinding: %w", err)
	}
	var grants, names []string
	for i := range bindings.Items {
		b := &bindings.Items[i]
		if !goesWithVersion(b, deleted) && slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool {
			return s.Kind == rbacv1.ServiceAccountKind && s.Namespace == account.Namespace && s.Name == account.Name
		}) {
			grants = append(grants, fmt.Sprintf("of ClusterRole %s by ClusterRoleBinding %s", b.RoleRef.Name, b.Name))
			names = append(names, b.Name)
		}
	}
	text := fmt.Sprintf("ServiceAccount %s stays, because other pods may use it", account)
	if len(names) == 0 {
		return text, nil
	}
	return fmt.Sprintf("%s; it keeps the permissions %s; to revoke them, run: kubectl delete clusterrolebinding %s",
		text, strings.Join(grants, ", and "), strings.Join(names, " ")), nil
}

// goesWithVersion reports whether one of the deleted objects is the ClusterServiceVersion that owns a binding by its labels. Its
// clean-up deletes the binding.
func goesWithVersion(b *rbacv1.ClusterRoleBinding, deleted []*unstructured.Unstructured) bool {
	labels := b.GetLabels()
	return slices.ContainsFunc(deleted, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == operatorsv1alpha1.ClusterServiceVersionKind && labels[api.LabelOwnerKind] == o.GetKind() &&
			labels[api.LabelOwnerNamespace] == o.GetNamespace() && labels[api.LabelOwner] == o.GetName()
	})
}
