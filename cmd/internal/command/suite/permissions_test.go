package suite_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/test/controlplane"
)

const lampCatalog = `
schema: olm.package
name: lamp
defaultChannel: stable
---
schema: olm.channel
package: lamp
name: stable
entries: [{name: lamp.v1}]
---
schema: olm.bundle
package: lamp
name: lamp.v1
properties: [{type: olm.package, value: {packageName: lamp, version: 1.0.0}}, {type: olm.bundle.object, value: {data: e30=}}]
`

// TestRights runs every command of both programs as users with different permissions. Objects that
// may not be read must not count as absent, and the output must name missing permissions.
func TestRights(t *testing.T) {
	w := newWorld(t)
	w.well()
	catalog := filepath.Join(t.TempDir(), "catalog")
	if err := os.MkdirAll(catalog, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(catalog, "lamp.yaml"), []byte(lampCatalog), 0o600); err != nil {
		t.Fatal(err)
	}
	users := createUsers(w)
	for _, tt := range []struct {
		args []string
		// codes are the exit codes by user. says is part of each user's output.
		codes map[string]int
		says  map[string]string
	}{
		{
			args:  []string{"status"},
			codes: map[string]int{"admin": 0, "viewer": 0, "reader": 0, "nobody": 3},
			says: map[string]string{
				"admin": "No problems.", "viewer": "nodes: you lack permission to read them (not needed here)",
				"reader": "catalogsources.operators.coreos.com (olm): you lack permission to read them", "nobody": "SUBSCRIPTION  could not be read",
			},
		},
		{
			args:  []string{"explain", "my-lamp"},
			codes: map[string]int{"admin": 0, "viewer": 0, "reader": 0, "nobody": 3},
			says:  map[string]string{"admin": "healthy", "reader": "You lack permission to read catalogsources.operators.coreos.com, leases.coordination.k8s.io; this relies on statuses.", "viewer": "healthy", "nobody": "subscriptions.operators.coreos.com"},
		},
		{
			args:  []string{"history", "my-lamp"},
			codes: map[string]int{"admin": 0, "viewer": 0, "reader": 0, "nobody": 3},
			says:  map[string]string{"admin": "install-aaa: lamp.v1", "reader": "install-aaa: lamp.v1", "nobody": "the missing rule: {apiGroups: [operators.coreos.com], resources: [subscriptions], verbs: [get]}"},
		},
		{
			args:  []string{"plan", "--catalog", catalog},
			codes: map[string]int{"admin": 0, "viewer": 0, "reader": 3, "nobody": 3},
			says:  map[string]string{"admin": "lamp", "reader": "permission to list catalogsources.operators.coreos.com in namespace olm", "nobody": "forbidden"},
		},
		{
			args:  []string{"search"},
			codes: map[string]int{"admin": 2, "viewer": 2, "reader": 3, "nobody": 3},
			says:  map[string]string{"reader": "PackageManifests cannot be read either", "nobody": "permission to list catalogsources.operators.coreos.com"},
		},
		{
			args:  []string{"approve", "my-lamp"},
			codes: map[string]int{"admin": 0, "viewer": 0, "reader": 0, "nobody": 3},
			says:  map[string]string{"viewer": "does not wait for approval: it is in phase Complete", "nobody": "resources: [installplans], verbs: [list]"},
		},
		{
			args:  []string{"wait", "my-lamp"},
			codes: map[string]int{"admin": 0, "viewer": 0, "reader": 0, "nobody": 3},
			says:  map[string]string{"nobody": "the missing rule: {apiGroups: [operators.coreos.com], resources: [subscriptions], verbs: [get]}"},
		},
		{
			args:  []string{"catalog", "remove", "nosuch"},
			codes: map[string]int{"admin": 2, "viewer": 2, "reader": 2, "nobody": 3},
			says:  map[string]string{"nobody": "the missing rule: {apiGroups: [operators.coreos.com], resources: [catalogsources], verbs: [get]}"},
		},
		{
			args:  []string{"support-bundle"},
			codes: map[string]int{"admin": 0, "viewer": 3, "reader": 3, "nobody": 3},
			says:  map[string]string{"admin": ".tar.gz\n", "nobody": "missing.txt in the bundle lists it"},
		},
	} {
		for _, program := range callers() {
			for _, user := range users {
				t.Run(strings.Join([]string{tt.args[0], program.name, user.name}, "/"), func(t *testing.T) {
					got := program.call(t, user.kubeconfig, append(tt.args, "-n", w.Namespace)...)
					if got.code != tt.codes[user.name] {
						t.Errorf("exit code %d, want %d:\n%s%s", got.code, tt.codes[user.name], got.out, got.log)
					}
					contains(t, got.out+got.log, tt.says[user.name])
				})
			}
		}
	}
}

// TestExplainsTheOriginalOfACopy explains a ClusterServiceVersion in a namespace that has only its copy.
func TestExplainsTheOriginalOfACopy(t *testing.T) {
	w := newWorld(t)
	w.well()
	replica := &operatorsv1alpha1.ClusterServiceVersion{}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "lamp.v1"}, replica); err != nil {
		t.Fatal(err)
	}
	elsewhere := controlplane.Get(t).Namespace(t)
	replica.ObjectMeta = metav1.ObjectMeta{Namespace: elsewhere, Name: "lamp.v1", Labels: map[string]string{operatorsv1alpha1.CopiedLabelKey: w.Namespace}}
	w.Create(replica)
	for _, program := range callers() {
		got := program.call(t, w.kubeconfig, "explain", "csv/lamp.v1", "-n", elsewhere)
		if got.code != 0 {
			t.Errorf("%s: exit code %d:\n%s%s", program.name, got.code, got.out, got.log)
		}
		contains(t, got.out, "ClusterServiceVersion "+w.Namespace+"/lamp.v1: healthy: it runs ("+elsewhere+"/lamp.v1 is a copy of it)")
	}
}

// TestStatusFallsBack checks that a user who may not read all namespaces gets one namespace and a note.
func TestStatusFallsBack(t *testing.T) {
	w := newWorld(t)
	w.well()
	for _, user := range createUsers(w) {
		got := callers()[1].call(t, user.kubeconfig, "status")
		told := strings.Contains(got.out, "namespaces other than default: you lack permission to list")
		if want := user.name == "reader" || user.name == "nobody"; told != want || want && got.code != 3 {
			t.Errorf("%s: %+v", user.name, got)
		}
	}
}

// TestCatalogListPrintsReadableCatalogs lists catalogs as a user who may not read the global ones.
func TestCatalogListPrintsReadableCatalogs(t *testing.T) {
	w := newWorld(t)
	w.Create(&operatorsv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "own-wares"},
		Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Address: "wares.example.com:50051"},
	})
	for _, user := range createUsers(w) {
		if user.name != "reader" {
			continue
		}
		got := callers()[1].call(t, user.kubeconfig, "catalog", "list", "-n", w.Namespace)
		if got.code != 3 {
			t.Errorf("exit code %d, want 3", got.code)
		}
		contains(t, got.out, "own-wares")
		contains(t, got.log, "listing the CatalogSources")
	}
}

// TestDocuments checks that JSON and YAML hold the same document, for all users.
func TestDocuments(t *testing.T) {
	w := newWorld(t)
	for _, args := range [][]string{{"status"}, {"explain"}, {"history"}, {"approve", "--dry-run", "my-lamp"}} {
		t.Run(args[0], func(t *testing.T) {
			documents := map[string]any{}
			for _, form := range []string{"json", "yaml"} {
				got := callers()[1].call(t, w.kubeconfig, append(args, "-n", w.Namespace, "-o", form)...)
				var document map[string]any
				decode := json.Unmarshal
				if form == "yaml" {
					decode = func(text []byte, into any) error { return yaml.Unmarshal(text, into) }
				}
				if err := decode([]byte(got.out), &document); err != nil {
					t.Fatalf("%s: %v: %s%s", form, err, got.out, got.log)
				}
				delete(document, "taken")
				documents[form] = document
			}
			if diff := cmp.Diff(documents["json"], documents["yaml"]); diff != "" || len(documents["json"].(map[string]any)) == 0 {
				t.Errorf("(-json +yaml):\n%s", diff)
			}
		})
	}
}

// TestExitCodes covers the exit codes that do not depend on permissions.
func TestExitCodes(t *testing.T) {
	w := newWorld(t)
	dead := filepath.Join(t.TempDir(), "dead")
	const nowhere = `{"apiVersion":"v1","kind":"Config","current-context":"a","contexts":[{"name":"a","context":{"cluster":"a","user":"a","namespace":"shop"}}],
	  "clusters":[{"name":"a","cluster":{"server":"https://127.0.0.1:1"}}],"users":[{"name":"a","user":{"token":"x"}}]}`
	if err := os.WriteFile(dead, []byte(nowhere), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		args       []string
		kubeconfig string
		code       int
		says       string
	}{
		"Usage":               {args: []string{"status", "--nonsense"}, code: 1, says: "status --help'"},
		"Form":                {args: []string{"status", "-o", "svg"}, code: 1, says: "human, wide, json, yaml"},
		"Both":                {args: []string{"status", "-A", "-n", w.Namespace}, code: 1, says: "exclude each other"},
		"UnknownName":         {args: []string{"approve", "-n", w.Namespace, "someone"}, code: 2, says: "its Subscriptions are my-lamp"},
		"Nothing":             {args: []string{"approve", "-n", w.Namespace}, code: 1, says: "these InstallPlans wait for approval: install-aaa"},
		"Wrong":               {args: []string{"status", "-n", w.Namespace}, code: 2, says: "Problems found"},
		"Size":                {args: []string{"support-bundle", "--log-bytes", "much"}, code: 1, says: "--log-bytes"},
		"Nowhere status":      {args: []string{"status", "-n", "nowhere"}, code: 2, says: "namespace nowhere does not exist"},
		"Nowhere catalogs":    {args: []string{"catalog", "list", "-n", "nowhere"}, code: 2, says: "namespace nowhere does not exist"},
		"All and names":       {args: []string{"approve", "-n", w.Namespace, "--all", "someone"}, code: 1, says: "exclude each other"},
		"Nowhere explain":     {args: []string{"explain", "-n", "nowhere"}, code: 2, says: "namespace nowhere does not exist"},
		"Nowhere bundle":      {args: []string{"support-bundle", "-n", "nowhere"}, code: 2, says: "namespace nowhere does not exist"},
		"Unreachable status":  {args: []string{"status"}, kubeconfig: dead, code: 4, says: "127.0.0.1:1"},
		"Unreachable history": {args: []string{"history"}, kubeconfig: dead, code: 4, says: "127.0.0.1:1"},
		"Unreachable explain": {args: []string{"explain"}, kubeconfig: dead, code: 4, says: "127.0.0.1:1"},
		"Unreachable approve": {args: []string{"approve", "--all"}, kubeconfig: dead, code: 4, says: "127.0.0.1:1"},
		"Unreachable bundle":  {args: []string{"support-bundle"}, kubeconfig: dead, code: 4, says: "127.0.0.1:1"},
		"Unreachable plan":    {args: []string{"plan", "-n", "shop"}, kubeconfig: dead, code: 4, says: "127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.kubeconfig == "" {
				tt.kubeconfig = w.kubeconfig
			}
			for _, program := range callers() {
				got := program.call(t, tt.kubeconfig, tt.args...)
				if got.code != tt.code {
					t.Errorf("%s: exit code %d, want %d:\n%s%s", program.name, got.code, tt.code, got.out, got.log)
				}
				contains(t, got.out+got.log, tt.says)
			}
		})
	}
	for code, args := range map[int][]string{1: {"status", "--nonsense"}, 4: {"status", "--kubeconfig", dead}} {
		if got := kubectl(t).call(t, w.kubeconfig, args...); got.code != code {
			t.Errorf("kubectl: exit code %d, want %d: %+v", got.code, code, got)
		}
	}
}

// TestCompletion completes arguments of "kubectl chandlery" through kubectl.
func TestCompletion(t *testing.T) {
	w := newWorld(t)
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"Commands":      {args: []string{"chandlery", "st"}, want: "status\t"},
		"Namespaces":    {args: []string{"chandlery", "status", "-n", w.Namespace[:len(w.Namespace)-1]}, want: w.Namespace + "\n"},
		"Subscriptions": {args: []string{"chandlery", "history", "-n", w.Namespace, "my"}, want: "my-lamp\n"},
		"Plans":         {args: []string{"chandlery", "approve", "-n", w.Namespace, ""}, want: "install-aaa\nmy-lamp\n"},
		"Given":         {args: []string{"chandlery", "approve", "-n", w.Namespace, "install-aaa", ""}, want: "my-lamp\n"},
		"Forms":         {args: []string{"chandlery", "status", "-o", "j"}, want: "human\nwide\njson\nyaml\n"},
	} {
		t.Run(name, func(t *testing.T) {
			completer := caller{argv: kubectl(t).argv[:1]}
			got := completer.call(t, w.kubeconfig, append([]string{"__complete"}, tt.args...)...)
			if got.code != 0 || !strings.HasPrefix(got.out, tt.want) {
				t.Errorf("%+v, want %q", got, tt.want)
			}
		})
	}
	nobody := w.as()
	got := callers()[0].call(t, nobody.kubeconfig, "__complete", "history", "-n", w.Namespace, "")
	if got.out != ":4\n" || strings.Contains(got.log, "forbidden") {
		t.Errorf("who may see nothing is not left in silence: %+v", got)
	}
}
