package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/proto/api"
)

// seed is one input of a target.
type seed struct {
	// pkg is the folder of the package in the module, and target is the name of the target.
	pkg, target string
	// values are the arguments of the target.
	values []any
}

// encode returns a file of a corpus in the go command's format.
func encode(values []any) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString("go test fuzz v1\n")
	for _, value := range values {
		switch value := value.(type) {
		case []byte:
			fmt.Fprintf(&out, "[]byte(%q)\n", value)
		case string:
			fmt.Fprintf(&out, "string(%q)\n", value)
		case bool:
			fmt.Fprintf(&out, "bool(%v)\n", value)
		case int:
			fmt.Fprintf(&out, "int(%v)\n", value)
		default:
			return nil, fmt.Errorf("a value of type %T", value)
		}
	}
	return out.Bytes(), nil
}

// seeds returns the inputs of all targets.
func (c *content) seeds() ([]seed, error) {
	var all []seed
	for _, part := range []func(func(pkg, target string, values ...any)) error{
		c.ofBundles, c.ofCatalogs, c.ofObjects, c.ofServices, c.ofPlans,
	} {
		err := part(func(pkg, target string, values ...any) { all = append(all, seed{pkg, target, values}) })
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// ofBundles adds ranges of versions, properties and images.
func (c *content) ofBundles(add func(pkg, target string, values ...any)) error {
	for _, text := range c.ranges {
		add("bundles", "FuzzParseRange", text)
	}
	for _, p := range c.properties {
		add("bundles", "FuzzParseProperties", p.Type, []byte(p.Value))
	}
	for _, image := range c.images {
		add("bundles", "FuzzIsPlainImage", image)
	}
	return nil
}

// ofCatalogs adds whole catalogs, as JSON and as YAML, and their blobs as YAML.
func (c *content) ofCatalogs(add func(pkg, target string, values ...any)) error {
	for i, catalog := range c.catalogs {
		var asJSON, asYAML []byte
		for _, blob := range catalog {
			text, err := yaml.JSONToYAML(blob)
			if err != nil {
				return err
			}
			add("bundles/fbc", "FuzzConvertYAML", text)
			asJSON = append(append(asJSON, blob...), '\n')
			asYAML = append(append(asYAML, "---\n"...), text...)
		}
		add("bundles/fbc", "FuzzLoad", asJSON)
		add("bundles/fbc", "FuzzLoad", asYAML)
		add("bundles/fbc", "FuzzLoadLikePlainly", asJSON, asYAML, i%2 == 0)
		lower, err := archive("configs/catalog.yaml", asYAML)
		if err != nil {
			return err
		}
		upper, err := archive("configs/.wh.catalog.yaml", nil)
		if err != nil {
			return err
		}
		add("bundles/image", "FuzzLayers", lower, upper)
	}
	for _, p := range c.properties {
		if p.Type == "olm.csv.metadata" {
			add("bundles/index", "FuzzSynthesize", string(p.Value), "An operator", true)
		}
	}
	return nil
}

// archive returns a layer of an image with one file.
func archive(name string, content []byte) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(content)), Mode: 0o600}); err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	if err := w.Flush(); err != nil {
		return nil, err
	}
	// Omit the padding at the end, as some writers do.
	return out.Bytes(), nil
}

// ofObjects adds the objects of bundles as YAML, and catalogs in ConfigMaps with these objects.
func (c *content) ofObjects(add func(pkg, target string, values ...any)) error {
	for _, b := range c.bundles {
		var crds, csvs []json.RawMessage
		for _, o := range b.objects {
			text, err := yaml.JSONToYAML(o.text)
			if err != nil {
				return err
			}
			add("bundles/manifests", "FuzzRead", text)
			if len(text) < 1<<12 && !bytes.Contains(text, []byte("*")) {
				add("bundles/internal/values", "FuzzCount", text)
			}
			switch o.kind {
			case "CustomResourceDefinition":
				crds = append(crds, o.text)
			case "ClusterServiceVersion":
				csvs = append(csvs, o.text)
				add("supervisor/dryrun/inputs", "FuzzRead", string(text))
				half := len(text) / 2
				add("cmd/internal/redact", "FuzzText", string(text[max(0, half-500):half]), string(text[half:min(len(text), half+500)]))
			}
		}
		packages := []map[string]any{{"packageName": b.pkg, "channels": []any{map[string]any{"name": "stable", "currentCSV": b.name}}}}
		var lists [3][]byte
		for i, list := range []any{crds, csvs, packages} {
			text, err := yaml.Marshal(list)
			if err != nil {
				return err
			}
			lists[i] = text
		}
		add("bundles/manifests", "FuzzCatalog", lists[0], lists[1], lists[2])
	}
	return nil
}

// ofServices adds answers of the registry and search texts.
func (c *content) ofServices(add func(pkg, target string, values ...any)) error {
	for _, b := range c.bundles {
		message := &api.Bundle{CsvName: b.name, PackageName: b.pkg, ChannelName: "stable", Version: b.version}
		for _, o := range b.objects {
			if o.kind != "ClusterServiceVersion" && len(o.text) < 2000 {
				message.Object = append(message.Object, string(o.text))
			}
		}
		encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
		if err != nil {
			return err
		}
		add("server/extension", "FuzzReadBundle", encoded)
		add("server/extension", "FuzzIndexFold", b.display+"\n"+b.description, strings.ToLower(b.pkg))
	}
	return nil
}

// constraintTypes are the types of properties, in the order of the target FuzzParse.
var constraintTypes = []string{
	"olm.package", "olm.gvk", "olm.label", "olm.deprecated", "olm.package.required", "olm.gvk.required", "olm.label.required", "olm.constraint",
}

// ofPlans adds manifests of steps, and properties as constraints and as annotations.
func (c *content) ofPlans(add func(pkg, target string, values ...any)) error {
	for _, b := range c.bundles {
		for _, o := range b.objects {
			if len(o.text) < 8000 {
				add("supervisor/plansteps", "FuzzManifest", string(o.text))
				add("supervisor/plansteps", "FuzzSteps", string(o.text), `{"packageName":"`+b.pkg+`","version":"`+b.version+`"}`)
			}
		}
	}
	var small []property
	for _, p := range c.properties {
		if i := slices.Index(constraintTypes, p.Type); i >= 0 {
			add("supervisor/resolution/constraint", "FuzzParse", i, string(p.Value))
			small = append(small, p)
		}
	}
	text, err := json.Marshal(map[string]any{"properties": small})
	if err != nil {
		return err
	}
	add("supervisor/controllers/subscription", "FuzzReadProperties", string(text))
	return nil
}
