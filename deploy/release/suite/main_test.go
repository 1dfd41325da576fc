package suite_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/chandlery/chandlery/deploy/release"
	"github.com/chandlery/chandlery/test/testrelease"
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
	code := m.Run()
	server.Close()
	if err := os.RemoveAll(dir); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// built is the folder of the release that most tests read. It is built once.
var built = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(folder, "first")
	return dir, testrelease.Build(context.Background(), dir, host)
})

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
	programs, err := testrelease.Tools()
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
