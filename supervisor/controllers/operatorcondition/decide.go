package operatorcondition

import (
	"fmt"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/opcondition"
)

// input is a version with its objects; nil for a missing object.
type input struct {
	csv       *operatorsv1alpha1.ClusterServiceVersion
	condition *operatorsv2.OperatorCondition
	role      *rbacv1.Role
	binding   *rbacv1.RoleBinding
	now       time.Time
	// replaced is true if a version exists that replaces this one.
	replaced bool
}

// decision lists the necessary changes.
type decision struct {
	// apply lists the objects to write.
	apply []client.Object
	// recreate is an owned binding to another role. Its roleRef is immutable, so it is deleted. The
	// deletion event then triggers its recreation.
	recreate *rbacv1.RoleBinding
	// conditions are the wanted conditions in the status. updateStatus is true if they must be written now.
	conditions   []metav1.Condition
	updateStatus bool
	// otherOwners describes objects of other owners with the needed names; empty if there are none.
	otherOwners string
}

// decide compares the objects of a version with the wanted ones. The role and its binding follow
// after their owner exists.
func decide(o input) decision {
	if !wanted(o.csv) || (o.condition != nil && !o.condition.DeletionTimestamp.IsZero()) {
		return decision{}
	}
	want := desiredCondition(o.csv, o.condition)
	if o.condition == nil {
		return decision{apply: []client.Object{want}}
	}
	accounts := want.Spec.ServiceAccounts
	if o.replaced {
		// A changed spec would increase the generation and make the operator's reports outdated.
		// The upgrade is blocked by these reports.
		want.Spec.Deployments, want.Spec.ServiceAccounts = o.condition.Spec.Deployments, o.condition.Spec.ServiceAccounts
	}
	var d decision
	changed := !sameCondition(o.condition, want)
	if changed {
		d.apply = append(d.apply, want)
	}
	d.decideRole(o)
	d.decideBinding(o, desiredBinding(o.condition, accounts))
	d.conditions = opcondition.Conditions(o.condition, o.now)
	// The apply may increase the generation, and the annotation must name a condition type before
	// the status has it.
	d.updateStatus = !changed && !equality.Semantic.DeepEqual(d.conditions, o.condition.Status.Conditions)
	return d
}

// wanted reports whether a version needs an OperatorCondition. A copy needs none, because the
// operator uses that of the original.
func wanted(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	if csv == nil || !csv.DeletionTimestamp.IsZero() {
		return false
	}
	_, copied := csv.Labels[operatorsv1alpha1.CopiedLabelKey]
	return !copied
}

// replaces reports whether a version replaces the one with the given name in its namespace.
func replaces(csv *operatorsv1alpha1.ClusterServiceVersion, name string) bool {
	return csv.Name != name && csv.Spec.Replaces == name && wanted(csv)
}

func (d *decision) decideRole(o input) {
	want := desiredRole(o.condition)
	switch {
	case o.role == nil:
		d.apply = append(d.apply, want)
	case !owns(o.role, o.condition):
		d.addOtherOwner("Role", o.role)
	case !sameMeta(o.role, want) || !equality.Semantic.DeepEqual(o.role.Rules, want.Rules):
		d.apply = append(d.apply, want)
	}
}

func (d *decision) decideBinding(o input, want *rbacv1.RoleBinding) {
	switch {
	case o.binding == nil:
		d.apply = append(d.apply, want)
	case !owns(o.binding, o.condition):
		d.addOtherOwner("RoleBinding", o.binding)
	case o.binding.RoleRef != want.RoleRef:
		d.recreate = o.binding
	case !sameMeta(o.binding, want) || !sameSubjects(o.binding.Subjects, want.Subjects):
		d.apply = append(d.apply, want)
	}
}

// addOtherOwner records an object of another owner that has a needed name.
func (d *decision) addOtherOwner(kind string, o client.Object) {
	if d.otherOwners != "" {
		d.otherOwners += "; "
	}
	d.otherOwners += fmt.Sprintf("%s %s/%s was not created for this OperatorCondition and is not changed; "+
		"until it is deleted, the operator may be unable to report conditions", kind, o.GetNamespace(), o.GetName())
}

// owns reports whether an OperatorCondition with this name owns an object, no matter which
// lifecycle manager created it. An object without an owner belongs to the bundle or to a user.
func owns(o client.Object, c *operatorsv2.OperatorCondition) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return ref.Kind == kindCondition && ref.Name == c.Name && strings.HasPrefix(ref.APIVersion, operatorsv2.GroupVersion.Group+"/")
	})
}

func sameCondition(have, want *operatorsv2.OperatorCondition) bool {
	return sameMeta(have, want) &&
		have.Annotations[api.AnnotationShownConditions] == want.Annotations[api.AnnotationShownConditions] &&
		slices.Equal(have.Spec.Deployments, want.Spec.Deployments) &&
		slices.Equal(have.Spec.ServiceAccounts, want.Spec.ServiceAccounts)
}

// sameMeta reports whether an object has the wanted owner and label.
func sameMeta(have, want client.Object) bool {
	owner := want.GetOwnerReferences()[0].UID
	owned := slices.ContainsFunc(have.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == owner })
	return owned && have.GetLabels()[api.LabelManaged] == "true"
}

// sameSubjects compares service accounts as sets. It ignores the API group, which clients may omit.
func sameSubjects(have, want []rbacv1.Subject) bool {
	return accounts(have).Equal(accounts(want))
}

func accounts(subjects []rbacv1.Subject) sets.Set[rbacv1.Subject] {
	out := sets.New[rbacv1.Subject]()
	for _, s := range subjects {
		out.Insert(rbacv1.Subject{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name})
	}
	return out
}
