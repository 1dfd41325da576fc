package images_test

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"

	"github.com/chandlery/chandlery/deploy/images"
)

// options build for this machine only. Images for other platforms differ only in names.
func options() images.Options {
	return images.Options{
		Version: "v1.2.3+test", Commit: "0123456789", Created: time.Unix(1_700_000_000, 0),
		Platforms: []v1.Platform{images.Local()},
	}
}

// built are all images. They are built once for all tests, because linking and compressing them takes most of the time.
// The smallest image is compressed as for a release.
var built = sync.OnceValues(func() ([]images.Image, error) {
	var all []images.Image
	for _, name := range images.Names() {
		o := options()
		o.Images, o.Fast = []string{name}, name != registryName
		made, err := images.Build(context.Background(), o)
		if err != nil {
			return nil, err
		}
		all = append(all, made...)
	}
	return all, nil
})

// shared returns all images, which tests must not change.
func shared(t *testing.T) []images.Image {
	t.Helper()
	all, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// registryImage returns the registry's image, the smallest.
func registryImage(t *testing.T) []images.Image {
	t.Helper()
	all := shared(t)
	i := slices.IndexFunc(all, func(image images.Image) bool { return image.Name == registryName })
	if i < 0 {
		t.Fatalf("there is no image %s", registryName)
	}
	return all[i : i+1]
}

const registryName = "chandlery/registry"

// TestImagesArriveWhole pushes the images and reads them back, as clusters do.
func TestImagesArriveWhole(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	all := shared(t)
	for _, image := range all {
		t.Run(image.Name, func(t *testing.T) {
			repository, err := name.NewRepository(strings.TrimPrefix(server.URL, "http://") + "/" + image.Name)
			if err != nil {
				t.Fatal(err)
			}
			if err := image.Push(t.Context(), repository, []string{"v1.2.3_test", "latest"}); err != nil {
				t.Fatal(err)
			}
			index, err := remote.Index(repository.Tag("latest"))
			if err != nil {
				t.Fatal(err)
			}
			if err := validate.Index(index); err != nil {
				t.Error(err)
			}
			expectConfig(t, image)
			expectReferrer(t, repository, image.Platforms[0])
			expectRuns(t, image)
		})
	}
}

func expectConfig(t *testing.T, image images.Image) {
	t.Helper()
	file, err := image.Platforms[0].Image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	program := strings.TrimPrefix(image.Name, images.Prefix)
	got := map[string]any{
		"entrypoint": file.Config.Entrypoint, "user": file.Config.User,
		"version": file.Config.Labels["org.opencontainers.image.version"],
		"commit":  file.Config.Labels["org.opencontainers.image.revision"],
	}
	want := map[string]any{
		"entrypoint": []string{"/" + program}, "user": "65532:65532", "version": "v1.2.3+test", "commit": "0123456789",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

// expectReferrer finds the SBOM of an image through the image.
func expectReferrer(t *testing.T, repository name.Repository, p images.PlatformImage) {
	t.Helper()
	digest, err := p.Image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	referrers, err := remote.Referrers(repository.Digest(digest.String()))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := referrers.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 {
		t.Fatalf("referrers are %+v, want one", manifest.Manifests)
	}
	artifact, err := remote.Image(repository.Digest(manifest.Manifests[0].Digest.String()))
	if err != nil {
		t.Fatal(err)
	}
	// The registry of this test lists another type than the manifest has.
	if own, err := artifact.Manifest(); err != nil || own.ArtifactType != string(images.SPDX) {
		t.Errorf("the type of the referrer is %q, %v, want %s", own.ArtifactType, err, images.SPDX)
	}
	var doc spdx.Document
	text, err := images.PlatformImage{SBOM: artifact}.SBOMText()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, pkg := range doc.Packages {
		names = append(names, pkg.PackageName)
	}
	if len(doc.Relationships) != len(doc.Packages) {
		t.Errorf("%d packages have %d relationships", len(doc.Packages), len(doc.Relationships))
	}
	for _, wanted := range []string{"stdlib", "google.golang.org/grpc", "golang.org/x/crypto/x509roots/fallback"} {
		if !strings.Contains(strings.Join(names, "\n")+"\n", wanted+"\n") {
			t.Errorf("the list lacks %s:\n%s", wanted, strings.Join(names, "\n"))
		}
	}
}

// expectRuns runs the program of an image.
func expectRuns(t *testing.T, image images.Image) {
	t.Helper()
	root := t.TempDir()
	tar := exec.Command("tar", "-x", "-C", root)
	tar.Stdin = mutate.Extract(image.Platforms[0].Image)
	if out, err := tar.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.Command(root+"/"+strings.TrimPrefix(image.Name, images.Prefix), "--version").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "v1.2.3+test") {
		t.Errorf("it answers %q, %v", out, err)
	}
}

// TestSameCommitSameDigest builds an image again and changes what must not affect the digest.
func TestSameCommitSameDigest(t *testing.T) {
	first := digests(t, registryImage(t))
	o := options()
	o.Images = []string{registryName}
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("GOFLAGS", "-ldflags=-X=main.version=other -buildvcs=true")
	t.Setenv("GOAMD64", "v3")
	t.Setenv("TZ", "Asia/Tokyo")
	second, err := images.Build(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, digests(t, second)); diff != "" {
		t.Errorf("digests differ (-first +second):\n%s", diff)
	}
}

// TestLayoutHoldsEveryTag writes a layout twice and reads it.
func TestLayoutHoldsEveryTag(t *testing.T) {
	all := registryImage(t)
	dir := t.TempDir()
	for range 2 {
		if err := images.WriteLayout(dir, all, []string{"v1", "latest"}); err != nil {
			t.Fatal(err)
		}
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var tags []string
	for _, m := range manifest.Manifests {
		tags = append(tags, m.Annotations["org.opencontainers.image.ref.name"])
	}
	if diff := cmp.Diff([]string{"chandlery/registry:v1", "chandlery/registry:latest", ""}, tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
}

func TestAFolderOfOtherFilesIsLeftAlone(t *testing.T) {
	if err := images.WriteLayout(".", nil, []string{"v1"}); err == nil || !strings.Contains(err.Error(), "no OCI layout") {
		t.Errorf("writing over other files gives %v", err)
	}
}

func TestUnknownImage(t *testing.T) {
	o := options()
	o.Images = []string{"chandlery/other"}
	if _, err := images.Build(t.Context(), o); err == nil || !strings.Contains(err.Error(), "chandlery/registry, chandlery/supervisor") {
		t.Errorf("building an unknown image gives %v", err)
	}
}

func digests(t *testing.T, all []images.Image) []string {
	t.Helper()
	var found []string
	for _, image := range all {
		index, err := image.Index.Digest()
		if err != nil {
			t.Fatal(err)
		}
		sbom, err := image.Platforms[0].SBOM.Digest()
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, index.String(), sbom.String())
	}
	return found
}
