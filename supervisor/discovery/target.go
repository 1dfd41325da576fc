package discovery

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// A Target is what is checked. It is comparable.
type Target struct {
	// GroupVersionKind is the API. Without a version, any served version matches.
	schema.GroupVersionKind

	// Resource is the resource name of the kind, such as servicemonitors; empty to look it up.
	Resource string
	// Namespace is the namespace to read objects in; empty for all.
	Namespace string
	// Operator describes how to find the operator that reconciles the kind; zero to skip that.
	Operator OperatorRef
}

// String returns the name of the API as kubectl writes it: servicemonitors.v1.monitoring.coreos.com.
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

// validate returns an error for an invalid target.
func (t Target) validate() error {
	if t.Kind == "" && t.Resource == "" {
		return fmt.Errorf("discovering an API of the group %q: it has neither a kind nor a resource", t.Group)
	}
	return nil
}

// incomplete reports whether the name or the version of the resource must be looked up.
func (t Target) incomplete() bool { return t.Resource == "" || t.Version == "" || t.Kind == "" }

// An OperatorRef describes how to find the operator of a kind. Each named object is read. If one is not healthy,
// the kind is degraded. It is comparable.
type OperatorRef struct {
	// Owned looks for the ClusterServiceVersion that owns the CustomResourceDefinition.
	Owned bool
	// Deployment is the name of the operator's Deployment.
	Deployment types.NamespacedName
	// Selector finds Deployments by label, in the namespace of Deployment or everywhere.
	Selector string
	// Lease is the Lease of the operator's leader; in any namespace if it has none.
	Lease types.NamespacedName
}
