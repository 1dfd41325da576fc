package plan_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"

	"github.com/chandlery/chandlery/cmd/internal/command/plan"
	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/cmd/internal/program"
	"github.com/chandlery/chandlery/supervisor/dryrun"
	"github.com/chandlery/chandlery/test/images"
)

const planCatalog = `
schema: olm.package
name: lamp
defaultChannel: stable
---
schema: olm.channel
package: lamp
name: stable
entries: [{name: lamp.v1}, {name: lamp.v2, replaces: lamp.v1}]
---
schema: olm.bundle
package: lamp
name: lamp.v1
properties: [{type: olm.package, value: {packageName: lamp, version: 1.0.0}}, {type: olm.bundle.object, value: {data: e30=}}]
---
schema: olm.bundle
package: lamp
name: lamp.v2
properties: [{type: olm.package, value: {packageName: lamp, version: 2.0.0}}, {type: olm.bundle.object, value: {data: e30=}}]
`

const planSubscription = `
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: my-lamp, namespace: shop}
spec: {name: lamp, source: wares, sourceNamespace: olm}
`

// planFiles creates a directory with a catalog and files, and returns its path.
func planFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// run runs the command without a cluster.
func run(t *testing.T, input string, args ...string) (string, error) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
	var out bytes.Buffer
	cmd := program.Program{Name: "supervisor", EnvPrefix: "SUPERVISOR"}.Command(plan.New("supervisor", "test"))
	cmd.SetArgs(args)
	cmd.SetIn(strings.NewReader(input))
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestPlanWithoutCluster(t *testing.T) {
	dir := planFiles(t, map[string]string{"catalog/catalog.yaml": planCatalog, "sub.yaml": planSubscription})
	sub, catalog := filepath.Join(dir, "sub.yaml"), filepath.Join(dir, "catalog")
	out, err := run(t, "", "plan", "-f", sub, "--catalog", "wares="+catalog)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.ReplaceAll(`Namespace shop: 1 to install

STEP  WAVE  SUBSCRIPTION  ACTION   VERSION  CATALOG    CHANNEL  APPROVAL
1     1     my-lamp       install  2.0.0    olm/wares  stable   automatic
            lamp.v2: head of channel stable

CATALOGS
  olm/wares: 1 package, from DIR
`, "DIR", catalog)
	if diff := cmp.Diff(want, strings.ReplaceAll(out, "from\n      ", "from ")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	t.Setenv("SUPERVISOR_CATALOG", catalog)
	fromInput, err := run(t, planSubscription, "plan", "-f", "-", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var answer struct{ Namespaces []dryrun.Result }
	if err := json.Unmarshal([]byte(fromInput), &answer); err != nil || len(answer.Namespaces) != 1 || answer.Namespaces[0].Steps[0].Bundle != "lamp.v2" {
		t.Errorf("%s, %v", fromInput, err)
	}
}

func TestPlanForms(t *testing.T) {
	dir := planFiles(t, map[string]string{"catalog/catalog.yaml": planCatalog, "sub.yaml": planSubscription})
	for form, begin := range map[string]string{"table": "Namespace shop", "human": "Namespace shop", "json": "{\n", "yaml": "namespaces:\n", "mermaid": "---\ntitle:", "dot": "digraph", "svg": "<svg"} {
		out, err := run(t, "", "plan", "-f", filepath.Join(dir, "sub.yaml"), "--catalog", filepath.Join(dir, "catalog"), "-o", form)
		if err != nil || !strings.HasPrefix(out, begin) {
			t.Errorf("%s: %q, %v", form, out, err)
		}
		if form == "svg" && xml.Unmarshal([]byte(out), new(struct{ XMLName xml.Name })) != nil {
			t.Errorf("not XML: %s", out)
		}
	}
}

// TestPlanExitCodes covers the three exit codes of the command.
func TestPlanExitCodes(t *testing.T) {
	dir := planFiles(t, map[string]string{
		"catalog/catalog.yaml": planCatalog, "good.yaml": planSubscription,
		"bad.yaml":   strings.Replace(planSubscription, "spec: {", "spec: {channel: gone, ", 1),
		"wrong.yaml": strings.Replace(planSubscription, "source: wares, ", "", 1),
	})
	for file, want := range map[string]int{"good.yaml": 0, "bad.yaml": 2, "wrong.yaml": 1} {
		_, err := run(t, "", "plan", "-f", filepath.Join(dir, file), "--catalog", filepath.Join(dir, "catalog"))
		if got := int(console.Report(io.Discard, "supervisor", err)); got != want {
			t.Errorf("%s: %d (%v), want %d", file, got, err, want)
		}
	}
}

func TestPlanErrors(t *testing.T) {
	dir := planFiles(t, map[string]string{
		"catalog/catalog.yaml": planCatalog, "sub.yaml": planSubscription,
		"two.yaml": planSubscription + "---" + strings.Replace(planSubscription, "namespace: shop", "namespace: home", 1),
	})
	sub, catalog := filepath.Join(dir, "sub.yaml"), filepath.Join(dir, "catalog")
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"Form":       {args: []string{"-f", sub, "-o", "png"}, want: `--output is "png"; it has to be one of human, wide, json, yaml, mermaid, dot, svg`},
		"Check":      {args: []string{"-f", sub, "--check"}, want: "--check checks images; add --images"},
		"NoImages":   {args: []string{"-f", sub, "--images", "-o", "dot"}, want: "--output dot shows no images"},
		"Settings":   {args: []string{"-f", sub, "--catalog", catalog, "--images", "--check", "--image-config", dir + "/none"}, want: "reading the settings for image registries"},
		"Catalog":    {args: []string{"-f", sub, "--catalog", "A=b"}, want: `"A" cannot be the name of a CatalogSource`},
		"Nothing":    {want: "name files with --filename (-f), a namespace of the cluster with --namespace (-n), or both"},
		"Argument":   {args: []string{sub}, want: "unknown command"},
		"NoCluster":  {args: []string{"-n", "shop"}, want: "looking at namespace shop: finding the API server: "},
		"NoCatalog":  {args: []string{"-f", sub}, want: "subscription my-lamp names catalog olm/wares: no --catalog gives its content, and finding the API server: "},
		"TwoToDraw":  {args: []string{"-f", filepath.Join(dir, "two.yaml"), "--catalog", catalog, "-o", "svg"}, want: "draws one namespace, and the files have Subscriptions of 2"},
		"Kubeconfig": {args: []string{"-n", "shop", "--kubeconfig", filepath.Join(dir, "none")}, want: "name another with --kubeconfig or $KUBECONFIG"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := run(t, "", append([]string{"plan"}, tt.args...)...)
			if err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, console.Verdict(console.Negative)) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
	if out, err := run(t, "", "plan", "-f", filepath.Join(dir, "two.yaml"), "--catalog", catalog); err != nil || strings.Count(out, "to install") != 2 {
		t.Errorf("two namespaces: %s, %v", out, err)
	}
}

func TestPlanCompletion(t *testing.T) {
	dir := planFiles(t, map[string]string{"sub.yaml": planSubscription})
	for _, tt := range []struct{ args, want string }{
		{args: "-o ", want: "human\nwide\njson\nyaml\nmermaid\ndot\nsvg\n:4\n"},
		{args: "-f " + filepath.Join(dir, "sub.yaml") + " --catalog ", want: "olm/wares=\n:2\n"},
		{args: "--catalog wares=", want: ":0\n"},
		{args: "-n ", want: ":4\n"},
		{args: "", want: ":4\n"},
	} {
		out, err := run(t, "", append([]string{"__complete", "plan"}, strings.Split(tt.args, " ")...)...)
		if err != nil || out != tt.want {
			t.Errorf("%s: %q, %v, want %q", tt.args, out, err, tt.want)
		}
	}
}

// TestPlanImages lists and checks images without a cluster: one is missing at first.
func TestPlanImages(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	at := server.Listener.Addr().String()
	dir := planFiles(t, map[string]string{
		"catalog/catalog.yaml": strings.Replace(planCatalog, "name: lamp.v2\nproperties", "name: lamp.v2\nrelatedImages: [{name: lens, image: quay.io/acme/lens:1}]\nproperties", 1),
		"sub.yaml":             planSubscription,
		"registries.conf":      "[[registry]]\nlocation = \"quay.io\"\nblocked = true\n[[registry.mirror]]\nlocation = \"" + at + "\"\ninsecure = true\n",
	})
	args := []string{"plan", "-f", filepath.Join(dir, "sub.yaml"), "--catalog", filepath.Join(dir, "catalog"), "--images"}
	out, err := run(t, "", args...)
	if err != nil || !strings.Contains(out, "\nIMAGES\n  quay.io/acme/lens:1 (related of lamp.v2)\n") {
		t.Errorf("%s, %v", out, err)
	}
	args = append(args, "--check", "--image-registries-conf", filepath.Join(dir, "registries.conf"))
	out, err = run(t, "", args...)
	if code := console.Report(io.Discard, "supervisor", err); code != console.Negative || !strings.Contains(out, "IMAGES: 0 of 1 available") || !strings.Contains(out, at+"/acme/lens:1 (") {
		t.Errorf("code %d: %s", code, out)
	}
	out, err = run(t, "", append(args, "-o", "json")...)
	var answer struct{ Namespaces []dryrun.Result }
	if failed := json.Unmarshal([]byte(out), &answer); failed != nil || !errors.Is(err, console.Verdict(console.Negative)) {
		t.Fatalf("%s, %v, %v", out, failed, err)
	}
	check := answer.Namespaces[0].Images[0].Check
	if len(check.Tried) != 1 || check.Tried[0].Place != at+"/acme/lens:1" || check.Tried[0].Reason != "NotFound" || len(check.NotAsked) != 1 || check.Reason != "NotFound" {
		t.Errorf("%+v", check)
	}
	if _, err := images.Push(t.Context(), at+"/acme/lens:1", empty.Image); err != nil {
		t.Fatal(err)
	}
	out, err = run(t, "", args...)
	if err != nil || !strings.Contains(out, "IMAGES: 1 of 1 available\n  quay.io/acme/lens:1 (related of lamp.v2) from "+at+"/acme/lens:1\n") {
		t.Errorf("%s, %v", out, err)
	}
}
