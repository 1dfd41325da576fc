package cleanup_test

import (
	"context"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// compared are the kinds of the inventory: all that an operator and its clean-up touch.
// Definitions are looked at by themselves.
func compared(namespaces []string) []schema.GroupVersionKind {
	rbac := schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}
	admission := schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: "v1"}
	operators := schema.GroupVersion{Group: "operators.coreos.com", Version: "v1alpha1"}
	core, apps := schema.GroupVersion{Version: "v1"}, schema.GroupVersion{Group: "apps", Version: "v1"}
	kinds := []schema.GroupVersionKind{
		rbac.WithKind("ClusterRole"), rbac.WithKind("ClusterRoleBinding"), rbac.WithKind("Role"), rbac.WithKind("RoleBinding"),
		admission.WithKind("ValidatingWebhookConfiguration"), admission.WithKind("MutatingWebhookConfiguration"),
		{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
		operators.WithKind("ClusterServiceVersion"), operators.WithKind("InstallPlan"), operators.WithKind("Subscription"),
		{Group: "operators.coreos.com", Version: "v2", Kind: "OperatorCondition"},
		{Group: "operators.coreos.com", Version: "v1", Kind: "OperatorGroup"},
		{Group: "operators.coreos.com", Version: "v1", Kind: "Operator"},
		core.WithKind("Namespace"), core.WithKind("ServiceAccount"), core.WithKind("Secret"), core.WithKind("Service"),
		core.WithKind("ConfigMap"), core.WithKind("Pod"), apps.WithKind("Deployment"), apps.WithKind("ReplicaSet"),
		{Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice"},
		{Group: apiGroup(bystander), Version: "v1", Kind: "Cup"},
	}
	for _, namespace := range namespaces {
		kinds = append(kinds, schema.GroupVersionKind{Group: apiGroup(namespace), Version: "v1", Kind: "Cup"})
	}
	return kinds
}

// inventory names every object of the compared kinds, by its UID too, and how definitions
// convert; sorted. What belongs to a group or to a definition is theirs, and follows them and
// not the operator.
func inventory(ctx context.Context, c client.Reader, namespaces []string) ([]string, error) {
	var lines []string
	for _, gvk := range compared(namespaces) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err := c.List(ctx, list); err != nil {
			return nil, fmt.Errorf("listing every %s: %w", gvk.Kind, err)
		}
		for i := range list.Items {
			if o := &list.Items[i]; !isTheirs(o) {
				lines = append(lines, fmt.Sprintf("%s %s/%s %s", gvk.Kind, o.Namespace, o.Name, o.UID))
			}
		}
	}
	var definitions apiextensionsv1.CustomResourceDefinitionList
	if err := c.List(ctx, &definitions); err != nil {
		return nil, fmt.Errorf("listing every CustomResourceDefinition: %w", err)
	}
	for i := range definitions.Items {
		o := &definitions.Items[i]
		lines = append(lines, fmt.Sprintf("CustomResourceDefinition /%s %s converts by %s", o.Name, o.UID, o.Spec.Conversion.Strategy))
	}
	slices.Sort(lines)
	return lines, nil
}

func isTheirs(o *metav1.PartialObjectMetadata) bool {
	return o.Labels["olm.owner.kind"] == "OperatorGroup" || slices.ContainsFunc(o.OwnerReferences, func(ref metav1.OwnerReference) bool {
		return ref.Kind == "CustomResourceDefinition"
	})
}
