package conformance

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// files are the contents of a catalog directory by path.
type files map[string]string

// writeFiles creates a directory of files.
func writeFiles(t *testing.T, content files) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range content {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// pkg, channel and bundle return objects of a catalog as JSON, one per line.
func pkg(name, defaultChannel string) string {
	return fmt.Sprintf(`{"schema":"olm.package","name":%q,"defaultChannel":%q}`+"\n", name, defaultChannel)
}

func channel(pkg, name, entries string) string {
	return fmt.Sprintf(`{"schema":"olm.channel","package":%q,"name":%q,"entries":[%s]}`+"\n", pkg, name, entries)
}

func bundle(pkg, name, version string, properties ...string) string {
	own := fmt.Sprintf(`{"type":"olm.package","value":{"packageName":%q,"version":%q}}`, pkg, version)
	return fmt.Sprintf(`{"schema":"olm.bundle","package":%q,"name":%q,"image":"example.org/%s:v1","properties":[%s]}`+"\n",
		pkg, name, pkg, strings.Join(append([]string{own}, properties...), ","))
}

func object(manifest string) string {
	return fmt.Sprintf(`{"type":"olm.bundle.object","value":{"data":%q}}`, base64.StdEncoding.EncodeToString([]byte(manifest)))
}

// oddCatalog is valid and has everything that is rare in real catalogs.
var oddCatalog = files{
	".indexignore": "# not part of the catalog\n*.md\n!keep.md\n/ignored/**\n",
	"README.md":    "# not YAML: [",
	"ignored/x":    "{",
	"no-extension": pkg("plain", "stable") +
		channel("plain", "stable", `{"name":"plain.v1.1.0","replaces":"plain.v1.0.0","skips":["plain.v1.0.1","plain.v1.0.0"],"skipRange":">=0.9.0 <1.1.0"},`+
			`{"name":"plain.v1.0.1","replaces":"plain.v1.0.0"},{"name":"plain.v1.0.0","replaces":"plain.v0.9.0"}`) +
		channel("plain", "beta/1", `{"name":"plain.v1.0.1","skips":["plain.v1.0.0"]}`) +
		bundle("plain", "plain.v1.0.0", "1.0.0") +
		bundle("plain", "plain.v1.0.1", "1.0.1+build.1",
			`{"type":"olm.gvk","value":{"group":"example.org","version":"v1","kind":"Plain"}}`,
			`{"type":"olm.gvk","value":{"kind":"Plain","group":"example.org","version":"v1"}}`) +
		bundle("plain", "plain.v1.1.0", "1.1.0",
			`{"type":"olm.gvk","value":{"group":"example.org","version":"v1","kind":"Plain"}}`,
			`{"type":"olm.gvk.required","value":{"group":"example.org","version":"v1alpha1","kind":"Both"}}`,
			`{"type":"olm.package.required","value":{"packageName":"both","versionRange":">=1.0.0 <2.0.0 & others"}}`,
			`{"type":"olm.constraint","value":{"failureMessage":"<none>","all":{"constraints":[{"package":{"packageName":"both","versionRange":">1"}}]}}}`,
			`{"type":"numbers","value":{"z":1.0,"a":12345678901234567890,"m":1e21,"é":"<&>\u2028"}}`,
			`{"type":"null","value":null}`) +
		`{"schema":"olm.deprecations","package":"plain","entries":[` +
		`{"reference":{"schema":"olm.package"},"message":"gone"},` +
		`{"reference":{"schema":"olm.channel","name":"beta/1"},"message":"use stable"},` +
		`{"reference":{"schema":"olm.bundle","name":"plain.v1.0.1"},"message":"broken"}]}`,
	"deep/er/both.yaml": `---
Schema: olm.package
Name: both
defaultChannel: "yes"
description: |
  Several
  lines <b>of</b> text
icon:
  base64data: PHN2Zy8+
  mediatype: image/svg+xml
---
schema: olm.channel
package: both
name: "yes"
entries:
- name: both.v1.0.0
- {name: both.v2.0.0, replaces: both.v1.0.0, skips: [missing.v1]}
--- # the bundles
schema: olm.bundle
package: both
name: both.v1.0.0
image: quay.example.org/both@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
relatedImages: [{name: "", image: ""}, {name: a, image: "example.org/a:1"}]
properties:
- {type: olm.package, value: {packageName: both, version: 1.0.0}}
- type: olm.csv.metadata
  value:
    annotations: {b: "2", a: "<1>"}
    labels: {l: "1"}
    displayName: Both & more
    installModes: [{type: AllNamespaces, supported: on}]
    keywords: [k]
    links: [{name: link, url: u}]
    maintainers: [{name: m, email: e}]
    minKubeVersion: 1.20.0
    maturity: alpha
    nativeAPIs: [{group: apps, version: v1, kind: Deployment}]
    provider: {name: p}
    apiServiceDefinitions: {owned: [{name: s, group: g, version: v1, kind: K, deploymentName: d, containerPort: 443}]}
    crdDescriptions:
      owned:
      - {name: boths.example.org, version: v1alpha1, kind: Both, specDescriptors: [{path: a, value: {x: [1.50]}}]}
- {type: olm.gvk, value: {group: example.org, version: v1alpha1, kind: Both}}
...
---
schema: olm.bundle
package: both
name: both.v2.0.0
properties:
- {type: olm.package, value: {packageName: both, version: 2.0.0-rc.1}}
- {type: olm.gvk, value: {group: example.org, version: v1alpha1, kind: Both}}
` + "- " + object("kind: ConfigMap\napiVersion: v1\nmetadata: {name: first}\nbinary: 0x10\n") + "\n- " +
		object(" {\"kind\": \"ClusterServiceVersion\",  \"metadata\": {\"name\": \"both.v2.0.0\"}}\n") + "\n- " +
		object("kind: ClusterServiceVersion\nmetadata: {name: second}\n") + "\n",
	"keep.md": `{"schema":"olm.package","name":"mixed","defaultChannel":"a"}` + "\n---\n" +
		"schema: olm.channel\npackage: mixed\nname: a\nentries: [{name: mixed-v1.0.0-2.rc}]\n---\n" +
		"schema: olm.bundle\npackage: mixed\nname: mixed-v1.0.0-2.rc\nimage: example.org/mixed\nproperties:\n" +
		"- {type: olm.package, value: {packageName: mixed, version: 1.0.0, release: 2.rc}}\n",
	"custom.json": `{"schema":"example.schema","package":"plain","name":"c","x":[1,2]}{"schema":"example.schema"}`,
	"empty.json":  "",
}
