package suite_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"

	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// TestPackageManifest has a package with three channels and everything that a PackageManifest shows. Get and list return it
// without icons, with channels sorted by name and entries by version. A package without an icon has the default one.
func TestPackageManifest(t *testing.T) {
	w := supervise(t)
	served := fakecatalog.StartExtended(t, described(t), fakecatalog.Simple("torch", bare("torch.v1.0.0", "1.0.0", "")))
	source := fixtures.ServedCatalog(w.global, "shop", served.Address())
	source.Labels, source.Spec.DisplayName, source.Spec.Publisher = map[string]string{"team": "blue"}, "The Shop", "Merchants"
	w.Create(source)
	w.available()
	namespace := controlplane.Namespace(t)
	w.Eventually(func() [][]string { return w.rows("-n", namespace) }).Should(gomega.HaveLen(2))

	want := strings.NewReplacer("NAMESPACE", namespace, "GLOBAL", w.global).Replace(file(t, "packagemanifest.json"))
	var list struct{ Items []json.RawMessage }
	if err := json.Unmarshal([]byte(w.kubectl("get", "packagemanifests", "-n", namespace, "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	for how, got := range map[string]string{
		"get": w.kubectl("get", "packagemanifest", "lamp", "-n", namespace, "-o", "json"), "list": string(list.Items[0]),
	} {
		if diff := cmp.Diff(object(t, want), object(t, got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", how, diff)
		}
	}
	for pkg, mediaType := range map[string]string{"lamp": "image/png", "torch": "image/svg+xml"} {
		if got := icon(w, namespace, pkg); got.status != http.StatusOK || got.mediaType != mediaType {
			t.Errorf("the icon of %s has status %d and type %s", pkg, got.status, got.mediaType)
		}
	}
}

// described returns the package lamp.
func described(t *testing.T) fakecatalog.Package {
	t.Helper()
	old := bare("lamp.v1.9.0", "1.9.0", "")
	old.Deprecation = "too old"
	hidden := bare("lamp.v0.1.0", "0.1.0", "")
	hidden.Properties = []*api.Property{{Type: "olm.deprecated", Value: "{}"}}
	return fakecatalog.Package{Name: "lamp", Deprecation: "use torch", Channels: []fakecatalog.Channel{
		{Name: "b", Entries: []fakecatalog.Entry{
			old, bare("lamp.v1.10.0", "1.10.0", "lamp.v1.9.0"), bare("lamp.v2.0.0-rc.1", "2.0.0-rc.1", "lamp.v1.10.0"),
			{Name: "lamp.v2.0.0", Version: "2.0.0", Replaces: "lamp.v2.0.0-rc.1", Objects: []string{file(t, "csv.json")}},
		}},
		{Name: "a", Deprecation: "use b", Entries: []fakecatalog.Entry{old}},
		{Name: "c", Entries: []fakecatalog.Entry{hidden, bare("lamp.v0.2.0", "0.2.0", "lamp.v0.1.0")}},
	}}
}

// bare returns a version whose manifest has only a name.
func bare(name, version, replaces string) fakecatalog.Entry {
	text := `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"` + name + `"}}`
	return fakecatalog.Entry{Name: name, Version: version, Replaces: replaces, Objects: []string{text}}
}

// file returns a file of testdata.
func file(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// object decodes a PackageManifest without its time of creation.
func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	if metadata, is := o["metadata"].(map[string]any); is {
		delete(metadata, "creationTimestamp")
	}
	return o
}
