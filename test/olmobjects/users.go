package olmobjects

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api/providedapis"
)

// conditions creates the OperatorCondition of a version and the permissions for it.
func (w Writer) conditions(ctx context.Context, o *Operator, csv *operatorsv1alpha1.ClusterServiceVersion) error {
	managed := map[string]string{"olm.managed": "true"}
	condition := &operatorsv2.OperatorCondition{ObjectMeta: metav1.ObjectMeta{
		Namespace: csv.Namespace, Name: csv.Name, Labels: withComponent(o, map[string]string{"olm.managed": "true"}), OwnerReferences: reference(csv),
	}}
	condition.OwnerReferences[0].Controller, condition.OwnerReferences[0].BlockOwnerDeletion = new(true), new(true)
	accounts := map[string]bool{}
	for _, d := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		condition.Spec.Deployments = append(condition.Spec.Deployments, d.Name)
		accounts[d.Spec.Template.Spec.ServiceAccountName] = true
	}
	condition.Spec.ServiceAccounts = slices.Sorted(maps.Keys(accounts))
	if err := w.create(ctx, byOLM, condition); err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Namespace: csv.Namespace, Name: csv.Name, Labels: managed, OwnerReferences: []metav1.OwnerReference{{
		APIVersion: operatorsv2.GroupVersion.String(), Kind: "OperatorCondition", Name: condition.Name, UID: condition.UID,
		Controller: new(true), BlockOwnerDeletion: new(true),
	}}}
	var bound []rbacv1.Subject
	for _, account := range condition.Spec.ServiceAccounts {
		bound = append(bound, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: csv.Namespace})
	}
	return w.create(ctx, byOLM,
		&rbacv1.Role{ObjectMeta: *meta.DeepCopy(), Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"operators.coreos.com"}, Resources: []string{"operatorconditions"}, ResourceNames: []string{csv.Name}, Verbs: []string{"get", "update", "patch"},
		}}},
		&rbacv1.RoleBinding{ObjectMeta: *meta.DeepCopy(), RoleRef: roleRef("Role", csv.Name), Subjects: bound})
}

// roles creates the roles of users: for each API, and the aggregating ones of the OperatorGroup.
func (w Writer) roles(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion, group *operatorsv1.OperatorGroup) error {
	verbs := map[string][]string{"admin": {"*"}, "edit": {"create", "update", "patch", "delete"}, "view": {"get", "list", "watch"}}
	for suffix := range verbs {
		role := &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("olm.og.%s.%s-%s", group.Name, suffix, Hash62(group.Namespace+"/"+group.Name+"/"+suffix)),
				Labels: map[string]string{
					"olm.managed": "true", "olm.owner": group.Name, "olm.owner.namespace": group.Namespace, "olm.owner.kind": "OperatorGroup",
				},
			},
			AggregationRule: &rbacv1.AggregationRule{},
		}
		for _, k := range kinds(csv) {
			role.AggregationRule.ClusterRoleSelectors = append(role.AggregationRule.ClusterRoleSelectors,
				metav1.LabelSelector{MatchLabels: map[string]string{aggregation(k, suffix): "true"}})
		}
		if err := w.create(ctx, byOLM, role); err != nil {
			return err
		}
	}
	for i, d := range csv.Spec.CustomResourceDefinitions.Owned {
		k := kinds(csv)[i]
		plural, _, _ := strings.Cut(d.Name, ".")
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := w.Client.Get(ctx, client.ObjectKey{Name: d.Name}, crd); err != nil {
			return fmt.Errorf("reading a definition: %w", err)
		}
		owner := []metav1.OwnerReference{{
			APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: crd.Name, UID: crd.UID,
			Controller: new(false), BlockOwnerDeletion: new(false),
		}}
		for suffix, allowed := range verbs {
			if err := w.create(ctx, byOLM, apiRole(d.Name+"-"+d.Version+"-"+suffix, k, suffix, owner,
				rbacv1.PolicyRule{Verbs: allowed, APIGroups: []string{k.Group}, Resources: []string{plural}})); err != nil {
				return err
			}
		}
		if err := w.create(ctx, byOLM, apiRole(d.Name+"-"+d.Version+"-crdview", k, "view", owner, rbacv1.PolicyRule{
			Verbs: []string{"get"}, APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"},
			ResourceNames: []string{d.Name},
		})); err != nil {
			return err
		}
	}
	return nil
}

func aggregation(k schema.GroupVersionKind, suffix string) string {
	return "olm.opgroup.permissions/aggregate-to-" + providedapis.Hash(k) + "-" + suffix
}

func apiRole(name string, k schema.GroupVersionKind, suffix string, owner []metav1.OwnerReference, rule rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owner, Labels: map[string]string{
			"olm.managed": "true", "rbac.authorization.k8s.io/aggregate-to-" + suffix: "true", aggregation(k, suffix): "true",
		}},
		Rules: []rbacv1.PolicyRule{rule},
	}
}

// copies creates the copies of a version that serves all namespaces.
func (w Writer) copies(ctx context.Context, o *Operator, csv *operatorsv1alpha1.ClusterServiceVersion) error {
	if !o.Global {
		return nil
	}
	var namespaces corev1.NamespaceList
	if err := w.Client.List(ctx, &namespaces); err != nil {
		return fmt.Errorf("listing namespaces: %w", err)
	}
	for i := range namespaces.Items {
		if namespaces.Items[i].Name == csv.Namespace {
			continue
		}
		copied := &operatorsv1alpha1.ClusterServiceVersion{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespaces.Items[i].Name, Name: csv.Name,
				Labels: maps.Clone(csv.Labels), Annotations: maps.Clone(csv.Annotations),
			},
			Spec: *csv.Spec.DeepCopy(), Status: *csv.Status.DeepCopy(),
		}
		maps.DeleteFunc(copied.Labels, func(key, _ string) bool { return strings.HasPrefix(key, "operators.coreos.com/") })
		copied.Labels["olm.copiedFrom"] = csv.Namespace
		delete(copied.Annotations, "olm.targetNamespaces")
		copied.Status.Reason = operatorsv1alpha1.CSVReasonCopied
		copied.Status.Message = "The operator is running in " + csv.Namespace + " but is managing this namespace"
		if err := w.create(ctx, byOLM, copied); err != nil {
			return err
		}
	}
	return nil
}

// told writes the status of the Subscription.
func (w Writer) told(ctx context.Context, sub *operatorsv1alpha1.Subscription, plan *operatorsv1alpha1.InstallPlan,
	csv *operatorsv1alpha1.ClusterServiceVersion,
) error {
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	sub.Status = operatorsv1alpha1.SubscriptionStatus{
		CurrentCSV: csv.Name, InstalledCSV: csv.Name, State: operatorsv1alpha1.SubscriptionStateAtLatest, LastUpdated: now,
		InstallPlanGeneration: 1,
		InstallPlanRef: &corev1.ObjectReference{
			APIVersion: operatorsv1alpha1.SchemeGroupVersion.String(), Kind: operatorsv1alpha1.InstallPlanKind,
			Namespace: plan.Namespace, Name: plan.Name, UID: plan.UID, ResourceVersion: plan.ResourceVersion,
		},
		Install: &operatorsv1alpha1.InstallPlanReference{
			APIVersion: operatorsv1alpha1.SchemeGroupVersion.String(), Kind: operatorsv1alpha1.InstallPlanKind, Name: plan.Name, UID: plan.UID,
		},
		Conditions: []operatorsv1alpha1.SubscriptionCondition{{
			Type: operatorsv1alpha1.SubscriptionCatalogSourcesUnhealthy, Status: corev1.ConditionFalse,
			Reason: "AllCatalogSourcesHealthy", Message: "all available catalogsources are healthy", LastTransitionTime: &now,
		}},
	}
	if err := w.Client.Status().Update(ctx, sub, byCatalog); err != nil {
		return fmt.Errorf("writing the status of Subscription %s: %w", sub.Name, err)
	}
	return nil
}
