package operatorgroup

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/providedapis"
)

// level is how much a role allows: the three that Kubernetes has roles for users
// of namespaces for.
type level string

const (
	admin level = "admin"
	edit  level = "edit"
	view  level = "view"
)

func levels() []level { return []level{admin, edit, view} }

// verbs are what a role of the level allows on an API.
func (l level) verbs() []string {
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
	// kubernetesPrefix, followed by a level, is the label by which Kubernetes
	// gathers rules in its own roles admin, edit and view.
	kubernetesPrefix = "rbac.authorization.k8s.io/aggregate-to-"
)

// aggregationLabel is the label of the roles for an API that the role of a group
// with that API gathers.
func aggregationLabel(gvk schema.GroupVersionKind, l level) string {
	return api.PrefixAggregate + providedapis.Hash(gvk) + "-" + string(l)
}
