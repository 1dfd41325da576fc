package operatorgroup

import (
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chandlery/chandlery/supervisor/api"
)

// Kinds of the objects that serve an API. They own the roles of the API.
const (
	kindCRD        = "CustomResourceDefinition"
	kindAPIService = "APIService"
)

// providedAPI is one API that a ClusterServiceVersion provides, with the object that serves it.
type providedAPI struct {
	API schema.GroupVersionKind
	// Resource is the resource name of the API in rules.
	Resource string
	// Prefix is the prefix of the names of its roles.
	Prefix string
	// ServerKind and Server identify the object that owns the roles.
	ServerKind, Server string
}

// providedAPIs returns the APIs that a ClusterServiceVersion provides. If two APIs have the same role
// names, only the first one is returned. That happens for resources of the same name in two groups.
func providedAPIs(csv *operatorsv1alpha1.ClusterServiceVersion) []providedAPI {
	var out []providedAPI
	for i := range csv.Spec.CustomResourceDefinitions.Owned {
		d := &csv.Spec.CustomResourceDefinitions.Owned[i]
		plural, group, ok := strings.Cut(d.Name, ".")
		if !ok {
			continue
		}
		out = append(out, providedAPI{
			API:      schema.GroupVersionKind{Group: group, Version: d.Version, Kind: d.Kind},
			Resource: plural, Prefix: d.Name + "-" + d.Version + "-", ServerKind: kindCRD, Server: d.Name,
		})
	}
	for i := range csv.Spec.APIServiceDefinitions.Owned {
		d := &csv.Spec.APIServiceDefinitions.Owned[i]
		// A name with dots would be that of a CustomResourceDefinition.
		if len(validation.IsDNS1035Label(d.Name)) > 0 {
			continue
		}
		out = append(out, providedAPI{
			API:      schema.GroupVersionKind{Group: d.Group, Version: d.Version, Kind: d.Kind},
			Resource: d.Name, Prefix: d.Name + "-" + d.Version + "-", ServerKind: kindAPIService, Server: d.Version + "." + d.Group,
		})
	}
	taken := map[string]bool{}
	return slices.DeleteFunc(out, func(s providedAPI) bool {
		before := taken[s.Prefix]
		taken[s.Prefix] = true
		return before
	})
}

// roles returns the cluster roles for an API, one for each level. The built-in role of the level
// aggregates it as well. For a custom resource, there is another role to read its definition.
func (s providedAPI) roles() []*rbacv1.ClusterRole {
	roles := make([]*rbacv1.ClusterRole, 0, len(accessLevels())+1)
	for _, l := range accessLevels() {
		roles = append(roles, s.role(string(l), l, rbacv1.PolicyRule{
			Verbs: l.verbs(), APIGroups: []string{s.API.Group}, Resources: []string{s.Resource},
		}))
	}
	if s.ServerKind == kindCRD {
		roles = append(roles, s.role("crdview", view, rbacv1.PolicyRule{
			Verbs: []string{"get"}, APIGroups: []string{apiextensionsv1.GroupName},
			Resources: []string{"customresourcedefinitions"}, ResourceNames: []string{s.Server},
		}))
	}
	return roles
}

func (s providedAPI) role(suffix string, l accessLevel, rule rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{
			Name: s.Prefix + suffix,
			Labels: map[string]string{
				api.LabelManaged:             "true",
				kubernetesPrefix + string(l): "true",
				aggregationLabel(s.API, l):   "true",
			},
		},
		Rules: []rbacv1.PolicyRule{rule},
	}
}

// sameAPIRole reports whether a live role matches want and is owned by the object that serves the
// API. The owner's UID need not be compared, because the role is deleted with its owner.
func (s providedAPI) sameAPIRole(want, have *rbacv1.ClusterRole) bool {
	return hasLabels(have, want.Labels) && equality.Semantic.DeepEqual(have.Rules, want.Rules) &&
		slices.ContainsFunc(have.OwnerReferences, func(ref metav1.OwnerReference) bool {
			return ref.Kind == s.ServerKind && ref.Name == s.Server
		})
}

// isOwnedByOther reports whether a live role with a needed name does not belong to this API. A role
// belongs to it if the object that serves the API owns it. A role without such an owner belongs to
// it if it has an aggregation label. Some versions of OLM wrote the owner's kind in lower case,
// which the garbage collector does not resolve.
func (s providedAPI) isOwnedByOther(have *rbacv1.ClusterRole) bool {
	another := false
	for _, ref := range have.OwnerReferences {
		if strings.EqualFold(ref.Kind, s.ServerKind) && ref.Name == s.Server {
			return false
		}
		another = another || strings.EqualFold(ref.Kind, kindCRD) || strings.EqualFold(ref.Kind, kindAPIService)
	}
	if another {
		return true
	}
	for key := range have.Labels {
		if strings.HasPrefix(key, api.PrefixAggregate) {
			return false
		}
	}
	return true
}

// mismatch returns how a definition differs from the ClusterServiceVersion; empty if it does not. No
// permissions are granted for an API that is declared incorrectly.
func (s providedAPI) mismatch(crd *apiextensionsv1.CustomResourceDefinition) string {
	switch {
	case crd.Spec.Names.Kind != s.API.Kind:
		return fmt.Sprintf("its kind is %s, not %s", crd.Spec.Names.Kind, s.API.Kind)
	case !slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == s.API.Version }):
		return "it has no version " + s.API.Version
	default:
		return ""
	}
}
