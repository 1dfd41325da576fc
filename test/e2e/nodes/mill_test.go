package nodes_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/chandlery/chandlery/test/failover"
	"github.com/chandlery/chandlery/test/images"
	"github.com/chandlery/chandlery/test/programs"
)

// The mill is an operator that converts blends between two API versions. All three versions of the
// operator serve both. The second stores blends in another API version than the first, and the
// third has another Deployment.
const (
	millPackage = "mill"
	millImage   = "chandlery/mill:test"
	blendGroup  = "mill.example.com"
	blendCRD    = "blends." + blendGroup
)

// mill is one version of the operator.
type mill struct {
	major      int
	deployment string
	// storage is the API version in which objects are stored.
	storage string
}

func mills() []mill {
	return []mill{
		{major: 1, deployment: "mill", storage: "v1"},
		{major: 2, deployment: "mill", storage: "v2"},
		{major: 3, deployment: "grinder", storage: "v2"},
	}
}

func (m mill) csv() string { return fmt.Sprintf("mill.v%d.0.0", m.major) }

// pushMill pushes the image of the operator and a catalog with its versions, and returns the
// reference of the catalog.
func pushMill(t *testing.T, s *failover.Scene) string {
	t.Helper()
	dir := t.TempDir()
	must(t, programs.Build(t.Context(), dir, "./test/e2e/nodes/mill"))
	operator, err := images.Program(filepath.Join(dir, "mill"), "mill", "/tmp/k8s-webhook-server/serving-certs", ":8443")
	must(t, err)
	_, err = s.Bed.Images.Push(t.Context(), operator, millImage)
	must(t, err)
	registry, err := registryImage()
	must(t, err)
	catalog, err := images.Registry(registry, fstest.MapFS{"mill/catalog.json": &fstest.MapFile{Data: millCatalog(t)}})
	must(t, err)
	reference := s.Bed.Images.Address() + "/mills:v1"
	_, err = images.Push(t.Context(), reference, catalog)
	must(t, err)
	return reference
}

// millCatalog returns the file-based catalog of the operator.
func millCatalog(t *testing.T) []byte {
	t.Helper()
	var entries []any
	blobs := []any{map[string]any{"schema": "olm.package", "name": millPackage, "defaultChannel": "stable"}}
	replaced := ""
	for _, m := range mills() {
		entries = append(entries, map[string]any{"name": m.csv(), "replaces": replaced})
		properties := []any{
			property("olm.package", map[string]any{"packageName": millPackage, "version": fmt.Sprintf("%d.0.0", m.major)}),
			property("olm.gvk", map[string]any{"group": blendGroup, "version": "v1", "kind": "Blend"}),
			property("olm.gvk", map[string]any{"group": blendGroup, "version": "v2", "kind": "Blend"}),
		}
		for _, manifest := range []string{m.version(replaced), m.definition()} {
			var compact bytes.Buffer
			must(t, json.Compact(&compact, []byte(manifest)))
			properties = append(properties, property("olm.bundle.object", map[string]any{"data": base64.StdEncoding.EncodeToString(compact.Bytes())}))
		}
		blobs = append(blobs, map[string]any{"schema": "olm.bundle", "package": millPackage, "name": m.csv(), "properties": properties})
		replaced = m.csv()
	}
	blobs = append(blobs, map[string]any{"schema": "olm.channel", "package": millPackage, "name": "stable", "entries": entries})
	var text []byte
	for _, blob := range blobs {
		one, err := json.Marshal(blob)
		must(t, err)
		text = append(append(text, one...), '\n')
	}
	return text
}

func property(kind string, value any) any { return map[string]any{"type": kind, "value": value} }

// version returns the ClusterServiceVersion.
func (m mill) version(replaces string) string {
	return strings.NewReplacer("CSV", m.csv(), "VERSION", fmt.Sprintf("%d.0.0", m.major), "REPLACES", replaces,
		"DEPLOYMENT", m.deployment, "DEFINITION", blendCRD, "IMAGE", millImage).Replace(`
	{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"CSV"},
	"spec":{"displayName":"Mill","version":"VERSION","replaces":"REPLACES",
	"installModes":[{"type":"OwnNamespace","supported":false},{"type":"SingleNamespace","supported":false},
		{"type":"MultiNamespace","supported":false},{"type":"AllNamespaces","supported":true}],
	"customresourcedefinitions":{"owned":[
		{"name":"DEFINITION","version":"v1","kind":"Blend"},{"name":"DEFINITION","version":"v2","kind":"Blend"}]},
	"webhookdefinitions":[{"type":"ConversionWebhook","generateName":"convert.mill.example.com","deploymentName":"DEPLOYMENT",
		"containerPort":443,"targetPort":8443,"webhookPath":"/convert","conversionCRDs":["DEFINITION"],
		"admissionReviewVersions":["v1"],"sideEffects":"None"}],
	"install":{"strategy":"deployment","spec":{"deployments":[{"name":"DEPLOYMENT","spec":{"replicas":2,
		"selector":{"matchLabels":{"app":"DEPLOYMENT"}},
		"template":{"metadata":{"labels":{"app":"DEPLOYMENT","release":"VERSION"}},
		"spec":{"terminationGracePeriodSeconds":20,"containers":[{"name":"main","image":"IMAGE",
			"lifecycle":{"preStop":{"sleep":{"seconds":5}}},
			"readinessProbe":{"periodSeconds":1,"httpGet":{"scheme":"HTTPS","path":"/healthz","port":8443}}}]}}}}]}}}}`)
}

// definition returns the CustomResourceDefinition.
func (m mill) definition() string {
	return strings.NewReplacer("GROUP", blendGroup, "V1", strconv.FormatBool(m.storage == "v1"), "V2", strconv.FormatBool(m.storage == "v2")).Replace(`
	{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"blends.GROUP"},
	"spec":{"group":"GROUP","scope":"Namespaced","names":{"plural":"blends","singular":"blend","kind":"Blend","listKind":"BlendList"},
	"versions":[
		{"name":"v1","served":true,"storage":V1,"schema":{"openAPIV3Schema":{"type":"object","required":["spec"],"properties":{
			"spec":{"type":"object","required":["beans"],"properties":{"beans":{"type":"string"}}}}}}},
		{"name":"v2","served":true,"storage":V2,"schema":{"openAPIV3Schema":{"type":"object","required":["spec"],"properties":{
			"spec":{"type":"object","required":["variety"],"properties":{"variety":{"type":"string"}}}}}}}]}}`)
}
