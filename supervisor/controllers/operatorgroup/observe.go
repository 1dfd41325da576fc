package operatorgroup

import (
	"context"
	"fmt"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// observe reads the inputs of the group's status.
func (r *reconciler) observe(ctx context.Context, group *operatorsv1.OperatorGroup) (statusInput, error) {
	o := statusInput{Group: group}
	var siblings operatorsv1.OperatorGroupList
	if err := r.client.List(ctx, &siblings, client.InNamespace(group.Namespace)); err != nil {
		return o, fmt.Errorf("listing OperatorGroups in namespace %s: %w", group.Namespace, err)
	}
	for i := range siblings.Items {
		if siblings.Items[i].Name != group.Name {
			o.Siblings = append(o.Siblings, siblings.Items[i].Name)
		}
	}
	var err error
	if o.Account, err = r.account(ctx, group); err != nil || isEmptySelector(group.Spec.Selector) {
		return o, err
	}
	list := namespaceMetadataList()
	if err := r.client.List(ctx, list); err != nil {
		return o, fmt.Errorf("listing namespaces: %w", err)
	}
	for i := range list.Items {
		o.Namespaces = append(o.Namespaces, namespace{Name: list.Items[i].Name, Labels: list.Items[i].Labels})
	}
	return o, nil
}

// account returns the ServiceAccount in the spec of a group; nil if the spec has none or it does
// not exist.
func (r *reconciler) account(ctx context.Context, group *operatorsv1.OperatorGroup) (*metav1.PartialObjectMetadata, error) {
	if group.Spec.ServiceAccountName == "" {
		return nil, nil //nolint:nilnil // Absence is an answer here, and documented.
	}
	key := client.ObjectKey{Namespace: group.Namespace, Name: group.Spec.ServiceAccountName}
	account := accountMetadata()
	err := r.client.Get(ctx, key, account)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // The same.
	}
	if err != nil {
		return nil, fmt.Errorf("getting ServiceAccount %s: %w", key, err)
	}
	return account, nil
}

// namespaceMetadata returns an empty object for reading and watching namespaces as metadata.
func namespaceMetadata() *metav1.PartialObjectMetadata {
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return ns
}

func namespaceMetadataList() *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	return list
}
