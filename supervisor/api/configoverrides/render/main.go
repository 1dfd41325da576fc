// Command render writes the schema of the annotation chandlery.dev/config to a file. The CustomResourceDefinitions of
// operators.coreos.com contain the parts that spec.config and Deployments have too. The command is a step of `make
// generate`.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"

	"github.com/operator-framework/api/crds"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func main() {
	if err := render(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

var errNoFile = errors.New("name the file to write")

func render(args []string) error {
	if len(args) != 1 {
		return errNoFile
	}
	s, err := annotation()
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return fmt.Errorf("encoding the schema: %w", err)
	}
	if err := os.WriteFile(args[0], append(text, '\n'), 0o644); err != nil { //nolint:gosec // it is committed
		return fmt.Errorf("writing the schema: %w", err)
	}
	return nil
}

// annotation returns the schema of the annotation. The title of a schema names the allowed values in messages.
func annotation() (schema, error) {
	var parts [4]schema
	for i, path := range [][]string{
		{"config", "resources"},
		{"install", "spec", "deployments", "", "spec", "template", "spec", "containers", "", "securityContext"},
		{"install", "spec", "deployments", "", "spec", "template", "spec", "securityContext"},
		{"install", "spec", "deployments", "", "spec", "template", "spec", "topologySpreadConstraints"},
	} {
		crd := crds.ClusterServiceVersion()
		if i == 0 {
			crd = crds.Subscription()
		}
		var err error
		if parts[i], err = specPart(crd, path); err != nil {
			return nil, err
		}
	}
	text := schema{"type": "string"}
	return object(schema{
		"replicas":                  schema{"type": "integer", "format": "int32", "minimum": 0},
		"args":                      mapOf(listOf(text)),
		"imagePullSecrets":          listOf(reference("name", `a name or {"name": NAME}`, "the name of a Secret", nil)),
		"priorityClassName":         text,
		"topologySpreadConstraints": parts[3],
		"podLabels":                 mapOf(text),
		"podSecurityContext":        parts[2],
		"containers":                mapOf(object(schema{"resources": parts[0], "securityContext": parts[1]})),
		"certificateIssuer":         reference("name", "an object", "the name of an issuer", schema{"kind": text, "group": text}),
	}), nil
}

// schema is a JSON schema.
type schema map[string]any

func object(properties schema) schema { return schema{"type": "object", "properties": properties} }

func mapOf(values schema) schema { return schema{"type": "object", "additionalProperties": values} }

func listOf(items schema) schema { return schema{"type": "array", "items": items} }

// reference returns the schema of an object with a required name and optional other fields.
func reference(name, title, nameTitle string, others schema) schema {
	properties := schema{name: schema{"type": "string", "minLength": 1, "title": nameTitle}}
	maps.Copy(properties, others)
	return schema{"type": "object", "title": title, "required": []string{name}, "properties": properties}
}

// specPart returns the schema at a path below spec in the only version of a definition. An empty name in the path
// means the items of a list.
func specPart(crd *apiextensionsv1.CustomResourceDefinition, path []string) (schema, error) {
	s := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	for _, name := range path {
		if name == "" {
			s = *s.Items.Schema
			continue
		}
		next, found := s.Properties[name]
		if !found {
			return nil, fmt.Errorf("the schema of %s has no field %s of %q", crd.Name, name, path)
		}
		s = next
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encoding the schema of %s: %w", crd.Name, err)
	}
	part := map[string]any{}
	if err := json.Unmarshal(text, &part); err != nil {
		return nil, fmt.Errorf("decoding the schema of %s: %w", crd.Name, err)
	}
	simplify(part)
	return part, nil
}

// simplify removes descriptions from a schema, and replaces the marker of quantities by the types that it means.
func simplify(s map[string]any) {
	if text, is := s["description"].(string); is && text != "" {
		delete(s, "description")
	}
	if s["x-kubernetes-int-or-string"] == true {
		delete(s, "x-kubernetes-int-or-string")
		delete(s, "anyOf")
		s["type"], s["title"] = []string{"integer", "string"}, `a quantity, such as "500m" or "2Gi"`
	}
	for _, value := range s {
		if inner, is := value.(map[string]any); is {
			simplify(inner)
		}
	}
}
