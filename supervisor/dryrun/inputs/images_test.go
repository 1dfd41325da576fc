package inputs

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/bundles/fbc"
	"github.com/chandlery/chandlery/bundles/index"
	"github.com/chandlery/chandlery/supervisor/dryrun"
	"github.com/chandlery/chandlery/supervisor/resolution"
)

// named is a catalog whose bundles name images: one among its related images, and one in its manifests.
var named = `
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
properties: [{type: olm.package, value: {packageName: lamp, version: 1.0.0}}, {type: olm.csv.metadata, value: {displayName: Lamp}}]
relatedImages: [{name: "", image: "registry.example/lamp:1"}, {name: lens, image: "registry.example/lens:1"}]
---
schema: olm.bundle
package: lamp
name: lamp.v2
properties:
- {type: olm.package, value: {packageName: lamp, version: 2.0.0}}
- {type: olm.bundle.object, value: {data: ` + base64.StdEncoding.EncodeToString([]byte(namedCSV)) + `}}
`

const namedCSV = `{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": {"name": "lamp.v2"}, "spec": {"version": "2.0.0",
	"install": {"spec": {"deployments": [{"spec": {"template": {"spec": {"containers": [{"image": "registry.example/operator:2"}]}}}}]}}}}`

// TestImages reads the images of bundles from each kind of source without a cluster.
func TestImages(t *testing.T) {
	dir := write(t, "catalog.yaml", named)
	reader, err := fbc.Open(t.Context(), os.DirFS(dir), fbc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "catalog.index")
	if _, err := index.Create(t.Context(), file, reader, index.Options{}); err != nil {
		t.Fatal(err)
	}
	key := resolution.CatalogKey{Namespace: "olm", Name: "wares"}
	for _, source := range []string{dir, file} {
		requests, err := Gather(t.Context(), options(t, lamp, source))
		if err != nil {
			t.Fatal(err)
		}
		got, err := requests[0].Images(t.Context(), key, []dryrun.BundleKey{{Package: "lamp", Channel: "stable", Name: "lamp.v2"}, {Package: "lamp", Channel: "stable", Name: "lamp.v1"}})
		if err != nil {
			t.Fatal(err)
		}
		want := []dryrun.BundleImages{{OfDeployments: []string{"registry.example/operator:2"}}, {Related: []string{"registry.example/lamp:1", "registry.example/lens:1"}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", source, diff)
		}
		if requests[0].Cluster() != nil || requests[0].CatalogSource(key) != nil {
			t.Error("a cluster was read")
		}
		if _, err := requests[0].Images(t.Context(), key, []dryrun.BundleKey{{Package: "lamp", Channel: "stable", Name: "lamp.v3"}}); err == nil || !strings.Contains(err.Error(), "catalog olm/wares: bundle lamp.v3: ") {
			t.Errorf("error %v", err)
		}
	}
}
