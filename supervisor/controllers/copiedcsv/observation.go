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

// observation is what is known of a version and of what was copied of it.
type observation struct {
	now time.Time
	// key names the version, which may be gone.
	key types.NamespacedName
	// origin is the version; nil when it is gone.
	origin *operatorsv1alpha1.ClusterServiceVersion
	// groups are the OperatorGroups of its namespace.
	groups []operatorsv1.OperatorGroup
	// allGroups are those of all namespaces.
	allGroups []operatorsv1.OperatorGroup
	// namespaces are those that are there to stay.
	namespaces sets.Set[string]
	// enabled says whether versions that serve all namespaces are copied.
	enabled bool
	// protected are the namespaces that get copies even so.
	protected []string

	// copies are the copies of the version, by namespace.
	copies map[string]*metav1.PartialObjectMetadata
	// taken says of namespaces what else has the version's name there.
	taken map[string]string

	// rights are those of the version in its own namespace.
	rights rights
	// granted are the copies of rights, by namespace.
	granted map[string]rights
}

// rights are roles and bindings of one namespace.
type rights struct {
	roles    []rbacv1.Role
	bindings []rbacv1.RoleBinding
}
