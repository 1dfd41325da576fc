package operatorgroup

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/providedapis"
)

// accessLevel is the level of access that a role grants. Kubernetes has built-in user roles for the same
// three levels.
type accessLevel string

const (
	admin accessLevel = "admin"
	edit  accessLevel = "edit"
	view  accessLevel = "view"
)

func accessLevels() []accessLevel { return []accessLevel{admin, edit, view} }

// verbs returns the verbs that a role of the level allows on an API.
func (l accessLevel) verbs() []string {
	switch l {
	case admin:
		return []string{"*"}
	case edit:
		return []string{"create", "update", "patch", "delete"}
	default:
		return []string{"get", "list", "watch"}
	}
}

const (
	// kubernetesPrefix with a level appended is the label by which the built-in roles admin, edit
	// and view aggregate rules.
	kubernetesPrefix = "rbac.authorization.k8s.io/aggregate-to-"
)

// aggregationLabel returns the label by which the role of a group aggregates the roles for an API.
func aggregationLabel(gvk schema.GroupVersionKind, l accessLevel) string {
	return api.PrefixAggregate + providedapis.Hash(gvk) + "-" + string(l)
}
