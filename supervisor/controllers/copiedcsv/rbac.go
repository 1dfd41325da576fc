package copiedcsv

import (
	"maps"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// wantedRBAC returns the roles and bindings for the namespace of a copy. They match those of the
// version's own namespace that the version declares. Without that restriction, a user who creates
// roles in the version's namespace could label one and have it copied to other namespaces.
func wantedRBAC(o *input, copied *metav1.PartialObjectMetadata) rbac {
	var want rbac
	if o.origin == nil {
		return want
	}
	accounts := map[string][]string{} // by role name, the service accounts that declare it
	for i := range o.rbac.roles {
		r := &o.rbac.roles[i]
		named := plansteps.DeclaredFor(o.origin, r.Rules)
		if isDeleting(r) || len(named) == 0 {
			continue
		}
		accounts[r.Name] = named
		want.roles = append(want.roles, rbacv1.Role{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
			ObjectMeta: rbacMeta(o, r, copied),
			Rules:      r.Rules,
		})
	}
	for i := range o.rbac.bindings {
		b := &o.rbac.bindings[i]
		if isDeleting(b) || !plansteps.BindsRole(b, accounts[b.RoleRef.Name]) {
			continue
		}
		want.bindings = append(want.bindings, rbacv1.RoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
			ObjectMeta: rbacMeta(o, b, copied),
			RoleRef:    b.RoleRef,
			Subjects:   b.Subjects,
		})
	}
	return want
}

// rbacMeta returns the metadata of a copied role or binding. The copy of the version owns it.
func rbacMeta(o *input, obj metav1.Object, copied *metav1.PartialObjectMetadata) metav1.ObjectMeta {
	labels := map[string]string{}
	for key, value := range obj.GetLabels() {
		if strings.HasPrefix(key, prefixPublic) {
			labels[key] = value
		}
	}
	maps.Copy(labels, plansteps.OwnerLabels(o.key.Name, copied.Namespace))
	labels[api.LabelCopiedFrom] = o.key.Namespace
	return metav1.ObjectMeta{
		Namespace: copied.Namespace, Name: obj.GetName(), Labels: labels,
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion:         operatorsv1alpha1.ClusterServiceVersionAPIVersion,
			Kind:               operatorsv1alpha1.ClusterServiceVersionKind,
			Name:               copied.Name,
			UID:                copied.UID,
			Controller:         new(false),
			BlockOwnerDeletion: new(false),
		}},
	}
}

func sameRole(have, want *rbacv1.Role) bool {
	return sameMeta(have, want) && equality.Semantic.DeepEqual(have.Rules, want.Rules)
}

func sameBinding(have, want *rbacv1.RoleBinding) bool {
	return sameMeta(have, want) && have.RoleRef == want.RoleRef && equality.Semantic.DeepEqual(have.Subjects, want.Subjects)
}

// sameMeta reports whether an object has the wanted labels and owner. Additional ones are ignored.
func sameMeta(have, want metav1.Object) bool {
	labels := have.GetLabels()
	for key, value := range want.GetLabels() {
		if got, ok := labels[key]; !ok || got != value {
			return false
		}
	}
	for _, ref := range want.GetOwnerReferences() {
		if !slices.ContainsFunc(have.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == ref.UID }) {
			return false
		}
	}
	return true
}

func roleNamed(roles []rbacv1.Role, name string) *rbacv1.Role {
	for i := range roles {
		if roles[i].Name == name {
			return &roles[i]
		}
	}
	return nil
}

func bindingNamed(bindings []rbacv1.RoleBinding, name string) *rbacv1.RoleBinding {
	for i := range bindings {
		if bindings[i].Name == name {
			return &bindings[i]
		}
	}
	return nil
}
