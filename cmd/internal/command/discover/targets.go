package discover

import (
	"fmt"
	"regexp"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chandlery/chandlery/supervisor/discovery"
	"github.com/chandlery/chandlery/supervisor/discovery/optional"
)

// requestedAPI is an API to check.
type requestedAPI struct {
	discovery.Target

	// optional is set if a cluster works without the API. use is the purpose of the API.
	optional bool
	use      string
	// managed is set if a lifecycle manager reconciles the API: the supervisor or OLM.
	managed bool
}

// known returns the kinds that the command checks without arguments.
func known(namespace string) []requestedAPI {
	var all []requestedAPI
	add := func(gv schema.GroupVersion, kind, resource string, clusterScoped bool) {
		target := discovery.Target{GroupVersionKind: gv.WithKind(kind), Resource: resource, Namespace: namespace}
		if clusterScoped {
			target.Namespace = ""
		}
		all = append(all, requestedAPI{Target: target, managed: true})
	}
	add(operatorsv1alpha1.SchemeGroupVersion, operatorsv1alpha1.CatalogSourceKind, "catalogsources", false)
	add(operatorsv1alpha1.SchemeGroupVersion, operatorsv1alpha1.SubscriptionKind, "subscriptions", false)
	add(operatorsv1alpha1.SchemeGroupVersion, operatorsv1alpha1.InstallPlanKind, "installplans", false)
	add(operatorsv1alpha1.SchemeGroupVersion, operatorsv1alpha1.ClusterServiceVersionKind, "clusterserviceversions", false)
	add(operatorsv1.GroupVersion, operatorsv1.OperatorGroupKind, "operatorgroups", false)
	add(operatorsv1.GroupVersion, "OLMConfig", "olmconfigs", true)
	add(operatorsv1.GroupVersion, "Operator", "operators", true)
	add(operatorsv2.GroupVersion, "OperatorCondition", "operatorconditions", false)
	for _, api := range optional.APIs() {
		target := api.Target
		if api.Name != optional.OpenShift {
			target.Namespace = namespace
		}
		all = append(all, requestedAPI{Target: target, optional: true, use: api.Use})
	}
	return all
}

// version matches the versions of APIs.
var version = regexp.MustCompile(`^v\d+((alpha|beta)\d+)?$`)

// parse parses an argument: a resource or a kind, and after dots a version and a group. A name
// without dots is one of the known kinds or of the core group.
func parse(argument string, known []requestedAPI) (requestedAPI, error) {
	name, rest, dotted := strings.Cut(argument, ".")
	if name == "" || strings.HasSuffix(argument, ".") || strings.Contains(argument, "/") {
		return requestedAPI{}, fmt.Errorf("%q names no API; write it as widgets.example.com or Widget.v1.example.com", argument)
	}
	if !dotted {
		for _, one := range known {
			if strings.EqualFold(name, one.Kind) || name == one.Resource {
				one.optional = false
				return one, nil
			}
		}
	}
	return qualified(argument, name, rest)
}

// qualified returns an API with a group or a version.
func qualified(argument, name, rest string) (requestedAPI, error) {
	var target discovery.Target
	if first, group, _ := strings.Cut(rest, "."); version.MatchString(first) {
		target.Version, target.Group = first, group
	} else {
		target.Group = rest
	}
	if target.Group != "" && len(validation.IsDNS1123Subdomain(target.Group)) > 0 {
		return requestedAPI{}, fmt.Errorf("%q names no API: its group cannot be %q; write it as widgets.example.com or Widget.v1.example.com", argument, target.Group)
	}
	if name[0] >= 'A' && name[0] <= 'Z' {
		target.Kind = name
	} else {
		target.Resource = name
	}
	return requestedAPI{Target: target}, nil
}

// namespaced parses NAMESPACE/NAME.
func namespaced(flag, text string) (types.NamespacedName, error) {
	if text == "" {
		return types.NamespacedName{}, nil
	}
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || namespace == "" || name == "" {
		return types.NamespacedName{}, fmt.Errorf("--%s is %q; write it as NAMESPACE/NAME", flag, text)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}
