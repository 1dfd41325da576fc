package prune

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/operator-registry/alpha/declcfg"

	"github.com/chandlery/chandlery/bundles/authoring/render"
	"github.com/chandlery/chandlery/bundles/selection"
)

const text = `schema: olm.package
name: p
defaultChannel: stable
own: kept
---
schema: olm.channel
package: p
name: stable
properties: [{type: x, value: 1}]
entries: [{name: p.v1}, {name: p.v2, replaces: p.v1}]
---
schema: olm.channel
package: p
name: fast
entries: [{name: p.v2}]
---
schema: olm.bundle
package: p
name: p.v1
image: example.com/p:1
properties: [{type: olm.package, value: {packageName: p, version: 1.0.0}}]
---
schema: olm.bundle
package: p
name: p.v2
image: example.com/p:2
properties: [{type: olm.package, value: {packageName: p, version: 2.0.0}}]
---
schema: olm.deprecations
package: p
entries:
- {reference: {schema: olm.bundle, name: p.v1}, message: old}
- {reference: {schema: olm.package}, message: gone}
---
schema: olm.package
name: q
defaultChannel: a
---
schema: olm.channel
package: q
name: a
entries: [{name: q.v1}]
---
schema: olm.bundle
package: q
name: q.v1
image: example.com/q:1
properties: [{type: olm.package, value: {packageName: q, version: 1.0.0}}]
`

// TestSelect selects the head of one channel and checks that all its fields are kept.
func TestSelect(t *testing.T) {
	t.Parallel()
	whole, err := render.OpenDirectory(t.Context(), fstest.MapFS{"c.yaml": {Data: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	terms := selection.Terms{Channels: []string{"p/stable"}, Heads: true}
	wanted, err := terms.Selection()
	if err != nil {
		t.Fatal(err)
	}
	pruned, err := Select(t.Context(), whole, wanted)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"p"}, pruned.Packages()); diff != "" {
		t.Errorf("packages: -want +got:\n%s", diff)
	}
	got, err := pruned.Package(t.Context(), "p")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Channels) != 1 || got.Channels[0].Name != "stable" || len(got.Channels[0].Properties) != 1 || len(got.Channels[0].Entries) != 1 {
		t.Errorf("channels: %+v", got.Channels)
	}
	if len(got.Bundles) != 1 || got.Bundles[0].Name != "p.v2" {
		t.Errorf("bundles: %+v", got.Bundles)
	}
	want := []declcfg.DeprecationEntry{{Reference: declcfg.PackageScopedReference{Schema: "olm.package"}, Message: "gone"}}
	if diff := cmp.Diff(want, got.Deprecations[0].Entries); diff != "" {
		t.Errorf("deprecations: -want +got:\n%s", diff)
	}
	if _, err := declcfg.ConvertToModel(*got); err != nil {
		t.Errorf("the result is invalid: %v", err)
	}
}
