package faults_test

import (
	"fmt"
	"strconv"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/test/fakecatalog"
)

// The objects of an installation that a user creates. Names of cluster-scoped objects contain the namespace.
const (
	wish    = "my-kettle"
	catalog = "shop"
)

// version returns the name of the ClusterServiceVersion of a package.
func version(namespace, pkg string, n int) string { return fmt.Sprintf("%s.%s.v%d", pkg, namespace, n) }

// packages returns a kettle with n versions and the cup that it needs.
func packages(namespace string, n int) []fakecatalog.Package {
	var entries []fakecatalog.Entry
	for i := 1; i <= n; i++ {
		e := fakecatalog.Entry{
			Name: version(namespace, "kettle", i), Version: fmt.Sprintf("%d.0.0", i), Objects: kettle(namespace, i),
			Properties: []*api.Property{{Type: "olm.package.required", Value: `{"packageName":"cup","versionRange":">=1.0.0"}`}},
		}
		if i > 1 {
			e.Replaces = version(namespace, "kettle", i-1)
		}
		entries = append(entries, e)
	}
	name := version(namespace, "cup", 1)
	cup := fakecatalog.Entry{Name: name, Version: "1.0.0", Objects: []string{csv(name, "cup", 1, "", "")}}
	return []fakecatalog.Package{fakecatalog.Simple("kettle", entries...), fakecatalog.Simple("cup", cup)}
}

// kettle returns everything in a bundle of the kettle.
func kettle(namespace string, n int) []string {
	group := namespace + ".faults.example"
	fill := strings.NewReplacer("GROUP", group, "VERSION", strconv.Itoa(n)).Replace
	owned := fill(`"customresourcedefinitions":{"owned":[{"name":"brews.GROUP","version":"v1","kind":"Brew"}]},`)
	permissions := fill(`
	"permissions":[{"serviceAccountName":"kettle","rules":[{"apiGroups":["GROUP"],"resources":["brews"],"verbs":["get","list"]}]}],
	"clusterPermissions":[{"serviceAccountName":"kettle","rules":[{"apiGroups":["GROUP"],"resources":["brews/status"],"verbs":["get"]}]}],`)
	// The second version has a more detailed schema.
	return []string{
		csv(version(namespace, "kettle", n), "kettle", n, owned, permissions),
		fill(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"brews.GROUP"},
		"spec":{"group":"GROUP","scope":"Namespaced","names":{"plural":"brews","singular":"brew","kind":"Brew","listKind":"BrewList"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","description":"of version VERSION","x-kubernetes-preserve-unknown-fields":true}}}]}}`),
		fill(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"},"data":{"version":"VERSION"}}`),
		fill(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"tap"},"spec":{"selector":{"app":"kettle"},"ports":[{"name":"water","port":808VERSION}]}}`),
		fill(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"reader"},"rules":[{"apiGroups":[""],"resources":["configmaps"],"resourceNames":["settings-VERSION"],"verbs":["get"]}]}`),
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"reader"},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"reader"},"subjects":[{"kind":"ServiceAccount","name":"kettle"}]}`,
	}
}

// csv returns a version whose Deployment needs no node to be available. spec and strategy are
// members of its spec and its install strategy, each followed by a comma.
func csv(name, pkg string, n int, spec, strategy string) string {
	return strings.NewReplacer("NAME", name, "PACKAGE", pkg, "VERSION", strconv.Itoa(n), "SPEC", spec, "STRATEGY", strategy).Replace(`
	{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"NAME"},
	"spec":{"displayName":"PACKAGE","version":"VERSION.0.0",SPEC
	"installModes":[{"type":"OwnNamespace","supported":true},{"type":"SingleNamespace","supported":true},
		{"type":"MultiNamespace","supported":false},{"type":"AllNamespaces","supported":false}],
	"install":{"strategy":"deployment","spec":{STRATEGY
	"deployments":[{"name":"PACKAGE","spec":{"replicas":0,"selector":{"matchLabels":{"app":"PACKAGE"}},
		"template":{"metadata":{"labels":{"app":"PACKAGE"}},
		"spec":{"containers":[{"name":"main","image":"registry.example/PACKAGE:VERSION"}]}}}}]}}}}`)
}

// order returns the objects that a user creates for an installation: the namespace's group, the
// catalog with its address, and the Subscription.
func order(namespace, address string) []client.Object {
	shop := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"sourceType": "grpc", "address": address}}}
	shop.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.CatalogSourceKind))
	shop.SetNamespace(namespace)
	shop.SetName(catalog)
	return []client.Object{
		&operatorsv1.OperatorGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "group-" + namespace},
			Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{namespace}},
		},
		shop,
		&operatorsv1alpha1.Subscription{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: wish},
			Spec:       &operatorsv1alpha1.SubscriptionSpec{CatalogSource: catalog, CatalogSourceNamespace: namespace, Package: "kettle"},
		},
	}
}
