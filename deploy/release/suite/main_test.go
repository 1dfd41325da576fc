package suite_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/chandlery/chandlery/deploy/release"
	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/testenv"
)

var (
	// folder is the folder of the releases of these tests.
	folder string
	// host is the registry in the release's manifests, with a prefix.
	host string
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "chandlery-releases-")
	if err != nil {
		panic(err)
	}
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0))))
	folder, host = dir, strings.TrimPrefix(server.URL, "http://")+"/team"
	code := testenv.Main(m, controlplane.Options{})
	server.Close()
	if err := os.RemoveAll(dir); err != nil {
		panic(err)
	}
	os.Exit(code)
}

const commit = "0123456789abcdef0123456789abcdef01234567"

// tools returns the programs that make and verify releases.
var tools = sync.OnceValues(func() (release.Tools, error) {
	root, err := buildcache.SourceDir(".")
	if err != nil {
		return release.Tools{}, err
	}
	return release.BuildTools(context.Background(), root)
})

// built is the folder of the release that most tests read. It is built once.
var built = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(folder, "first")
	return dir, build(context.Background(), dir)
})

// build builds a release for this machine alone, because other platforms differ only in names.
func build(ctx context.Context, dir string) error {
	programs, err := tools()
	if err != nil {
		return err
	}
	root, err := buildcache.SourceDir(".")
	if err != nil {
		return err
	}
	version, err := release.ParseVersion("1.2.3-test")
	if err != nil {
		return err
	}
	return release.Build(ctx, dir, release.Options{
		Source:  release.Source{Dir: root, Commit: commit, Created: time.Unix(1_700_000_000, 0), Go: runtime.Version()},
		Version: version, Images: host, Downloads: "https://example.com/v1.2.3-test", Builder: "https://example.com/test",
		Platforms:       []v1.Platform{{OS: "linux", Architecture: runtime.GOARCH}},
		PluginPlatforms: []v1.Platform{{OS: "linux", Architecture: runtime.GOARCH}},
	}, programs, os.Stderr)
}

// first returns the folder of the release.
func first(t *testing.T) string {
	t.Helper()
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// verify verifies a release with the public key of a release, and returns the report.
func verify(t *testing.T, dir, key string) (string, error) {
	t.Helper()
	programs, err := tools()
	if err != nil {
		t.Fatal(err)
	}
	var report strings.Builder
	err = release.Verify(t.Context(), dir, release.Trust{Key: filepath.Join(key, "cosign.pub")}, programs, &report)
	return report.String(), err
}

// read returns a file of a release.
func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// write writes a file of a release.
func write(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name)
	// Copies share their files with the original.
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
