package source

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"go.uber.org/goleak"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/index"
)

// imageRegistry is a registry with a catalog image whose tag moves, and a source for it.
type imageRegistry struct {
	*Image

	t         *testing.T
	temporary string
	down      atomic.Bool
	requests  atomic.Int32
	reference string
	logs      bytes.Buffer
	time      time.Time
}

func newImageRegistry(t *testing.T) *imageRegistry {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	r := &imageRegistry{t: t, time: time.Unix(1000, 0)}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.requests.Add(1)
		if r.down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		inner.ServeHTTP(w, request)
	}))
	t.Cleanup(server.Close)
	r.reference = strings.TrimPrefix(server.URL, "http://") + "/team/catalog:latest"
	// Leftover files are in this directory.
	r.temporary = t.TempDir()
	t.Setenv("TMPDIR", r.temporary)
	r.Image = r.source()
	return r
}

// source returns a new source for the image, as another process would have.
func (r *imageRegistry) source() *Image {
	r.t.Helper()
	c, err := image.New(image.Options{PlainHTTP: true, Backoff: time.Millisecond, Attempts: 2})
	if err != nil {
		r.t.Fatal(err)
	}
	return &Image{
		Reference: r.reference, Client: c, Poll: time.Minute, resolution: resolution{now: func() time.Time { return r.time }},
		Logger: slog.New(slog.NewTextHandler(&r.logs, nil)),
	}
}

// tag moves the tag to an image with a catalog.
func (r *imageRegistry) tag(text string) {
	r.t.Helper()
	var layer bytes.Buffer
	zipped := gzip.NewWriter(&layer)
	w := tar.NewWriter(zipped)
	if err := w.WriteHeader(&tar.Header{Name: "configs/c.json", Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
		r.t.Fatal(err)
	}
	for _, step := range []func() error{
		func() error { _, err := w.Write([]byte(text)); return err }, w.Close, zipped.Close,
	} {
		if err := step(); err != nil {
			r.t.Fatal(err)
		}
	}
	img, err := mutate.AppendLayers(empty.Image, static.NewLayer(layer.Bytes(), types.OCILayer))
	if err != nil {
		r.t.Fatal(err)
	}
	ref, err := name.ParseReference(r.reference, name.Insecure)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := remote.Write(ref, img); err != nil {
		r.t.Fatal(err)
	}
	r.requests.Store(0)
}

// versionOf returns the version of the catalog's only bundle.
func versionOf(t *testing.T, x *index.Index) string {
	t.Helper()
	for summary := range x.Summaries() {
		return summary.Version
	}
	return ""
}

func (r *imageRegistry) load(from *Image) string {
	r.t.Helper()
	x, err := from.Load(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return versionOf(r.t, x)
}

func (r *imageRegistry) fingerprint(from *Image) string {
	r.t.Helper()
	text, err := from.Fingerprint()
	if err != nil {
		r.t.Fatal(err)
	}
	return text
}

// left returns the names of the files in a directory.
func left(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func catalogOf(version string) string { return strings.ReplaceAll(catalog, "1.0.0", version) }

// TestImageFollowsTag checks that a source follows a tag and does not resolve it too often.
func TestImageFollowsTag(t *testing.T) {
	r := newImageRegistry(t)
	r.tag(catalogOf("1.0.0"))
	first := r.fingerprint(r.Image)
	if got := r.load(r.Image); got != "1.0.0" || r.fingerprint(r.Image) != first {
		t.Errorf("loaded %s", got)
	}
	r.tag(catalogOf("2.0.0"))
	if r.fingerprint(r.Image) != first || r.requests.Load() != 0 {
		t.Errorf("%d requests before the interval is over", r.requests.Load())
	}
	r.time = r.time.Add(time.Minute)
	second := r.fingerprint(r.Image)
	if second == first {
		t.Error("the tag has moved, the fingerprint has not")
	}
	asked := r.requests.Load()
	if r.fingerprint(r.Image) != second || r.requests.Load() != asked {
		t.Error("asked again within the interval")
	}
	if got := r.load(r.Image); got != "2.0.0" {
		t.Errorf("loaded %s", got)
	}
	if names := left(t, r.temporary); len(names) != 0 {
		t.Errorf("left behind: %q", names)
	}
}

// TestImageRegistryDown stops the registry.
func TestImageRegistryDown(t *testing.T) {
	r := newImageRegistry(t)
	r.tag(catalogOf("1.0.0"))
	first := r.fingerprint(r.Image)
	r.down.Store(true)
	for range 3 {
		r.time = r.time.Add(time.Minute)
		if got := r.fingerprint(r.Image); got != first {
			t.Errorf("a registry that is away looks like other content: %s", got)
		}
	}
	if count := strings.Count(r.logs.String(), "Cannot look at the image"); count != 1 {
		t.Errorf("the trouble was logged %d times", count)
	}
	r.down.Store(false)
	r.time = r.time.Add(time.Minute)
	if got := r.fingerprint(r.Image); got != first || !strings.Contains(r.logs.String(), "answers again") {
		t.Errorf("after it is back: %s, %s", got, r.logs.String())
	}

	r.down.Store(true)
	other := r.source()
	r.logs.Reset()
	if _, err := other.Fingerprint(); err == nil {
		t.Error("what has never been seen has a fingerprint")
	}
	if logs := r.logs.String(); !strings.Contains(logs, "Cannot look at the image for the first time") || strings.Contains(logs, "keeping") {
		t.Errorf("there is no content to keep, but the log is: %s", logs)
	}
	_, err := other.Load(t.Context())
	problems := bundles.AsProblems(err)
	if len(problems) != 1 || !problems[0].Unreadable || problems[0].File != r.reference || !strings.Contains(problems[0].Remedy, "the network") {
		t.Errorf("got %+v", problems)
	}
	if names := left(t, r.temporary); len(names) != 0 {
		t.Errorf("left behind: %q", names)
	}
}

// TestImageCache checks that a cache serves the next start, also while the registry is unreachable.
func TestImageCache(t *testing.T) {
	r := newImageRegistry(t)
	cache := filepath.Join(t.TempDir(), "cache")
	with := func() *Image {
		from := r.source()
		from.CacheDir = cache
		return from
	}
	r.tag(catalogOf("1.0.0"))
	running := with()
	if got := r.load(running); got != "1.0.0" {
		t.Errorf("loaded %s", got)
	}
	r.requests.Store(0)
	restarted := with()
	if got := r.load(restarted); got != "1.0.0" || r.requests.Load() > 3 {
		t.Errorf("loaded %s with %d requests, want the digest to be asked for only", got, r.requests.Load())
	}
	r.down.Store(true)
	alone := with()
	if got := r.load(alone); got != "1.0.0" || !strings.Contains(r.logs.String(), "taking the image of the last time") {
		t.Errorf("without the registry: loaded %s", got)
	}
	if _, err := alone.Fingerprint(); err != nil {
		t.Errorf("without the registry: %v", err)
	}
	r.down.Store(false)
	r.tag(catalogOf("2.0.0"))
	r.time = r.time.Add(time.Minute)
	r.fingerprint(running)
	if got := r.load(running); got != "2.0.0" {
		t.Errorf("loaded %s", got)
	}
	// The files are one image and the digest of the tag.
	if names := left(t, cache); len(names) != 2 {
		t.Errorf("the cache holds %q", names)
	}
	if names := left(t, r.temporary); len(names) != 0 {
		t.Errorf("left behind: %q", names)
	}
}

// TestImageDamagedCache starts with a cached index that is damaged.
func TestImageDamagedCache(t *testing.T) {
	r := newImageRegistry(t)
	r.tag(cached)
	r.CacheDir = filepath.Join(t.TempDir(), "cache")
	if _, err := r.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(r.CacheDir, "*", "index", IndexFile))
	if err != nil || len(files) != 1 {
		t.Fatalf("the cache holds the indexes %q, %v", files, err)
	}
	damage(t, files[0], "example.org/p:one")

	restarted := r.source()
	restarted.CacheDir = r.CacheDir
	x, err := restarted.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if same, err := restarted.Verify(t.Context(), x); same || err != nil {
		t.Errorf("the damage is not noticed: %v", err)
	}
	fresh, err := restarted.LoadFresh(t.Context())
	if err != nil || imageOf(t, fresh) != "one" {
		t.Fatalf("the index is not rebuilt: %v", err)
	}
	if same, err := restarted.Verify(t.Context(), fresh); !same || err != nil {
		t.Errorf("the new index is not that of the image: %v", err)
	}
	again, err := r.Load(t.Context())
	if err != nil || imageOf(t, again) != "one" {
		t.Errorf("the cache holds the damage still: %v", err)
	}
}

// damage changes the first byte of a text in a file, in place.
func damage(t *testing.T, file, text string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(content, []byte(text))
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil || at < 0 {
		t.Fatalf("%q at %d: %v", text, at, err)
	}
	if _, err := f.WriteAt([]byte{^text[0]}, int64(at)); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// TestImageVerifyElsewhere checks that Verify does not pull an image that is not cached.
func TestImageVerifyElsewhere(t *testing.T) {
	r := newImageRegistry(t)
	r.tag(cached)
	x, err := r.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.requests.Store(0)
	if same, err := r.Verify(t.Context(), x); !same || err != nil || r.requests.Load() != 0 {
		t.Errorf("got %v, %v after %d requests", same, err, r.requests.Load())
	}
}

// TestImageReadOnlyCache has a cache directory that is not writable.
func TestImageReadOnlyCache(t *testing.T) {
	r := newImageRegistry(t)
	r.tag(catalogOf("1.0.0"))
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	r.CacheDir = filepath.Join(file, "cache")
	if got := r.load(r.Image); got != "1.0.0" || !strings.Contains(r.logs.String(), "Cannot write to the cache directory") {
		t.Errorf("loaded %s, logs %s", got, r.logs.String())
	}
	if names := left(t, r.temporary); len(names) != 0 {
		t.Errorf("left behind: %q", names)
	}
}

// TestImageRemedies checks the remedies for images for which the reason is too general.
func TestImageRemedies(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte("<html>sign in</html>"))
	}))
	t.Cleanup(page.Close)
	host := strings.TrimPrefix(page.URL, "http://")
	skipped := []image.Skipped{{Place: "mirror.test", Why: "the mirror is for digests only"}}
	for name, tc := range map[string]struct {
		reference string
		options   image.Options
		want      string
	}{
		"a page":  {host + "/catalog:v1", image.Options{PlainHTTP: true, Attempts: 1}, "check that " + host + " is the address of a registry"},
		"skipped": {"source.test/catalog:v1", image.Options{Sources: image.Sources{Router: router{Skipped: skipped}}}, "name the image by digest, or allow tags at "},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := image.New(tc.options)
			if err != nil {
				t.Fatal(err)
			}
			_, err = (&Image{Reference: tc.reference, Client: client}).Load(t.Context())
			if problems := bundles.AsProblems(err); len(problems) != 1 || !strings.HasPrefix(problems[0].Remedy, tc.want) {
				t.Errorf("got %+v, want the remedy %q", problems, tc.want)
			}
		})
	}
}

// router has the same route for all images.
type router image.Route

// Route returns the route.
func (r router) Route(name.Reference) (image.Route, error) { return image.Route(r), nil }

// TestImageProblems checks that problems name the image and a remedy.
func TestImageProblems(t *testing.T) {
	r := newImageRegistry(t)
	load := func(from *Image) string {
		_, err := from.Load(t.Context())
		var lines []string
		for _, p := range bundles.AsProblems(err) {
			lines = append(lines, strings.ReplaceAll(p.String(), r.reference, "IMAGE"))
		}
		return strings.Join(lines, "\n")
	}
	if got := load(r.source()); !strings.HasPrefix(got, "IMAGE: ") || !strings.HasSuffix(got, "; check registry, repository and tag") {
		t.Errorf("not found: %s", got)
	}
	r.tag(catalog + catalog)
	if got := load(r.source()); !strings.HasPrefix(got, "c.json:4: ") {
		t.Errorf("a broken catalog: %s", got)
	}
	r.tag("")
	if got := load(r.source()); !strings.HasPrefix(got, "IMAGE/configs: the catalog directory holds no package") {
		t.Errorf("an empty catalog: %s", got)
	}
	lenient := r.source()
	lenient.AllowEmpty = true
	if got := load(lenient); got != "" {
		t.Errorf("an empty catalog that is allowed: %s", got)
	}
	for _, reason := range []image.Reason{
		image.ReasonReference, image.ReasonUnauthorized, image.ReasonNotFound, image.ReasonPlatform, image.ReasonNoTree,
		image.ReasonTooLarge, image.ReasonInvalid, image.ReasonUntrusted, image.ReasonPlainHTTP, image.ReasonCredentials, image.ReasonBlocked, image.ReasonConfiguration,
		image.ReasonUnreachable, image.ReasonLocal,
	} {
		if ImageRemedy(&image.Error{Reason: reason}) == "" {
			t.Errorf("there is no remedy for %s", reason)
		}
	}
	if names := left(t, r.temporary); len(names) != 0 {
		t.Errorf("left behind: %q", names)
	}
}

// TestImageDigest checks that a digest reference is never resolved.
func TestImageDigest(t *testing.T) {
	r := newImageRegistry(t)
	r.tag(catalogOf("1.0.0"))
	digest := r.fingerprint(r.Image)
	pinned := r.source()
	pinned.Reference = r.reference + "@" + digest
	r.requests.Store(0)
	r.time = r.time.Add(time.Hour)
	first := r.fingerprint(pinned)
	if r.fingerprint(pinned) != first || r.requests.Load() != 0 {
		t.Errorf("asked %d times", r.requests.Load())
	}
	if got := r.load(pinned); got != "1.0.0" {
		t.Errorf("loaded %s", got)
	}
}

// TestImageCreate writes an index file, the same each time.
func TestImageCreate(t *testing.T) {
	r := newImageRegistry(t)
	r.tag(catalogOf("1.0.0"))
	dir := t.TempDir()
	var texts []string
	for _, base := range []string{"a", "b"} {
		file := filepath.Join(dir, base)
		info, err := r.source().Create(t.Context(), file)
		if err != nil || info.Packages != 1 {
			t.Fatalf("got %+v, %v", info, err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	if texts[0] != texts[1] {
		t.Error("the same image makes different files")
	}
	x, err := File{Path: filepath.Join(dir, "a")}.Load(t.Context())
	if err != nil || versionOf(t, x) != "1.0.0" {
		t.Errorf("got %v", err)
	}
	runtime.KeepAlive(x)
}
