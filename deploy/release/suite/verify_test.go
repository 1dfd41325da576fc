package suite_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/chandlery/chandlery/deploy/images"
	"github.com/chandlery/chandlery/deploy/release"
	"github.com/chandlery/chandlery/test/testrelease"
)

// TestReleaseVerifies verifies a release, and lists its files.
func TestReleaseVerifies(t *testing.T) {
	dir := first(t)
	report, err := verify(t, dir, dir)
	t.Log(report)
	if err != nil || !strings.Contains(report, testrelease.Commit) {
		t.Errorf("the release does not verify: %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, strings.ReplaceAll(entry.Name(), "_"+runtime.GOARCH, "_ARCH"))
	}
	want := []string{
		"RELEASE_NOTES.md", "SHA256SUMS", "SHA256SUMS.sigstore.json", "chandlery-1.2.3-test.tgz", "chandlery.yaml", "cosign.pub",
		"defaults.yaml", "images", "install.yaml",
		"kubectl-chandlery_1.2.3-test_linux_ARCH.spdx.json", "kubectl-chandlery_1.2.3-test_linux_ARCH.tar.gz",
		"prerequisites.yaml", "provenance.sigstore.json", "registry_1.2.3-test_linux_ARCH.spdx.json", "signatures",
		"supervisor_1.2.3-test_linux_ARCH.spdx.json",
	}
	if diff := gocmp.Diff(want, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// TestReleaseIsReproducible builds a second release, in another time zone and folder. Only signatures and provenance differ.
// With $RELEASES=1, it builds the kubectl plugin alone; deploy/images does the same with an image.
func TestReleaseIsReproducible(t *testing.T) {
	first(t)
	t.Setenv("TZ", "Asia/Tokyo")
	t.Setenv("TMPDIR", t.TempDir())
	switch releases := cmp.Or(os.Getenv("RELEASES"), "1"); releases {
	case "1":
		expectSamePlugin(t)
	case "2":
		expectSameRelease(t)
	default:
		t.Fatalf("$RELEASES is %q; it has to be 1 or 2", releases)
	}
}

// expectSamePlugin builds the plugin again. Its list of components has the checksum of the program.
func expectSamePlugin(t *testing.T) {
	t.Helper()
	platform := images.Local()
	o := images.Options{Version: testrelease.Version, Commit: testrelease.Commit, Created: testrelease.Created()}
	_, sbom, err := o.BuildPlugin(t.Context(), platform)
	if err != nil {
		t.Fatal(err)
	}
	file := fmt.Sprintf("%s_%s_%s_%s.spdx.json", images.Plugin, testrelease.Version, platform.OS, platform.Architecture)
	if diff := gocmp.Diff(read(t, first(t), file), string(sbom)); diff != "" {
		t.Errorf("components of the plugin (-first +second):\n%s", diff)
	}
}

// expectSameRelease builds a second release.
func expectSameRelease(t *testing.T) {
	t.Helper()
	second := filepath.Join(folder, "second")
	if err := testrelease.Build(t.Context(), second, host); err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(read(t, first(t), "SHA256SUMS"), read(t, second, "SHA256SUMS")); diff != "" {
		t.Errorf("checksums (-first +second):\n%s", diff)
	}
	if read(t, first(t), "cosign.pub") == read(t, second, "cosign.pub") {
		t.Error("two releases have the same temporary key")
	}
}

// TestOtherKey verifies a release with a key that did not sign it.
func TestOtherKey(t *testing.T) {
	programs, err := testrelease.Tools()
	if err != nil {
		t.Fatal(err)
	}
	key := t.TempDir()
	cmd := exec.CommandContext(t.Context(), programs.Cosign, "generate-key-pair", "--output-key-prefix", filepath.Join(key, "cosign"))
	cmd.Env = append(os.Environ(), "COSIGN_PASSWORD=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	report, err := verify(t, first(t), key)
	if _, refused := errors.AsType[*exec.ExitError](err); !refused {
		t.Errorf("cosign must refuse another key: %v", err)
	}
	if report != "" {
		t.Errorf("before cosign refuses the provenance, nothing may be believed:\n%s", report)
	}
}

// TestChangesAreFound changes parts of a release in each case, and verifies it with the key of the release. Verify makes
// every check, so one case has all changes that do not prevent further checks.
func TestChangesAreFound(t *testing.T) {
	for name, tt := range map[string]struct {
		changes []func(t *testing.T, dir string)
		want    []string
	}{
		"ManifestAddedFileAndImageSignatures": {
			changes: []func(*testing.T, string){changeManifest, addFile, removeSignatures},
			want:    []string{"install.yaml has another checksum", "more.yaml has no checksum", "cosign verify:", "cosign verify-attestation:"},
		},
		"ManifestWithChecksum": {
			changes: []func(*testing.T, string){changeManifestWithChecksum},
			want:    []string{"cosign verify-blob-attestation"},
		},
		"Blob": {changes: []func(*testing.T, string){changeBlob}, want: []string{"failed to validate image"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "release")
			if out, err := exec.CommandContext(t.Context(), "cp", "--recursive", "--link", first(t), dir).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for _, change := range tt.changes {
				change(t, dir)
			}
			_, err := verify(t, dir, first(t))
			for _, want := range tt.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("verifying gives %v, want something with %q", err, want)
				}
			}
		})
	}
}

// changeManifest changes a manifest.
func changeManifest(t *testing.T, dir string) {
	t.Helper()
	write(t, dir, "install.yaml", strings.ReplaceAll(read(t, dir, "install.yaml"), "replicas: 2", "replicas: 1"))
}

// changeManifestWithChecksum changes a manifest and its checksum.
func changeManifestWithChecksum(t *testing.T, dir string) {
	t.Helper()
	before := sum(read(t, dir, "install.yaml"))
	changeManifest(t, dir)
	write(t, dir, "SHA256SUMS", strings.ReplaceAll(read(t, dir, "SHA256SUMS"), before, sum(read(t, dir, "install.yaml"))))
}

// addFile adds a file without a checksum.
func addFile(t *testing.T, dir string) {
	t.Helper()
	write(t, dir, "more.yaml", "kind: Pod\n")
}

func sum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// changeBlob changes the largest blob of the images.
func changeBlob(t *testing.T, dir string) {
	t.Helper()
	blobs, err := fs.Glob(os.DirFS(dir), "images/blobs/sha256/*")
	if err != nil {
		t.Fatal(err)
	}
	largest := slices.MaxFunc(blobs, func(a, b string) int { return len(read(t, dir, a)) - len(read(t, dir, b)) })
	write(t, dir, largest, read(t, dir, largest)+"more")
}

// removeSignatures leaves no signature in the layout of the signatures.
func removeSignatures(t *testing.T, dir string) {
	t.Helper()
	write(t, dir, "signatures/index.json", `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`)
}

// TestPush pushes a release to a registry, where cosign finds signatures and SBOMs.
func TestPush(t *testing.T) {
	dir := first(t)
	if to, err := release.Push(t.Context(), dir); err != nil || to != host {
		t.Fatalf("pushed to %s: %v", to, err)
	}
	programs, err := testrelease.Tools()
	if err != nil {
		t.Fatal(err)
	}
	var pushed []string
	for _, image := range []string{"chandlery/supervisor", "chandlery/registry", "chandlery/charts/chandlery"} {
		tag, err := name.NewTag(fmt.Sprintf("%s/%s:1.2.3-test", host, image))
		if err != nil {
			t.Fatal(err)
		}
		described, err := remote.Head(tag)
		if err != nil {
			t.Fatal(err)
		}
		pushed = append(pushed, tag.Context().Digest(described.Digest.String()).String())
	}
	args := append([]string{"verify", "--key", filepath.Join(dir, "cosign.pub"), "--insecure-ignore-tlog"}, pushed...)
	if out, err := exec.CommandContext(t.Context(), programs.Cosign, args...).CombinedOutput(); err != nil {
		t.Errorf("cosign verify: %v\n%s", err, out)
	}
}
