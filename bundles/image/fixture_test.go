package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// fakeRegistry is a registry whose answers a test may replace.
type fakeRegistry struct {
	*httptest.Server

	// before is called first and reports whether it has answered. A request that a client has given up may still run.
	before atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
}

// answer lets a function answer requests, which reports whether it has answered.
func (r *fakeRegistry) answer(before func(http.ResponseWriter, *http.Request) bool) {
	r.before.Store(&before)
}

func serve(t *testing.T, start func(*httptest.Server)) *fakeRegistry {
	t.Helper()
	r := &fakeRegistry{}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if before := r.before.Load(); before == nil || !(*before)(w, request) {
			inner.ServeHTTP(w, request)
		}
	}))
	r.Config.ErrorLog = log.New(io.Discard, "", 0)
	start(r.Server)
	t.Cleanup(r.Close)
	return r
}

// host returns the registry's name in references.
func (r *fakeRegistry) host() string {
	_, host, _ := strings.Cut(r.URL, "://")
	return host
}

// push stores an image or an index in the registry.
func (r *fakeRegistry) push(t *testing.T, repository string, what remote.Taggable) string {
	t.Helper()
	reference := r.host() + "/" + repository
	ref, err := name.ParseReference(reference, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	transport := r.Client().Transport
	if err := remote.Push(ref, what, remote.WithTransport(transport)); err != nil {
		t.Fatal(err)
	}
	return reference
}

type entry struct {
	name, link, text string
	kind             byte
	// size overrides the size of the text.
	size int64
}

// archive returns a tar stream. An entry with a wrong size ends it.
func archive(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Linkname: e.link, Typeflag: e.kind, Size: int64(len(e.text)), Mode: 0o600}
		if header.Typeflag == 0 {
			header.Typeflag = tar.TypeReg
		}
		if e.size > 0 {
			header.Size = e.size
		}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.text); err != nil {
			t.Fatal(err)
		}
		if e.size > 0 {
			return out.Bytes()
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func layer(t *testing.T, entries ...entry) []byte {
	t.Helper()
	return zipped(t, archive(t, entries...))
}

// build returns an image with layers.
func build(t *testing.T, labels map[string]string, layers ...[]byte) v1.Image {
	t.Helper()
	img, err := mutate.Config(empty.Image, v1.Config{Labels: labels})
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range layers {
		if img, err = mutate.AppendLayers(img, static.NewLayer(data, types.OCILayer)); err != nil {
			t.Fatal(err)
		}
	}
	return img
}

func client(t *testing.T, change func(*Options)) *Client {
	t.Helper()
	options := Options{PlainHTTP: true, Backoff: time.Millisecond, PullTimeout: 20 * time.Second, ResolveTimeout: 20 * time.Second}
	if change != nil {
		change(&options)
	}
	c, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// pulled is the destination of a pull.
type pulled struct{ dir, scratch string }

func newPulled(t *testing.T) pulled {
	t.Helper()
	parent := t.TempDir()
	p := pulled{filepath.Join(parent, "content"), filepath.Join(parent, "scratch")}
	for _, dir := range []string{p.dir, p.scratch} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// clean fails the test if files remain beside the content.
func (p pulled) clean(t *testing.T) {
	t.Helper()
	if left, err := os.ReadDir(p.scratch); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if all, err := os.ReadDir(filepath.Dir(p.dir)); err != nil || len(all) != 2 {
		t.Errorf("written outside of the directory: %v, %v", all, err)
	}
}

// files returns the extracted files: the text of files, and "-> target" for links.
func (p pulled) files(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(p.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		local, _ := filepath.Rel(p.dir, path)
		if d.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(path)
			found[local] = "-> " + target
			return err
		}
		data, err := os.ReadFile(path)
		found[local] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
