package conformance

import (
	"os/exec"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/test/images"
	"github.com/chandlery/chandlery/test/oracle"
	"github.com/chandlery/chandlery/test/realcatalogs"
)

// pushed pushes a catalog image, on a base that runs a program, and returns the file system of the image.
func pushed(t *testing.T, catalog, program string) string {
	t.Helper()
	host := imageHost(t)
	base, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		OS: "linux", Architecture: "amd64", Config: v1.Config{Entrypoint: []string{program}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := images.Push(t.Context(), host+"/base:v1", base); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), catalogProgram(), "push", catalog, host+"/catalog:v1", "--base", host+"/base:v1", "--use-http").CombinedOutput()
	if err != nil {
		t.Fatalf("pushing: %v\n%s", err, out)
	}
	client, err := image.New(image.Options{PlainHTTP: true})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := client.Extract(t.Context(), host+"/catalog:v1", image.Tree{Default: "/"}, dir, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// servePushed serves the file systems of two images: the one on a base of opm with opm, whose cache
// must belong to the catalog, and the one on a base of the registry with the registry.
func servePushed(t *testing.T, catalog string) (ours, theirs peer) {
	t.Helper()
	onOpm, onRegistry := pushed(t, catalog, "/bin/opm"), pushed(t, catalog, "/registry")
	work, ourPort, theirPort := t.TempDir(), freePort(t), freePort(t)
	opm, err := oracle.ServeCached(t.Context(), buildOPM(t), onOpm, theirPort, work)
	if err != nil {
		t.Fatal(err)
	}
	served := startOurs(t, filepath.Join(onRegistry, "configs"), ourPort, work, "--cache-dir", filepath.Join(onRegistry, "tmp", "cache"))
	stopBoth(t, served, opm)
	return connect(t, served, ourPort), connect(t, opm, theirPort)
}

func TestPushedOddCatalog(t *testing.T) {
	ours, theirs := servePushed(t, writeFiles(t, oddCatalog))
	compareReplies(t, ours, theirs, extent{packages: 3, entries: 7, apis: 1000, shared: 1000})
}

// TestPushedRealCatalog has the heads of all channels of a real catalog, because opm needs a minute
// for the cache of all of it.
func TestPushedRealCatalog(t *testing.T) {
	dir, packages := realcatalogs.Sample(t, realcatalogs.Metadata)
	heads := filepath.Join(t.TempDir(), "heads")
	out, err := exec.CommandContext(t.Context(), catalogProgram(), "prune", dir, "--heads", "--to", heads).CombinedOutput()
	if err != nil {
		t.Fatalf("pruning: %v\n%s", err, out)
	}
	ours, theirs := servePushed(t, heads)
	compareReplies(t, ours, theirs, extent{packages: packages, entries: packages, apis: 1, shared: 1})
}
