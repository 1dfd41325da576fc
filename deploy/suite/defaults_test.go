package suite_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// defaultObjects are the keys of the defaults of a cluster, by the setting of the chart that leaves them out.
var defaultObjects = map[string][]string{
	"operatorsNamespace": {"Namespace /operators", "OperatorGroup operators/global-operators"},
	"olmConfig":          {"OLMConfig /cluster"},
	"operatorHubCatalog": {"CatalogSource olm/operatorhubio-catalog"},
}

// TestDefaultsCanBeLeftOut leaves out each default of the chart. Without a cluster, no default is a hook of Helm.
func TestDefaultsCanBeLeftOut(t *testing.T) {
	for without := range defaultObjects {
		all := rendered(t, "--set", "defaults."+without+"=false")
		for setting, keys := range defaultObjects {
			for _, key := range keys {
				if got, want := all[key] != nil, setting != without; got != want {
					t.Errorf("without %s: %s is rendered: %t", without, key, got)
				}
				if all[key] != nil && all[key].GetAnnotations()["helm.sh/hook"] != "" {
					t.Errorf("%s is a hook", key)
				}
			}
		}
	}
	served := rendered(t, "--api-versions=operators.coreos.com/v1/OLMConfig")
	if diff := cmp.Diff(rendered(t), served); diff != "" {
		t.Errorf("rendered without and with the kinds (-without +with):\n%s", diff)
	}
	for key, u := range rendered(t, "--set", "crds.install=false") {
		if u.GroupVersionKind().Group == "operators.coreos.com" {
			t.Errorf("%s is rendered without its kind", key)
		}
	}
}

// TestDefaultsAreCreatedOnce installs the chart in a cluster without the kinds of operators.coreos.com. An administrator
// changes the defaults, and deletes one: an upgrade creates only this one, and the changes stay.
func TestDefaultsAreCreatedOnce(t *testing.T) {
	c := newCluster(t)
	run := func(args ...string) { output(t, c.kubectl, append([]string{"--kubeconfig", c.kubeconfig}, args...)...) }
	run("create", "namespace", "chandlery-system")
	c.helm(t, "install", "chandlery", chart)
	created := c.defaults(t)
	if len(created) != 4 {
		t.Fatalf("the installation created %v", created)
	}

	run("patch", "olmconfig", "cluster", "--type=merge", "--patch", `{"spec":{"features":{"disableCopiedCSVs":true}}}`)
	run("patch", "-n", "olm", "catalogsource", "operatorhubio-catalog", "--type=merge", "--patch", `{"spec":{"image":"mirror.example.com/catalog:v1"}}`)
	run("patch", "-n", "operators", "operatorgroup", "global-operators", "--type=merge", "--patch", `{"metadata":{"labels":{"app.kubernetes.io/part-of":null}}}`)
	before := c.defaults(t)
	c.helm(t, "upgrade", "chandlery", chart, "--set", "catalogs.replicas=3")
	if diff := cmp.Diff(before, c.defaults(t)); diff != "" {
		t.Errorf("after the upgrade (-before +after):\n%s", diff)
	}
	if notes := string(c.helm(t, "get", "notes", "chandlery")); strings.Contains(notes, "Left as they are") {
		t.Errorf("the notes name an object of another owner:\n%s", notes)
	}

	run("delete", "-n", "olm", "catalogsource", "operatorhubio-catalog")
	c.helm(t, "upgrade", "chandlery", chart)
	after := c.defaults(t)
	if len(after) != 4 || after[2].GetUID() == before[2].GetUID() {
		t.Fatalf("the upgrade did not create the catalog: %v", after)
	}
	c.helm(t, "uninstall", "chandlery")
	c.helm(t, "install", "chandlery", chart)
	if diff := cmp.Diff(after, c.defaults(t)); diff != "" {
		t.Errorf("after another installation (-before +after):\n%s", diff)
	}
}

// TestDefaultsReplaceNothing installs the chart, and then creates the defaults, in a cluster where other owners have
// created these objects with other content.
func TestDefaultsReplaceNothing(t *testing.T) {
	c := newCluster(t)
	run := func(args ...string) { output(t, c.kubectl, append([]string{"--kubeconfig", c.kubeconfig}, args...)...) }
	run("create", "namespace", "chandlery-system")
	run("create", "-f", "../prerequisites/namespace.yaml")
	run("apply", "--server-side", "-k", "../prerequisites/crds")
	run("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
	run("create", "-f", "testdata/defaults-of-others.yaml")
	before := c.defaults(t)
	c.helm(t, "install", "chandlery", chart)
	c.helm(t, "upgrade", "chandlery", chart)
	if diff := cmp.Diff(before, c.defaults(t)); diff != "" {
		t.Errorf("after the installation of the chart (-before +after):\n%s", diff)
	}
	notes := string(c.helm(t, "get", "notes", "chandlery"))
	for _, kept := range []string{"Namespace operators", "the OperatorGroup in namespace operators", "OLMConfig cluster", "CatalogSource operatorhubio-catalog"} {
		if !strings.Contains(notes, "\n  "+kept+"\n") {
			t.Errorf("the notes do not name %s:\n%s", kept, notes)
		}
	}
	for _, file := range defaults(t) {
		if filepath.Base(file) == "operators.yaml" {
			continue // The file itself says so: the namespace has another OperatorGroup.
		}
		out, err := exec.CommandContext(t.Context(), c.kubectl, "--kubeconfig", c.kubeconfig, "create", "-f", file).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "AlreadyExists") {
			t.Errorf("creating %s: %v, %s", file, err, out)
		}
	}
	if diff := cmp.Diff(before, c.defaults(t)); diff != "" {
		t.Errorf("after kubectl create (-before +after):\n%s", diff)
	}
}

// defaults returns the defaults of a cluster, and the OperatorGroups beside them.
func (c cluster) defaults(t *testing.T) []unstructured.Unstructured {
	t.Helper()
	var all []unstructured.Unstructured
	for _, gvk := range []schema.GroupVersionKind{
		{Group: "operators.coreos.com", Version: "v1", Kind: "OperatorGroup"},
		{Group: "operators.coreos.com", Version: "v1", Kind: "OLMConfig"},
		{Group: "operators.coreos.com", Version: "v1alpha1", Kind: "CatalogSource"},
	} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		if err := c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		all = append(all, list.Items...)
	}
	namespace := &unstructured.Unstructured{}
	namespace.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	if err := c.Get(t.Context(), client.ObjectKey{Name: "operators"}, namespace); err != nil {
		t.Fatal(err)
	}
	return append(all, *namespace)
}

// TestAggregatedRolesAreThoseOfOLM compares the rights of users with those that OLM gives them. Reading
// OperatorConditions is the only addition: the supervisor names them in messages to users.
func TestAggregatedRolesAreThoseOfOLM(t *testing.T) {
	all := everything(t)
	var want []string
	for _, resource := range []string{"subscriptions", "clusterserviceversions", "catalogsources", "installplans"} {
		verbs := []string{"delete"}
		if resource == "subscriptions" {
			verbs = []string{"create", "update", "patch", "delete"}
		}
		want = append(want, flatten("edit", []rbacv1.PolicyRule{{APIGroups: []string{"operators.coreos.com"}, Resources: []string{resource}, Verbs: verbs}})...)
	}
	reads := []string{"get", "list", "watch"}
	view := []rbacv1.PolicyRule{
		{
			APIGroups: []string{"operators.coreos.com"}, Verbs: reads,
			Resources: []string{"clusterserviceversions", "catalogsources", "installplans", "subscriptions", "operatorgroups", "operatorconditions"},
		},
		{APIGroups: []string{"packages.operators.coreos.com"}, Verbs: reads, Resources: []string{"packagemanifests", "packagemanifests/icon"}},
	}
	want = append(want, flatten("view", view)...)
	var got []string
	for name, aggregated := range map[string][]string{"edit": {"admin", "edit"}, "view": {"admin", "edit", "view"}} {
		role := as[rbacv1.ClusterRole](t, all, "ClusterRole /aggregate-olm-"+name)
		got = append(got, flatten(name, role.Rules)...)
		for _, to := range []string{"admin", "edit", "view"} {
			label := role.Labels["rbac.authorization.k8s.io/aggregate-to-"+to]
			if (label == "true") != slices.Contains(aggregated, to) {
				t.Errorf("%s is aggregated to %s: %q", role.Name, to, label)
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rights of users (-OLM +ours):\n%s", diff)
	}
}
