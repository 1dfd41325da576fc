package inputs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	grpcstatus "google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/bundles/fbc"
	"github.com/chandlery/chandlery/bundles/index"
	"github.com/chandlery/chandlery/supervisor/dryrun"
	"github.com/chandlery/chandlery/supervisor/resolution"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
	"github.com/chandlery/chandlery/test/fakecatalog"
)

var moment = metav1.NewTime(time.Date(2020, 2, 2, 2, 2, 2, 0, time.UTC))

const wares = `
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
image: registry.example/lamp:1
properties: [{type: olm.package, value: {packageName: lamp, version: 1.0.0}}]
---
schema: olm.bundle
package: lamp
name: lamp.v2
image: registry.example/lamp:2
properties: [{type: olm.package, value: {packageName: lamp, version: 2.0.0}}]
`

// write writes a file to a new directory, and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

var errNoCluster = errors.New("there is no cluster")

// options returns options for standard input and no cluster.
func options(t *testing.T, text string, catalogs ...string) Options {
	t.Helper()
	overrides, err := ParseCatalogOverrides(catalogs)
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		Files: []string{"-"}, Stdin: strings.NewReader(text), Global: "olm", CatalogOverrides: overrides, Now: moment,
		Connect:  func() (*Cluster, error) { return nil, errNoCluster },
		Progress: func(string) func() { return func() {} },
	}
}

// seen returns the content of a request in a few lines.
func seen(r dryrun.Request) []string {
	out := []string{"namespace " + r.Input.Namespace}
	for _, s := range r.Input.Subscriptions {
		out = append(out, "subscription "+s.Name+" of "+s.Catalog.String()+" has "+s.Installed)
	}
	for key, c := range r.Input.Catalogs {
		text := "catalog " + key.String() + ": "
		if c.Content != nil && c.Content.Package("lamp").Bundle("lamp.v2") != nil {
			text += "wares"
		}
		if c.Err != nil {
			text += grpcstatus.Convert(c.Err).Message()
		}
		out = append(out, text)
	}
	return append(out, r.Notes...)
}

func TestGather(t *testing.T) {
	dir := write(t, "catalog.yaml", wares)
	reader, err := fbc.Open(t.Context(), os.DirFS(dir), fbc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "wares.index")
	if _, err := index.Create(t.Context(), file, reader, index.Options{}); err != nil {
		t.Fatal(err)
	}
	server := fakecatalog.Start(t, lampOnServer())
	for name, catalog := range map[string]string{"Directory": dir, "Index": file, "Server": server.Address(), "Named": "wares=" + dir, "Exactly": "olm/wares=" + dir} {
		t.Run(name, func(t *testing.T) {
			requests, err := Gather(t.Context(), options(t, lamp+"---"+strings.ReplaceAll(present, "name: lamp.v1", "name: lamp.v1, namespace: shop, annotations: {operatorframework.io/properties: '{\"properties\":[{\"type\":\"olm.package\",\"value\":{\"packageName\":\"lamp\",\"version\":\"1.0.0\"}}]}'}"), catalog))
			if err != nil || len(requests) != 1 {
				t.Fatalf("%d requests, %v", len(requests), err)
			}
			want := []string{"namespace shop", "subscription lamp of olm/wares has lamp.v1", "catalog olm/wares: wares"}
			if diff := cmp.Diff(want, seen(requests[0].Request)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestGatherSources reads catalogs of CatalogSources in files.
func TestGatherSources(t *testing.T) {
	server := fakecatalog.Start(t, lampOnServer())
	source := func(spec string) string {
		return "---\napiVersion: operators.coreos.com/v1alpha1\nkind: CatalogSource\nmetadata: {name: wares, namespace: olm}\nspec: {sourceType: grpc, priority: 7, " + spec + "}\n"
	}
	for name, tt := range map[string]struct{ spec, want string }{
		"Address":     {spec: "address: '" + server.Address() + "'", want: "catalog olm/wares: wares"},
		"Image":       {spec: "image: registry.example/wares", want: "catalog olm/wares: no registry client established: CatalogSource olm/wares is in a file, nothing serves its content yet"},
		"Dead":        {spec: "address: '127.0.0.1:1'", want: "catalog olm/wares: no registry client established: catalog at 127.0.0.1:1: "},
		"BadlyNamed":  {spec: "address: 'http://shop'", want: "catalog olm/wares: no registry client established: spec.address"},
		"NothingSaid": {spec: "secrets: []", want: "catalog olm/wares: no registry client established: image and address unset"},
	} {
		t.Run(name, func(t *testing.T) {
			requests, err := Gather(t.Context(), options(t, lamp+source(tt.spec)))
			if err != nil || len(requests) != 1 {
				t.Fatalf("%d requests, %v", len(requests), err)
			}
			if got := seen(requests[0].Request)[2]; !strings.HasPrefix(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
			if c := requests[0].Input.Catalogs[resolution.CatalogKey{Namespace: "olm", Name: "wares"}]; c.Priority != 7 {
				t.Errorf("priority %d", c.Priority)
			}
		})
	}
}

func TestGatherErrors(t *testing.T) {
	good := write(t, "catalog.yaml", wares)
	empty := write(t, "README", "")
	broken := write(t, "catalog.yaml", "schema: [olm.package\n")
	for name, tt := range map[string]struct {
		text     string
		catalogs []string
		change   func(*Options)
		want     string
	}{
		"Nothing":        {change: func(o *Options) { o.Files = nil }, want: "nothing to look at: name files with --filename"},
		"NoFile":         {change: func(o *Options) { o.Files = []string{"gone.yaml"} }, want: "--filename gone.yaml: "},
		"Directory":      {change: func(o *Options) { o.Files = []string{empty} }, want: "the directory has no file *.yaml, *.yml or *.json"},
		"NoSubscription": {text: present, want: "there is no Subscription in -; add one"},
		"NoCatalog":      {text: lamp, want: "subscription lamp names catalog olm/wares: no --catalog gives its content, and there is no cluster; add --catalog wares=SOURCE"},
		"OtherCatalog":   {text: lamp, catalogs: []string{"other=" + good}, want: "no --catalog gives its content"},
		"NoSuchSource":   {text: lamp, catalogs: []string{"./gone"}, want: "catalog ./gone: there is no such directory or file, and it is not host:port either"},
		"EmptyDirectory": {text: lamp, catalogs: []string{empty}, want: "there is no package in it; name the directory that holds the file-based catalog"},
		"BrokenCatalog":  {text: lamp, catalogs: []string{broken}, want: "catalog " + broken + ": "},
		"NotAnIndex":     {text: lamp, catalogs: []string{filepath.Join(good, "catalog.yaml")}, want: "name a directory of file-based catalogs or an index that 'registry build' has made"},
		"DeadServer":     {text: lamp, catalogs: []string{"127.0.0.1:1"}, want: "catalog at 127.0.0.1:1: failed to list bundles"},
		"NoCluster":      {text: lamp, change: func(o *Options) { o.Namespace = "shop" }, want: "looking at namespace shop: there is no cluster; to do without a cluster leave --namespace out"},
		"OtherNamespace": {text: lamp, change: func(o *Options) { o.Namespace = "home" }, want: "subscription lamp is for namespace shop (metadata.namespace), and --namespace is home"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t, tt.text, tt.catalogs...)
			if tt.change != nil {
				tt.change(&o)
			}
			if _, err := Gather(t.Context(), o); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

// TestGatherSaysWhatIsInvalid uses a catalog that can be read, and that a registry would refuse to serve.
func TestGatherSaysWhatIsInvalid(t *testing.T) {
	dir := write(t, "catalog.yaml", strings.Replace(wares, "defaultChannel: stable", "defaultChannel: gone", 1))
	requests, err := Gather(t.Context(), options(t, lamp, dir))
	if err != nil {
		t.Fatal(err)
	}
	if notes := requests[0].Notes; len(notes) != 1 || !strings.HasPrefix(notes[0], "catalog "+dir+": a registry would refuse it: ") {
		t.Errorf("notes %q", notes)
	}
}

// TestGatherSaysWhatIsOutOfScope uses a Subscription for a catalog that is neither in its namespace nor in the
// global one.
func TestGatherSaysWhatIsOutOfScope(t *testing.T) {
	requests, err := Gather(t.Context(), options(t, strings.ReplaceAll(lamp, "sourceNamespace: olm", "sourceNamespace: market"), write(t, "catalog.yaml", wares)))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"catalog market/wares is in scope of namespace shop only where the supervisor runs with --global-catalog-namespace=market"}
	if diff := cmp.Diff(want, requests[0].Notes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// lampOnServer returns the same package as a server has it.
func lampOnServer() fakecatalog.Package {
	return fakecatalog.Simple("lamp",
		fakecatalog.Entry{Name: "lamp.v1", Version: "1.0.0", Image: "registry.example/lamp:1"},
		fakecatalog.Entry{Name: "lamp.v2", Version: "2.0.0", Image: "registry.example/lamp:2", Replaces: "lamp.v1"},
	)
}

// TestGatherDirectory checks that only the manifests of a directory are read.
func TestGatherDirectory(t *testing.T) {
	dir := write(t, "b.yaml", lamp)
	for name, text := range map[string]string{"c.yml": strings.ReplaceAll(lamp, "{name: lamp,", "{name: other,"), "README.md": "no YAML: [", "d.json": `{"apiVersion":"v1","kind":"List","items":[]}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "deeper.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	o := options(t, "", write(t, "catalog.yaml", wares))
	o.Files = []string{dir}
	requests, err := Gather(t.Context(), o)
	if err != nil || len(requests) != 1 || len(requests[0].Input.Subscriptions) != 2 {
		t.Errorf("%+v, %v", requests, err)
	}
}

// TestGatherStatus checks that a status counts only if the objects that it names are given.
func TestGatherStatus(t *testing.T) {
	catalog := write(t, "catalog.yaml", wares)
	exported := lamp + "status: {installedCSV: lamp.v1, currentCSV: lamp.v1, installPlanRef: {name: install-1}}\n---"
	note := "the status of Subscription lamp does not count: it speaks of ClusterServiceVersion lamp.v1, InstallPlan install-1, which is not in the files either"
	for name, tt := range map[string]struct {
		text  string
		holds bool
		notes []string
	}{
		"Alone":   {text: exported, notes: []string{note}},
		"Version": {text: exported + strings.ReplaceAll(present, "name: lamp.v1", "name: lamp.v1, namespace: shop"), holds: true},
	} {
		t.Run(name, func(t *testing.T) {
			requests, err := Gather(t.Context(), options(t, tt.text, catalog))
			if err != nil {
				t.Fatal(err)
			}
			sub := requests[0].Input.Subscriptions[0]
			if sub.OwnsInstalled != tt.holds || sub.LastInstalled != "" {
				t.Errorf("%+v", sub)
			}
			if diff := cmp.Diff(tt.notes, requests[0].Notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestGatherContents uses known contents, and reads no CatalogSource.
func TestGatherContents(t *testing.T) {
	decoded, err := fbc.Load(t.Context(), os.DirFS(write(t, "catalog.yaml", wares)), fbc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	known, err := content.FromCatalog(decoded)
	if err != nil {
		t.Fatal(err)
	}
	o := options(t, lamp)
	o.OnlyContents = true
	o.Contents = map[resolution.CatalogKey]CatalogContent{{Namespace: "olm", Name: "wares"}: {Snapshot: snapshot(known), From: "a test"}}
	requests, err := Gather(t.Context(), o)
	if err != nil || len(requests) != 1 {
		t.Fatalf("%d requests, %v", len(requests), err)
	}
	if diff := cmp.Diff([]string{"namespace shop", "subscription lamp of olm/wares has ", "catalog olm/wares: wares"}, seen(requests[0].Request)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
