package operator

import (
	"context"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kind is a kind of component, and how it is read.
type kind struct {
	gvk schema.GroupVersionKind
	// whole makes an object and a list of the kind where other controllers keep whole
	// objects in memory; the rest is known by its metadata.
	whole func() (client.Object, client.ObjectList)
	// managed says that only what is made for operators is kept.
	managed bool
	// definitions says that objects of the kind are in the cache of definitions.
	definitions bool
	// named says that objects of the kind are in no cache, and are read by their names.
	named bool
	// cluster says that objects of the kind have no namespace.
	cluster bool
	// ownable says that a version may own objects of the kind.
	ownable bool
	// conditions says that objects of the kind have conditions.
	conditions bool
}

// kinds are the kinds that components are of.
func kinds() []kind {
	return append(workloads(), apis()...)
}

// workloads are the kinds that Kubernetes brings and that are made for an operator.
func workloads() []kind {
	return []kind{
		// Nothing tells that one of these was labelled: labels that come after do.
		secretKind(),
		{gvk: appsv1.SchemeGroupVersion.WithKind("Deployment"), ownable: true, conditions: true, whole: func() (client.Object, client.ObjectList) {
			return &appsv1.Deployment{}, &appsv1.DeploymentList{}
		}},
		{gvk: corev1.SchemeGroupVersion.WithKind("Service"), ownable: true, managed: true},
		{gvk: corev1.SchemeGroupVersion.WithKind("ConfigMap"), ownable: true, managed: true},
		{gvk: corev1.SchemeGroupVersion.WithKind("ServiceAccount"), ownable: true},
		{gvk: rbacv1.SchemeGroupVersion.WithKind("Role"), ownable: true, whole: func() (client.Object, client.ObjectList) {
			return &rbacv1.Role{}, &rbacv1.RoleList{}
		}},
		{gvk: rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), ownable: true, whole: func() (client.Object, client.ObjectList) {
			return &rbacv1.RoleBinding{}, &rbacv1.RoleBindingList{}
		}},
		{gvk: rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), ownable: true, cluster: true, whole: func() (client.Object, client.ObjectList) {
			return &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleList{}
		}},
		{gvk: rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), ownable: true, cluster: true, whole: func() (client.Object, client.ObjectList) {
			return &rbacv1.ClusterRoleBinding{}, &rbacv1.ClusterRoleBindingList{}
		}},
		{gvk: corev1.SchemeGroupVersion.WithKind("Namespace"), cluster: true},
	}
}

// apis are the kinds that define APIs, and those of operators.coreos.com.
func apis() []kind {
	return []kind{
		crdKind(),
		{
			gvk:     schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
			cluster: true, ownable: true, managed: true, conditions: true,
		},
		{gvk: operatorsv1alpha1.SchemeGroupVersion.WithKind("Subscription"), conditions: true, whole: func() (client.Object, client.ObjectList) {
			return &operatorsv1alpha1.Subscription{}, &operatorsv1alpha1.SubscriptionList{}
		}},
		{gvk: operatorsv1alpha1.SchemeGroupVersion.WithKind("InstallPlan"), conditions: true, whole: func() (client.Object, client.ObjectList) {
			return &operatorsv1alpha1.InstallPlan{}, &operatorsv1alpha1.InstallPlanList{}
		}},
		versionKind(),
		{gvk: operatorsv2.GroupVersion.WithKind("OperatorCondition"), ownable: true, conditions: true, whole: func() (client.Object, client.ObjectList) {
			return &operatorsv2.OperatorCondition{}, &operatorsv2.OperatorConditionList{}
		}},
	}
}

func versionKind() kind {
	return kind{
		gvk:        operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.ClusterServiceVersionKind),
		conditions: true,
		whole: func() (client.Object, client.ObjectList) {
			return &operatorsv1alpha1.ClusterServiceVersion{}, &operatorsv1alpha1.ClusterServiceVersionList{}
		},
	}
}

func secretKind() kind {
	return kind{gvk: corev1.SchemeGroupVersion.WithKind("Secret"), ownable: true, named: true}
}

func crdKind() kind {
	return kind{
		gvk: apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), cluster: true, conditions: true, definitions: true,
		whole: func() (client.Object, client.ObjectList) {
			return &apiextensionsv1.CustomResourceDefinition{}, &apiextensionsv1.CustomResourceDefinitionList{}
		},
	}
}

// object is a new object of a kind, in the form in which the kind is read.
func (k kind) object() client.Object {
	if k.whole != nil {
		object, _ := k.whole()
		return object
	}
	return k.metadata()
}

// metadata is a new object of a kind that has nothing else.
func (k kind) metadata() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(k.gvk)
	return object
}

func (k kind) list() client.ObjectList {
	if k.whole != nil {
		_, list := k.whole()
		return list
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(k.gvk.GroupVersion().WithKind(k.gvk.Kind + "List"))
	return list
}

// memory is what is read: what the controllers share, the metadata of what is made
// for operators, of kinds that no other cache keeps, and definitions; live reads past all.
type memory struct {
	shared, managed, definitions, live client.Reader
}

// readOnly spares copies of what is only looked at.
const readOnly = client.UnsafeDisableDeepCopy

// each visits the objects of a kind that the options select.
func (m memory) each(ctx context.Context, k kind, visit func(client.Object), opts ...client.ListOption) error {
	list := k.list()
	if err := m.of(k).List(ctx, list, append(opts, readOnly)...); err != nil {
		return fmt.Errorf("listing objects of kind %s: %w", k.gvk.Kind, err)
	}
	err := apimeta.EachListItem(list, func(item runtime.Object) error {
		if object, is := item.(client.Object); is {
			visit(object)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading objects of kind %s: %w", k.gvk.Kind, err)
	}
	return nil
}

func (m memory) of(k kind) client.Reader {
	switch {
	case k.managed:
		return m.managed
	case k.definitions:
		return m.definitions
	default:
		return m.shared
	}
}
