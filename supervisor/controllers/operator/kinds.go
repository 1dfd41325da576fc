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

// kind is a kind of component and how it is read.
type kind struct {
	gvk schema.GroupVersionKind
	// typed returns an empty object and an empty list if other controllers cache complete objects
	// of the kind. Other kinds are read as metadata.
	typed func() (client.Object, client.ObjectList)
	// managed is true if only objects that were created for operators are cached.
	managed bool
	// definitions is true if objects of the kind are in the cache of CustomResourceDefinitions.
	definitions bool
	// named is true if objects of the kind are not cached but read by name.
	named bool
	// cluster is true if the kind is cluster-scoped.
	cluster bool
	// ownable is true if a version can own objects of the kind.
	ownable bool
	// conditions is true if objects of the kind have conditions.
	conditions bool
}

// kinds returns the kinds of components.
func kinds() []kind {
	return append(workloads(), apis()...)
}

// workloads returns the built-in kinds of an operator's objects.
func workloads() []kind {
	return []kind{
		// Secrets come first: labelling them causes no event, but labelling the later kinds does.
		secretKind(),
		{gvk: appsv1.SchemeGroupVersion.WithKind("Deployment"), ownable: true, conditions: true, typed: func() (client.Object, client.ObjectList) {
			return &appsv1.Deployment{}, &appsv1.DeploymentList{}
		}},
		{gvk: corev1.SchemeGroupVersion.WithKind("Service"), ownable: true, managed: true},
		{gvk: corev1.SchemeGroupVersion.WithKind("ConfigMap"), ownable: true, managed: true},
		{gvk: corev1.SchemeGroupVersion.WithKind("ServiceAccount"), ownable: true},
		{gvk: rbacv1.SchemeGroupVersion.WithKind("Role"), ownable: true, typed: func() (client.Object, client.ObjectList) {
			return &rbacv1.Role{}, &rbacv1.RoleList{}
		}},
		{gvk: rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), ownable: true, typed: func() (client.Object, client.ObjectList) {
			return &rbacv1.RoleBinding{}, &rbacv1.RoleBindingList{}
		}},
		{gvk: rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), ownable: true, cluster: true, typed: func() (client.Object, client.ObjectList) {
			return &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleList{}
		}},
		{gvk: rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), ownable: true, cluster: true, typed: func() (client.Object, client.ObjectList) {
			return &rbacv1.ClusterRoleBinding{}, &rbacv1.ClusterRoleBindingList{}
		}},
		{gvk: corev1.SchemeGroupVersion.WithKind("Namespace"), cluster: true},
	}
}

// apis returns the kinds that define APIs and those of operators.coreos.com.
func apis() []kind {
	return []kind{
		crdKind(),
		{
			gvk:     schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
			cluster: true, ownable: true, managed: true, conditions: true,
		},
		{gvk: operatorsv1alpha1.SchemeGroupVersion.WithKind("Subscription"), conditions: true, typed: func() (client.Object, client.ObjectList) {
			return &operatorsv1alpha1.Subscription{}, &operatorsv1alpha1.SubscriptionList{}
		}},
		{gvk: operatorsv1alpha1.SchemeGroupVersion.WithKind("InstallPlan"), conditions: true, typed: func() (client.Object, client.ObjectList) {
			return &operatorsv1alpha1.InstallPlan{}, &operatorsv1alpha1.InstallPlanList{}
		}},
		versionKind(),
		{gvk: operatorsv2.GroupVersion.WithKind("OperatorCondition"), ownable: true, conditions: true, typed: func() (client.Object, client.ObjectList) {
			return &operatorsv2.OperatorCondition{}, &operatorsv2.OperatorConditionList{}
		}},
	}
}

func versionKind() kind {
	return kind{
		gvk:        operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.ClusterServiceVersionKind),
		conditions: true,
		typed: func() (client.Object, client.ObjectList) {
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
		typed: func() (client.Object, client.ObjectList) {
			return &apiextensionsv1.CustomResourceDefinition{}, &apiextensionsv1.CustomResourceDefinitionList{}
		},
	}
}

// object returns an empty object of the kind, in the form in which it is read.
func (k kind) object() client.Object {
	if k.typed != nil {
		object, _ := k.typed()
		return object
	}
	return k.metadata()
}

// metadata returns an empty metadata object of the kind.
func (k kind) metadata() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(k.gvk)
	return object
}

func (k kind) list() client.ObjectList {
	if k.typed != nil {
		_, list := k.typed()
		return list
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(k.gvk.GroupVersion().WithKind(k.gvk.Kind + "List"))
	return list
}

// readers holds the readers. shared is the cache of all controllers. managed is the metadata of
// objects that were created for operators, for kinds without another cache. definitions is the
// cache of CustomResourceDefinitions. live reads from the API server.
type readers struct {
	shared, managed, definitions, live client.Reader
}

// readOnly avoids copies of objects that are only read.
const readOnly = client.UnsafeDisableDeepCopy

// each calls visit for the objects of a kind that the options select.
func (m readers) each(ctx context.Context, k kind, visit func(client.Object), opts ...client.ListOption) error {
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

func (m readers) of(k kind) client.Reader {
	switch {
	case k.managed:
		return m.managed
	case k.definitions:
		return m.definitions
	default:
		return m.shared
	}
}
