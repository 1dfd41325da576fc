package discovery

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// A Target is what is looked for. It is comparable.
type Target struct {
	// GroupVersionKind is the API. Without a version, any that is served will do.
	schema.GroupVersionKind

	// Resource is the name by which objects of the kind are asked for, as
	// servicemonitors; empty where it is to be looked up.
	Resource string
	// Namespace is where objects of the kind are to be read; empty for everywhere.
	Namespace string
	// Keeper tells how to find who reconciles the kind; zero where that is no matter.
	Keeper Keeper
}

// String names the API as kubectl does: servicemonitors.v1.monitoring.coreos.com.
func (t Target) String() string {
	api := t.Kind
	if api == "" {
		api = t.Resource
	}
	switch {
	case t.Group == "" && t.Version == "":
	case t.Group == "":
		api += "." + t.Version
	case t.Version == "":
		api += "." + t.Group
	default:
		api += "." + t.Version + "." + t.Group
	}
	if t.Namespace != "" {
		api += " in namespace " + t.Namespace
	}
	return api
}

// validate reports targets that cannot be asked for.
func (t Target) validate() error {
	if t.Kind == "" && t.Resource == "" {
		return fmt.Errorf("discovering an API of the group %q: it has neither a kind nor a resource", t.Group)
	}
	return nil
}

// incomplete says whether the name or the version of the resource is to be looked up.
func (t Target) incomplete() bool { return t.Resource == "" || t.Version == "" || t.Kind == "" }

// A Keeper tells how to find who reconciles a kind: each thing that is named is looked
// at, and one that is not well is enough to call the kind degraded. It is comparable.
type Keeper struct {
	// Owned looks for the ClusterServiceVersion that owns the CustomResourceDefinition.
	Owned bool
	// Deployment is the operator's own, by name.
	Deployment types.NamespacedName
	// Selector finds Deployments by label, in the namespace of Deployment or everywhere.
	Selector string
	// Lease is what the operator's leader holds; without a namespace, in any.
	Lease types.NamespacedName
}
