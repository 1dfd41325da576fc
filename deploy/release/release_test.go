package release

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/bundles/image/layer"
)

// epoch is the time of the files in these tests.
var epoch = time.Unix(1_700_000_000, 0)

func version(t *testing.T, text string) Version {
	t.Helper()
	v, err := ParseVersion(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestParseVersion(t *testing.T) {
	for _, tt := range []struct {
		text, want, tag string
		prerelease      bool
		reason          string
	}{
		{text: "1.2.0", want: "1.2.0", tag: "v1.2.0", reason: "a final version"},
		{text: "v1.2.0", want: "1.2.0", tag: "v1.2.0", reason: "the name of a tag in git"},
		{text: "0.0.0-test", want: "0.0.0-test", tag: "v0.0.0-test", prerelease: true, reason: "a pre-release"},
		{text: "1.2", reason: "Semantic Versioning has three numbers"},
		{text: "", reason: "no version was named"},
		{text: "1.2.0+linux", reason: "a tag of an image contains no plus sign"},
	} {
		got, err := ParseVersion(tt.text)
		if (err == nil) != (tt.want != "") {
			t.Errorf("%q, %s: %v", tt.text, tt.reason, err)
			continue
		}
		if err == nil && (got.String() != tt.want || got.Tag() != tt.tag || got.IsPrerelease() != tt.prerelease) {
			t.Errorf("%q, %s: %s, %s, %t", tt.text, tt.reason, got, got.Tag(), got.IsPrerelease())
		}
	}
}

func TestNotes(t *testing.T) {
	const changelog = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- [Lamps](docs/lamps.md#oil).\n\n## [1.0.0] - 2026-01-01\n\n- [Wicks](https://example.com/wicks).\n"
	for _, tt := range []struct {
		version, want string
		reason        string
	}{
		{version: "1.0.0", want: "# Chandlery 1.0.0\n\n- [Wicks](https://example.com/wicks).\n", reason: "its section, whose link is absolute"},
		{
			version: "1.1.0-rc.1", reason: "a pre-release without a section",
			want: "# Chandlery 1.1.0-rc.1\n\n### Added\n\n- [Lamps](https://github.com/chandlery/chandlery/blob/v1.1.0-rc.1/docs/lamps.md#oil).\n",
		},
		{version: "1.1.0", reason: "the section Unreleased was not renamed"},
	} {
		got, err := notes(changelog, version(t, tt.version))
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s, %s: %v\n%s", tt.version, tt.reason, err, cmp.Diff(tt.want, got))
		}
	}
}

func TestSetScalars(t *testing.T) {
	const before = "# Images.\nimage:\n  # The repository.\n  repository: chandlery/supervisor # without tag\n  digest: \"\"\nname: 'a'\nports: [1]\n"
	for _, tt := range []struct {
		values map[string]string
		want   string
		reason string
	}{
		{
			values: map[string]string{"image.repository": "example.com/s", "image.digest": "sha256:1", "name": "b"},
			want:   "# Images.\nimage:\n  # The repository.\n  repository: \"example.com/s\" # without tag\n  digest: \"sha256:1\"\nname: \"b\"\nports: [1]\n",
			reason: "comments stay",
		},
		{values: map[string]string{"image.tag": "1"}, reason: "an unknown key"},
		{values: map[string]string{"image": "1"}, reason: "a mapping"},
		{values: map[string]string{"ports.0": "1"}, reason: "a list"},
	} {
		got, err := setScalars([]byte(before), tt.values)
		if string(got) != tt.want || errors.Is(err, errNoScalar) != (tt.want == "") {
			t.Errorf("%s: %v\n%s", tt.reason, err, cmp.Diff(tt.want, string(got)))
		}
	}
}

func TestReleaseChart(t *testing.T) {
	tree := fstest.MapFS{
		"Chart.yaml":           {Data: []byte("name: chandlery\nversion: 0.1.0\nappVersion: latest\n")},
		"values.yaml":          {Data: []byte("image:\n  repository: s\n  digest: \"\"\nregistryImage:\n  repository: r\n  digest: \"\"\n")},
		"templates/notes.yaml": {Data: []byte("kind: Note\n")},
	}
	files, err := releaseChart(tree, version(t, "1.2.0"), map[string]reference{
		supervisorImage: {"example.com/chandlery/supervisor", "sha256:1"}, registryImage: {"example.com/chandlery/registry", "sha256:2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "name: chandlery\nversion: \"1.2.0\"\nappVersion: \"1.2.0\"\n" +
		"image:\n  repository: \"example.com/chandlery/supervisor\"\n  digest: \"sha256:1\"\nregistryImage:\n  repository: \"example.com/chandlery/registry\"\n  digest: \"sha256:2\"\n"
	if diff := cmp.Diff(want, string(files["Chart.yaml"])+string(files["values.yaml"])); diff != "" {
		t.Errorf("chart (-want +got):\n%s", diff)
	}
	packed, err := files.archive(epoch)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := extract(packed, "chandlery/templates/notes.yaml"); err != nil || string(got) != "kind: Note\n" {
		t.Errorf("the template is %q, %v", got, err)
	}
	image, err := files.image(packed, version(t, "1.2.0"), epoch)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.RawConfigFile()
	if want := `{"appVersion":"1.2.0","name":"chandlery","version":"1.2.0"}`; err != nil || string(config) != want {
		t.Errorf("the configuration is %s, %v, want %s", config, err, want)
	}
	if manifest, err := image.Manifest(); err != nil || manifest.Config.MediaType != chartConfig || manifest.Layers[0].MediaType != chartContent {
		t.Errorf("the manifest is %+v, %v", manifest, err)
	}
}

func TestArchive(t *testing.T) {
	files := []layer.Entry{layer.Program("kubectl-chandlery", []byte("program")), layer.File("LICENSE", []byte("license"))}
	for _, system := range []string{"linux", windows} {
		platform := v1.Platform{OS: system, Architecture: "amd64"}
		first, err := archive(platform, files, epoch, layer.New)
		if err != nil {
			t.Fatal(err)
		}
		second, err := archive(platform, files, epoch.In(time.FixedZone("elsewhere", 3600)), layer.New)
		if err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s: the second archive differs, %v", system, err)
		}
		for _, file := range files {
			if got, err := extract(first, file.Name); err != nil || !bytes.Equal(got, file.Body) {
				t.Errorf("%s: %s is %q, %v", system, file.Name, got, err)
			}
		}
		if _, err := extract(first, "README"); err == nil {
			t.Errorf("%s: a missing file is there", system)
		}
	}
}

func TestSums(t *testing.T) {
	tree := fstest.MapFS{
		"b": {Data: []byte("b")}, "a/c": {Data: []byte("c")}, "SHA256SUMS": {}, "cosign.pub": {},
		"signatures/index.json": {}, "provenance.sigstore.json": {},
	}
	got, err := checksums(tree, isReproducible)
	if err != nil {
		t.Fatal(err)
	}
	const text = "2e7d2c03a9507ae265ecf5b5356885a53393a2029d241394997265a1a25aefc6  a/c\n" +
		"3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d  b\n"
	if diff := cmp.Diff(text, string(got.text())); diff != "" {
		t.Errorf("checksums (-want +got):\n%s", diff)
	}
	parsed, err := parseSums([]byte(text))
	if err != nil || !maps.Equal(parsed, got) {
		t.Errorf("parsed: %v, %v", parsed, err)
	}
	for _, broken := range []string{"2e7d  a/c\n", text + "\n", strings.ReplaceAll(text, "  b", "  ../b")} {
		if _, err := parseSums([]byte(broken)); !errors.Is(err, errNoSum) {
			t.Errorf("%q is accepted", broken)
		}
	}
	want := []string{"a is missing", "b has another checksum", "d has no checksum"}
	if diff := cmp.Diff(want, sums{"b": "2", "c": "3", "d": "4"}.differences(sums{"a": "1", "b": "1", "c": "3"})); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
}

func TestKrewManifest(t *testing.T) {
	v := version(t, "1.2.0")
	platforms := []v1.Platform{{OS: "linux", Architecture: "arm64"}, {OS: windows, Architecture: "amd64"}}
	files := sums{
		"kubectl-chandlery_1.2.0_linux_arm64.tar.gz": "1", "kubectl-chandlery_1.2.0_windows_amd64.zip": "2",
		"kubectl-chandlery_1.2.0_linux_arm64.spdx.json": "3", "install.yaml": "4",
	}
	text, err := krewManifest(v, "https://example.com/v1.2.0/", platforms, files)
	if err != nil {
		t.Fatal(err)
	}
	var manifest krewPlugin
	if err := yaml.UnmarshalStrict(text, &manifest); err != nil {
		t.Fatal(err)
	}
	want := []krewPlatform{
		{krewSelector{map[string]string{"os": "linux", "arch": "arm64"}}, "https://example.com/v1.2.0/kubectl-chandlery_1.2.0_linux_arm64.tar.gz", "1", "kubectl-chandlery"},
		{krewSelector{map[string]string{"os": "windows", "arch": "amd64"}}, "https://example.com/v1.2.0/kubectl-chandlery_1.2.0_windows_amd64.zip", "2", "kubectl-chandlery.exe"},
	}
	if diff := cmp.Diff(want, manifest.Spec.Platforms); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
	if lines := krewDifferences(manifest, v, files); len(lines) > 0 {
		t.Errorf("differences: %v", lines)
	}
	files["kubectl-chandlery_1.2.0_linux_arm64.tar.gz"] = "5"
	files["kubectl-chandlery_1.2.0_darwin_arm64.tar.gz"] = "6"
	wantLines := []string{
		"kubectl-chandlery_1.2.0_darwin_arm64.tar.gz has no checksum", "kubectl-chandlery_1.2.0_linux_arm64.tar.gz has another checksum",
		"the manifest is about version v1.2.0",
	}
	if diff := cmp.Diff(wantLines, krewDifferences(manifest, version(t, "1.3.0"), files)); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
}

func TestPluginPlatforms(t *testing.T) {
	var names []string
	for _, platform := range pluginPlatforms() {
		names = append(names, archiveName(version(t, "1.2.0"), platform))
	}
	want := []string{
		"kubectl-chandlery_1.2.0_darwin_amd64.tar.gz", "kubectl-chandlery_1.2.0_darwin_arm64.tar.gz",
		"kubectl-chandlery_1.2.0_linux_amd64.tar.gz", "kubectl-chandlery_1.2.0_linux_arm64.tar.gz",
		"kubectl-chandlery_1.2.0_windows_amd64.zip", "kubectl-chandlery_1.2.0_windows_arm64.zip",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("archives (-want +got):\n%s", diff)
	}
}

func digest(letter string) v1.Hash {
	return v1.Hash{Algorithm: "sha256", Hex: strings.Repeat(letter, 64)}
}

func TestPlaces(t *testing.T) {
	all := []stored{
		{digest: digest("d"), subject: &v1.Descriptor{Digest: digest("b")}},
		{repository: registryImage, tag: "1", digest: digest("a"), members: []v1.Hash{digest("b")}},
		{digest: digest("e"), subject: &v1.Descriptor{Digest: digest("a")}},
	}
	got, err := places(all)
	if err != nil {
		t.Fatal(err)
	}
	for _, letter := range []string{"a", "b", "d", "e"} {
		if got[digest(letter)] != registryImage {
			t.Errorf("%s is in %q", letter, got[digest(letter)])
		}
	}
	for _, lost := range []stored{{digest: digest("f")}, {digest: digest("f"), subject: &v1.Descriptor{Digest: digest("c")}}} {
		if _, err := places(append(all, lost)); !errors.Is(err, errNotNamed) {
			t.Errorf("with %+v: %v", lost, err)
		}
	}
	if diff := cmp.Diff("example.com/chandlery/registry@"+digest("a").String(), named(all, "example.com")[registryImage].String()); diff != "" {
		t.Errorf("reference (-want +got):\n%s", diff)
	}
}

func TestExpectImages(t *testing.T) {
	const manifests = "kind: Namespace\n---\nkind: Deployment\nspec:\n  template:\n    spec:\n      containers:\n" +
		"      - image: example.com/s@sha256:1\n        env:\n        - {name: SUPERVISOR_REGISTRY_IMAGE, value: 'example.com/r@sha256:2'}\n        - {name: GOMEMLIMIT, value: 900MiB}\n"
	for _, tt := range []struct {
		want   map[string]reference
		ok     bool
		reason string
	}{
		{want: map[string]reference{"s": {"example.com/s", "sha256:1"}, "r": {"example.com/r", "sha256:2"}}, ok: true, reason: "the images"},
		{want: map[string]reference{"s": {"example.com/s", "sha256:1"}, "r": {"example.com/r", "sha256:3"}}, reason: "another digest"},
		{want: map[string]reference{"s": {"example.com/s", "sha256:1"}}, reason: "an image that is not of the release"},
		{want: map[string]reference{}, reason: "images where none are expected"},
	} {
		if err := expectImages([]byte(manifests), tt.want); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.reason, err)
		}
	}
}

func TestKustomization(t *testing.T) {
	text, err := kustomization("../deploy", map[string]reference{supervisorImage: {"example.com/s", "sha256:1"}, registryImage: {"example.com/r", "sha256:2"}})
	if err != nil {
		t.Fatal(err)
	}
	const want = "configurations:\n- images.yaml\nimages:\n- digest: sha256:2\n  name: chandlery/registry\n  newName: example.com/r\n" +
		"- digest: sha256:1\n  name: chandlery/supervisor\n  newName: example.com/s\nresources:\n- ../deploy\n"
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("kustomization (-want +got):\n%s", diff)
	}
}

// TestStatement reads back what the provenance states.
func TestStatement(t *testing.T) {
	o := Options{
		Source:  Source{Commit: strings.Repeat("c", 40), Created: epoch, Go: "go1.26.3"},
		Version: version(t, "1.2.0"), Images: "example.com", Downloads: "https://example.com/v1.2.0", Builder: "https://example.com/builder",
		Platforms: []v1.Platform{{OS: "linux", Architecture: "arm64"}}, PluginPlatforms: pluginPlatforms()[:2],
	}
	file, image := strings.Repeat("a", 64), strings.Repeat("b", 64)
	statement, err := o.statement(sums{"install.yaml": file}, map[string]reference{registryImage: {"example.com/r", "sha256:" + image}}, epoch, epoch.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	text, err := protojson.Marshal(statement)
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseStatement(text)
	if err != nil {
		t.Fatal(err)
	}
	want := facts{
		version: o.Version, commit: o.Commit, images: o.Images,
		subjects: sums{"install.yaml": file, "example.com/r": image},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(facts{})); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
	var generic map[string]any
	if err := json.Unmarshal(text, &generic); err != nil || generic["_type"] != "https://in-toto.io/Statement/v1" || generic["predicateType"] != predicateType {
		t.Errorf("the statement is %s", text)
	}
	wantParameters := map[string]any{
		"version": "1.2.0", "images": "example.com", "downloads": "https://example.com/v1.2.0", "sourceDateEpoch": "2023-11-14T22:13:20Z",
		"platforms": []any{"linux/arm64"}, "plugins": []any{"darwin/amd64", "darwin/arm64"},
	}
	definition, _ := statement.GetPredicate().AsMap()["buildDefinition"].(map[string]any)
	if diff := cmp.Diff(wantParameters, definition["externalParameters"]); diff != "" {
		t.Errorf("parameters (-want +got):\n%s", diff)
	}
	o.Builder = ""
	if _, err := o.statement(sums{"install.yaml": file}, nil, epoch, epoch); err == nil {
		t.Error("a builder without a URI is accepted")
	}
}

func TestReplaceable(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		file, reason string
		ok           bool
	}{
		{file: "SHA256SUMS", ok: true, reason: "an earlier release"},
		{file: "notes.txt", reason: "a mistyped folder"},
	} {
		folder := filepath.Join(dir, tt.file+".d")
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := replaceable(folder); err != nil {
			t.Errorf("an empty folder: %v", err)
		}
		if err := os.WriteFile(filepath.Join(folder, tt.file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := replaceable(folder); errors.Is(err, errOtherFiles) == tt.ok {
			t.Errorf("%s: %v", tt.reason, err)
		}
	}
	if err := replaceable(filepath.Join(dir, "absent")); err != nil {
		t.Errorf("an absent folder: %v", err)
	}
}

func TestTrust(t *testing.T) {
	for _, tt := range []struct {
		trust Trust
		want  []string
	}{
		{trust: Trust{Key: "cosign.pub"}, want: []string{"--key", "cosign.pub", "--insecure-ignore-tlog=true"}},
		{
			trust: Trust{Identity: "me@example.com", Issuer: "https://example.com"},
			want:  []string{"--certificate-identity", "me@example.com", "--certificate-oidc-issuer", "https://example.com"},
		},
		{trust: Trust{Identity: "me@example.com"}},
		{},
	} {
		got, err := tt.trust.flags()
		if !slices.Equal(got, tt.want) || (err == nil) != (tt.want != nil) {
			t.Errorf("%+v: %v, %v", tt.trust, got, err)
		}
	}
}
