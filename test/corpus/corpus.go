package corpus

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// Catalog is one catalog of the corpus.
type Catalog struct {
	// Name identifies the origin of the catalog: "rule/base/mutation/encoding".
	Name string
	// Files are the files of the catalog by path.
	Files map[string][]byte
}

// Write writes the files below a directory, which need not exist.
func (c Catalog) Write(dir string) error {
	for name, content := range c.Files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("writing catalog %s: %w", c.Name, err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return fmt.Errorf("writing catalog %s: %w", c.Name, err)
		}
	}
	return nil
}

// All returns the whole corpus.
func All() []Catalog {
	out := valid()
	out = append(out, rules()...)
	out = append(out, structural()...)
	return append(out, textual()...)
}

// object is an object of a catalog, or a part of one.
type object = map[string]any

// base is a valid catalog for mutations.
type base struct {
	name    string
	objects []object
}

// bases returns fresh copies of the valid catalogs.
func bases() []base {
	return []base{
		{"Minimal", minimal()},
		{"Rich", rich()},
		{"Inline", inline()},
	}
}

// minimal is a package with two bundles in one channel.
func minimal() []object {
	return []object{
		pkg("alpha", "stable"),
		channel("alpha", "stable", object{"name": "alpha.v1.0.0"}, object{"name": "alpha.v1.1.0", "replaces": "alpha.v1.0.0"}),
		bundle("alpha", "alpha.v1.0.0", "1.0.0"),
		bundle("alpha", "alpha.v1.1.0", "1.1.0"),
	}
}

// rich has everything that catalogs may contain.
func rich() []object {
	p := pkg("beta", "stable")
	p["description"] = "Several\nlines <b>of</b> text: é"
	p["icon"] = object{"base64data": base64.StdEncoding.EncodeToString([]byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`)), "mediatype": "image/svg+xml"}
	newest := bundle("beta", "beta.v2.0.0", "2.0.0",
		property("olm.gvk", object{"group": "example.org", "version": "v1", "kind": "Beta"}),
		property("olm.gvk.required", object{"group": "example.org", "version": "v1", "kind": "Alpha"}),
		property("olm.package.required", object{"packageName": "alpha", "versionRange": ">=1.0.0 <2.0.0"}),
		property("olm.constraint", object{"failureMessage": "none", "package": object{"packageName": "alpha", "versionRange": ">1"}}),
		property("olm.csv.metadata", object{
			"displayName": "Beta", "keywords": []any{"a", "b"}, "annotations": object{"k": "v"},
			"installModes":    []any{object{"type": "AllNamespaces", "supported": true}},
			"crdDescriptions": object{"owned": []any{object{"name": "betas.example.org", "version": "v1", "kind": "Beta"}}},
		}),
		property("example.number", 12345), property("example.null", nil), property("example.text", "yes"),
	)
	newest["relatedImages"] = []any{object{"name": "beta", "image": "example.org/beta:2"}, object{"name": "", "image": ""}}
	return []object{
		p,
		channel("beta", "stable",
			object{"name": "beta.v1.0.0"},
			object{"name": "beta.v1.0.1", "replaces": "beta.v0.9.0"},
			object{"name": "beta.v2.0.0", "replaces": "beta.v1.0.0", "skips": []any{"beta.v1.0.1", "beta.v1.0.2"}, "skipRange": ">=1.0.0 <2.0.0"}),
		channel("beta", "candidate", object{"name": "beta.v1.0.1", "skips": []any{"beta.v1.0.0"}}, object{"name": "beta.v1.0.0"}),
		bundle("beta", "beta.v1.0.0", "1.0.0"),
		bundle("beta", "beta.v1.0.1", "1.0.1-rc.1+build.5"),
		newest,
		{"schema": "olm.deprecations", "package": "beta", "entries": []any{
			object{"reference": object{"schema": "olm.package"}, "message": "use alpha"},
			object{"reference": object{"schema": "olm.channel", "name": "candidate"}, "message": "use stable"},
			object{"reference": object{"schema": "olm.bundle", "name": "beta.v1.0.1"}, "message": "broken"},
		}},
		{"schema": "example.custom", "package": "beta", "name": "c", "any": []any{1, "two", nil}},
		{"schema": "example.custom"},
	}
}

// inline has two packages, one with inline manifests and one with a release.
func inline() []object {
	manifest := func(text string) any {
		return property("olm.bundle.object", object{"data": base64.StdEncoding.EncodeToString([]byte(text))})
	}
	delivered := bundle("gamma", "gamma.v1.0.0", "1.0.0",
		manifest(`{"kind":"ClusterServiceVersion","apiVersion":"operators.coreos.com/v1alpha1","metadata":{"name":"gamma.v1.0.0"}}`),
		manifest("kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: gamma\n"))
	delete(delivered, "image")
	rebuilt := bundle("delta", "delta-v1.0.0-2.rc", "1.0.0")
	properties, _ := rebuilt["properties"].([]any)
	properties[0] = property("olm.package", object{"packageName": "delta", "version": "1.0.0", "release": "2.rc"})
	return []object{
		pkg("gamma", "only"), channel("gamma", "only", object{"name": "gamma.v1.0.0"}), delivered,
		pkg("delta", "only"), channel("delta", "only", object{"name": "delta-v1.0.0-2.rc"}), rebuilt,
	}
}

func pkg(name, defaultChannel string) object {
	return object{"schema": "olm.package", "name": name, "defaultChannel": defaultChannel}
}

func channel(pkg, name string, entries ...any) object {
	return object{"schema": "olm.channel", "package": pkg, "name": name, "entries": entries}
}

func property(kind string, value any) object { return object{"type": kind, "value": value} }

func bundle(pkg, name, version string, properties ...any) object {
	own := property("olm.package", object{"packageName": pkg, "version": version})
	return object{
		"schema": "olm.bundle", "package": pkg, "name": name, "image": "example.org/" + pkg + "@sha256:" +
			"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "properties": append([]any{own}, properties...),
	}
}

// encoding is a way to write objects to files.
type encoding struct {
	name   string
	encode func([]object) map[string][]byte
}

// encodings returns the ways that authors use.
func encodings() []encoding {
	return []encoding{
		{"JSON", func(objects []object) map[string][]byte {
			var out bytes.Buffer
			for _, o := range objects {
				out.Write(asJSON(o))
				out.WriteByte('\n')
			}
			return map[string][]byte{"catalog.json": out.Bytes()}
		}},
		{"YAML", func(objects []object) map[string][]byte {
			var out bytes.Buffer
			for _, o := range objects {
				out.WriteString("---\n")
				out.Write(asYAML(o))
			}
			return map[string][]byte{"catalog.yaml": out.Bytes()}
		}},
	}
}

// split writes each object to its own file, alternating between JSON and YAML.
func split(objects []object) map[string][]byte {
	out := make(map[string][]byte)
	for i, o := range objects {
		if i%2 == 0 {
			out[fmt.Sprintf("%02d/object", i)] = asJSON(o)
		} else {
			out[fmt.Sprintf("object-%02d.yaml", i)] = asYAML(o)
		}
	}
	return out
}

func asJSON(value any) []byte {
	out, err := json.MarshalIndent(value, "", " ")
	return must(out, err)
}

func asYAML(value any) []byte {
	out, err := yaml.Marshal(value)
	return must(out, err)
}

// must returns a result that cannot fail, because all values come from this package.
func must(out []byte, err error) []byte {
	if err != nil {
		panic(err) //nolint:forbidigo // a mistake in this package
	}
	return out
}

// valid returns the valid catalogs.
func valid() []Catalog {
	var out []Catalog
	for _, b := range bases() {
		for _, e := range encodings() {
			out = append(out, Catalog{Name: "Valid/" + b.name + "/" + e.name, Files: e.encode(b.objects)})
		}
		out = append(out, Catalog{Name: "Valid/" + b.name + "/Split", Files: split(b.objects)})
	}
	return out
}
