package copiedcsv

import (
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// input is the observed state of a version and its copies.
type input struct {
	now time.Time
	// key identifies the version, which may be gone.
	key types.NamespacedName
	// origin is the version; nil if it is gone.
	origin *operatorsv1alpha1.ClusterServiceVersion
	// groups are the OperatorGroups of its namespace.
	groups []operatorsv1.OperatorGroup
	// allGroups are the OperatorGroups of other namespaces that may contend with the version's
	// group.
	allGroups []operatorsv1.OperatorGroup
	// namespaces are the namespaces that exist and are not being deleted.
	namespaces sets.Set[string]
	// enabled is true if versions that serve all namespaces are copied.
	enabled bool
	// protected are the namespaces that get copies in any case.
	protected []string

	// copies are the copies of the version, by namespace.
	copies map[string]*metav1.PartialObjectMetadata
	// conflicts maps namespaces to a description of another object with the version's name.
	conflicts map[string]string

	// rbac are the version's roles and bindings in its own namespace; none if the version is gone.
	rbac rbac
	// granted are the roles and bindings that the copies own, by namespace. They may lack a part.
	granted map[string]rbac
}

// rbac are the roles and bindings of one namespace.
type rbac struct {
	roles    []rbacv1.Role
	bindings []rbacv1.RoleBinding
}
