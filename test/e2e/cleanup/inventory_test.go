package cleanup_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// compared are the kinds of the inventory: all that an operator and its clean-up touch.
func compared(namespace string) []schema.GroupVersionKind {
	rbac := schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}
	admission := schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: "v1"}
	operators := schema.GroupVersion{Group: "operators.coreos.com", Version: "v1alpha1"}
	core, apps := schema.GroupVersion{Version: "v1"}, schema.GroupVersion{Group: "apps", Version: "v1"}
	return []schema.GroupVersionKind{
		rbac.WithKind("ClusterRole"), rbac.WithKind("ClusterRoleBinding"), rbac.WithKind("Role"), rbac.WithKind("RoleBinding"),
		admission.WithKind("ValidatingWebhookConfiguration"), admission.WithKind("MutatingWebhookConfiguration"),
		{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		operators.WithKind("ClusterServiceVersion"), operators.WithKind("InstallPlan"), operators.WithKind("Subscription"),
		{Group: "operators.coreos.com", Version: "v2", Kind: "OperatorCondition"},
		{Group: "operators.coreos.com", Version: "v1", Kind: "OperatorGroup"},
		{Group: "operators.coreos.com", Version: "v1", Kind: "Operator"},
		core.WithKind("Namespace"), core.WithKind("ServiceAccount"), core.WithKind("Secret"), core.WithKind("Service"),
		core.WithKind("ConfigMap"), core.WithKind("Pod"), apps.WithKind("Deployment"), apps.WithKind("ReplicaSet"),
		{Group: apiGroup(namespace), Version: "v1", Kind: "Cup"},
	}
}

// inventory names every object of the compared kinds, sorted. What belongs to a group or
// to a definition is theirs, and follows them and not the operator.
func inventory(ctx context.Context, c client.Reader, namespace string) ([]string, error) {
	var names []string
	for _, gvk := range compared(namespace) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err := c.List(ctx, list); err != nil {
			return nil, fmt.Errorf("listing every %s: %w", gvk.Kind, err)
		}
		for i := range list.Items {
			if o := &list.Items[i]; !isTheirs(o) {
				names = append(names, strings.Join([]string{gvk.Kind, o.Namespace, o.Name}, " "))
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

func isTheirs(o *metav1.PartialObjectMetadata) bool {
	return o.Labels["olm.owner.kind"] == "OperatorGroup" || slices.ContainsFunc(o.OwnerReferences, func(ref metav1.OwnerReference) bool {
		return ref.Kind == "CustomResourceDefinition"
	})
}
