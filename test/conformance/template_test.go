package conformance

import (
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/chandlery/chandlery/test/images"
)

// imageHost starts an image registry and returns its host and port.
func imageHost(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// pushBundles pushes the images of sample bundles, as HOST/PACKAGE:vVERSION.
func pushBundles(t *testing.T, host string, bundles ...string) {
	t.Helper()
	for _, bundle := range bundles {
		image, err := images.Bundle(os.DirFS(filepath.Join(sampleBundles, bundle)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := images.Push(t.Context(), host+"/"+strings.ReplaceAll(bundle, "/", ":v"), image); err != nil {
			t.Fatal(err)
		}
	}
}

// acceptImages gives opm a policy that accepts all images, without which it pulls none. Call it
// after programs are built, whose cache is in the same place.
func acceptImages(t *testing.T) {
	t.Helper()
	home := t.TempDir()
	dir := filepath.Join(home, ".config", "containers")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "policy.json"), []byte(`{"default":[{"type":"insecureAcceptAnything"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
}

// The templates of TestTemplates; HOST stands for the image registry.
const (
	basicTemplate = `schema: olm.template.basic
entries:
- {schema: olm.package, name: lantern, defaultChannel: stable, description: Lanterns.}
- {schema: olm.channel, package: lantern, name: stable, entries: [{name: lantern.v1.0.0}, {name: lantern.v1.1.0, replaces: lantern.v1.0.0}]}
- {schema: olm.channel, package: lantern, name: fast, entries: [{name: lantern.v1.1.0, skipRange: "<1.1.0"}]}
- {schema: olm.bundle, image: "HOST/lantern:v1.1.0"}
- {schema: olm.bundle, image: "HOST/lantern:v1.0.0"}
- {schema: olm.deprecations, package: lantern, entries: [{reference: {schema: olm.bundle, name: lantern.v1.0.0}, message: Upgrade.}]}
- {schema: example.schema, package: lantern, name: x, value: [1, 2.50, null]}
`
	semverTemplate = `schema: olm.semver
generateMajorChannels: true
generateMinorChannels: true
defaultChannelTypePreference: major
candidate:
  bundles: [{image: "HOST/compass:v2.0.0"}, {image: "HOST/compass:v2.1.0"}, {image: "HOST/compass:v2.2.0"}]
stable:
  bundles: [{image: "HOST/compass:v2.0.0"}, {image: "HOST/compass:v2.1.0"}]
`
	substitutesTemplate = `schema: olm.template.substitutes
entries:
- {schema: olm.package, name: lantern, defaultChannel: stable}
- {schema: olm.channel, package: lantern, name: stable, entries: [{name: lantern.v1.0.0}, {name: lantern.v1.1.0, replaces: lantern.v1.0.0}]}
- {schema: olm.bundle, package: lantern, name: lantern.v1.0.0, image: "example.com/lantern:1.0.0", properties: [{type: olm.package, value: {packageName: lantern, version: 1.0.0}}]}
- {schema: olm.bundle, package: lantern, name: lantern.v1.1.0, image: "example.com/lantern:1.1.0", properties: [{type: olm.package, value: {packageName: lantern, version: 1.1.0}}]}
substitutions:
- {name: "HOST/lantern:v1.2.0", base: lantern.v1.1.0}
`
)

// TestTemplates compares the renderings of templates of each type.
func TestTemplates(t *testing.T) {
	opm, catalog, host := buildOPM(t), catalogProgram(), imageHost(t)
	acceptImages(t)
	pushBundles(t, host, "lantern/1.0.0", "lantern/1.1.0", "lantern/1.2.0", "compass/2.0.0", "compass/2.1.0", "compass/2.2.0")
	for name, tt := range map[string]struct {
		reason   string
		kind     string
		template string
		level    string
		objects  int
	}{
		"Basic":       {"the objects of the template, with bundles in place of their images", "basic", basicTemplate, "none", 7},
		"Migrated":    {"manifests become metadata", "basic", basicTemplate, "bundle-object-to-csv-metadata", 7},
		"Semver":      {"channels for the versions", "semver", semverTemplate, "none", 1 + 3 + 7},
		"Substitutes": {"a bundle in place of another", "substitutes", substitutesTemplate, "none", 5},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "template.yaml")
			if err := os.WriteFile(file, []byte(strings.ReplaceAll(tt.template, "HOST", host)), 0o600); err != nil {
				t.Fatal(err)
			}
			flags := []string{file, "--use-http", "--migrate-level", tt.level}
			// Render with the type and without it; then the schema of the template determines it.
			for _, kind := range [][]string{{tt.kind}, nil} {
				ours := documents(t, catalog, slices.Concat([]string{"template"}, kind, flags)...)
				theirs := documents(t, opm, slices.Concat([]string{"alpha", "render-template"}, kind, flags)...)
				if count := sameDocuments(t, ours, theirs); count != tt.objects {
					t.Errorf("%s: compared %d objects, want %d", tt.reason, count, tt.objects)
				}
			}
		})
	}
}

// TestTemplatesRefused has templates that both programs refuse.
func TestTemplatesRefused(t *testing.T) {
	opm, catalog, host := buildOPM(t), catalogProgram(), imageHost(t)
	acceptImages(t)
	pushBundles(t, host, "lantern/1.0.0")
	for name, text := range map[string]string{
		"Schema":     "schema: olm.template.unknown\n",
		"NoSchema":   "entries: []\n",
		"Image":      strings.ReplaceAll(basicTemplate, "HOST", host),
		"Downgrade":  strings.ReplaceAll(substitutesTemplate, "HOST/lantern:v1.2.0", host+"/lantern:v1.0.0"),
		"Duplicates": fmt.Sprintf("schema: olm.semver\nstable: {bundles: [{image: %[1]s/lantern:v1.0.0}, {image: %[1]s/lantern:v1.0.0}]}\n", host),
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "template.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			for program, args := range map[string][]string{opm: {"alpha", "render-template"}, catalog: {"template"}} {
				out, err := exec.CommandContext(t.Context(), program, append(args, file, "--use-http")...).CombinedOutput()
				if err == nil {
					t.Errorf("%s renders it:\n%s", filepath.Base(program), out)
				}
			}
		})
	}
}
