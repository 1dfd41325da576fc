package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
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

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

const configs = "operators.operatorframework.io.index.configs.v1"

func TestExtract(t *testing.T) {
	zstdOf := func(data []byte) []byte {
		w, err := zstd.NewWriter(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		return w.EncodeAll(data, nil)
	}
	dir := func(name string) entry { return entry{name: name, kind: tar.TypeDir} }
	cases := map[string]struct {
		reason string
		labels map[string]string
		layers [][]byte
		want   map[string]string
	}{
		"Default": {
			reason: "without a label it is /configs, and nothing else is kept",
			layers: [][]byte{layer(t, entry{name: "etc/passwd", text: "x"}, dir("configs/"), entry{name: "configs/p/c.json", text: "1"})},
			want:   map[string]string{"p/c.json": "1"},
		},
		"Label": {
			reason: "the label names the directory", labels: map[string]string{configs: "/some/where/"},
			layers: [][]byte{layer(t, entry{name: "./some/where/c", text: "1"}, entry{name: "configs/c", text: "2"})},
			want:   map[string]string{"c": "1"},
		},
		"WholeImage": {
			reason: "the directory may be the root", labels: map[string]string{configs: "/"},
			layers: [][]byte{layer(t, dir("./"), entry{name: "a/c", text: "1"}, entry{name: "c", text: "2"})},
			want:   map[string]string{"a/c": "1", "c": "2"},
		},
		"EmptyDirectory": {
			reason: "that it holds nothing is for others to judge", layers: [][]byte{layer(t, dir("configs"))}, want: map[string]string{},
		},
		"Plain": {
			reason: "layers need not be compressed", layers: [][]byte{archive(t, entry{name: "configs/c", text: "1"})},
			want: map[string]string{"c": "1"},
		},
		"Zstandard": {
			reason: "nor with gzip", layers: [][]byte{zstdOf(archive(t, entry{name: "configs/c", text: "1"}))},
			want: map[string]string{"c": "1"},
		},
		"Overwrite": {
			reason: "higher layers win",
			layers: [][]byte{
				layer(t, entry{name: "configs/a", text: "1"}, entry{name: "configs/b", text: "1"}, entry{name: "configs/d/c", text: "1"}),
				layer(t, entry{name: "configs/a", text: "2"}, dir("configs/b"), entry{name: "configs/d", text: "2"}),
				layer(t, entry{name: "configs/b/c", text: "3"}),
			},
			want: map[string]string{"a": "2", "b/c": "3", "d": "2"},
		},
		"Whiteout": {
			reason: "higher layers remove files and directories, but not their own",
			layers: [][]byte{
				layer(t, entry{name: "configs/a", text: "1"}, entry{name: "configs/b/c", text: "1"}, entry{name: "configs/d", text: "1"}),
				layer(t, entry{name: "configs/.wh.a"}, entry{name: "configs/.wh.b"}, entry{name: "configs/d", text: "2"},
					entry{name: "configs/.wh.d"}, entry{name: "configs/.wh.none"}, entry{name: "other/.wh.x"}),
			},
			want: map[string]string{"d": "2"},
		},
		"Opaque": {
			reason: "a directory hides what lower layers have in it, whatever the order",
			layers: [][]byte{
				layer(t, entry{name: "configs/a/1", text: "1"}, entry{name: "configs/a/2", text: "1"}, entry{name: "configs/b", text: "1"}),
				layer(t, entry{name: "configs/a/2", text: "2"}, entry{name: "configs/a/.wh..wh..opq"}, entry{name: "configs/a/3", text: "2"}),
			},
			want: map[string]string{"a/2": "2", "a/3": "2", "b": "1"},
		},
		"OpaqueRoot": {
			reason: "the directory itself too",
			layers: [][]byte{
				layer(t, entry{name: "configs/a/1", text: "1"}),
				layer(t, entry{name: "configs/.wh..wh..opq"}, entry{name: "configs/b", text: "2"}),
			},
			want: map[string]string{"b": "2"},
		},
		"Replaced": {
			reason: "the directory comes back after it was removed",
			layers: [][]byte{
				layer(t, entry{name: "opt/configs/a", text: "1"}),
				layer(t, entry{name: ".wh.opt"}),
				layer(t, entry{name: "opt/configs/b", text: "3"}),
			},
			labels: map[string]string{configs: "opt/configs"},
			want:   map[string]string{"b": "3"},
		},
		"Links": {
			reason: "links within the directory are kept, as relative ones",
			layers: [][]byte{layer(t,
				entry{name: "configs/a/c", text: "1"},
				entry{name: "configs/b/hard", link: "configs/a/c", kind: tar.TypeLink},
				entry{name: "configs/b/relative", link: "../a/c", kind: tar.TypeSymlink},
				entry{name: "configs/b/absolute", link: "/configs/a/c", kind: tar.TypeSymlink},
				entry{name: "configs/b/around", link: "../../configs/a/c", kind: tar.TypeSymlink},
			)},
			want: map[string]string{"a/c": "1", "b/hard": "1", "b/relative": "-> ../a/c", "b/absolute": "-> ../a/c", "b/around": "-> ../a/c"},
		},
		"ElsewhereIsNothing": {
			reason: "devices and links outside of the directory do not matter",
			layers: [][]byte{layer(t,
				entry{name: "dev/null", kind: tar.TypeChar}, entry{name: "bin", link: "/usr/bin", kind: tar.TypeSymlink},
				entry{name: strings.Repeat("n", 300), text: "1"}, entry{name: "configs/c", text: "1"},
			)},
			want: map[string]string{"c": "1"},
		},
	}
	r := serve(t, (*httptest.Server).Start)
	for what, tc := range cases {
		t.Run(what, func(t *testing.T) {
			reference := r.push(t, strings.ToLower(what)+":v1", build(t, tc.labels, tc.layers...))
			to := newPulled(t)
			got, err := client(t, nil).Extract(t.Context(), reference, Catalog(), to.dir, to.scratch)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, to.files(t)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			links := 0
			for _, text := range tc.want {
				if strings.HasPrefix(text, "-> ") {
					links++
				}
			}
			if got.Files != len(tc.want)-links {
				t.Errorf("%s: counted %d files, want %d", tc.reason, got.Files, len(tc.want)-links)
			}
			to.clean(t)
		})
	}
}

// TestExtractRefuses pulls broken and malicious images.
func TestExtractRefuses(t *testing.T) {
	file := entry{name: "configs/c", text: "12345678"}
	link := func(name, target string) []byte {
		return layer(t, file, entry{name: name, link: target, kind: tar.TypeSymlink})
	}
	small := func(change func(*Limits)) func(*Options) {
		return func(o *Options) { change(&o.Limits) }
	}
	cases := map[string]struct {
		reason  string
		labels  map[string]string
		layers  [][]byte
		options func(*Options)
		want    Reason
		text    string
	}{
		"Upwards": {
			reason: "paths must not lead out", layers: [][]byte{layer(t, entry{name: "configs/../../x", text: "1"})},
			want: ReasonInvalid, text: "leads upwards",
		},
		"UpwardsElsewhere": {
			reason: "wherever they are", layers: [][]byte{layer(t, file, entry{name: "../x", text: "1"})},
			want: ReasonInvalid, text: "leads upwards",
		},
		"Absolute": {
			reason: "paths are relative", layers: [][]byte{layer(t, entry{name: "/configs/c", text: "1"})},
			want: ReasonInvalid, text: `absolute path "/configs/c"`,
		},
		"LinkOut":         {reason: "links stay inside", layers: [][]byte{link("configs/l", "../etc/passwd")}, want: ReasonInvalid, text: "leads out of /configs"},
		"AbsoluteLinkOut": {reason: "links stay inside", layers: [][]byte{link("configs/l", "/etc/passwd")}, want: ReasonInvalid, text: "leads out of /configs"},
		"LinkToRoot":      {reason: "links stay inside", layers: [][]byte{link("configs/l", "/")}, want: ReasonInvalid, text: "leads out of /configs"},
		"ThroughLink": {
			reason: "nothing is written through links",
			layers: [][]byte{link("configs/l", "."), layer(t, entry{name: "configs/l/x", text: "1"})},
			want:   ReasonInvalid, text: "lies below what is no directory",
		},
		"HardLinkOut": {
			reason: "hard links too", layers: [][]byte{layer(t, entry{name: "etc/x", text: "1"}, entry{name: "configs/l", link: "etc/x", kind: tar.TypeLink})},
			want: ReasonInvalid, text: "is a hard link to",
		},
		"Device": {
			reason: "only files", layers: [][]byte{layer(t, entry{name: "configs/d", kind: tar.TypeBlock})},
			want: ReasonInvalid, text: "neither a file nor a directory nor a link",
		},
		"Pipe": {
			reason: "only files", layers: [][]byte{layer(t, entry{name: "configs/d", kind: tar.TypeFifo})},
			want: ReasonInvalid, text: "neither a file nor a directory nor a link",
		},
		"LongName": {
			reason: "names are bounded", layers: [][]byte{layer(t, entry{name: "configs/" + strings.Repeat("n", 300), text: "1"})},
			want: ReasonInvalid, text: "a name of 300 bytes",
		},
		"LongPath": {
			reason: "paths are bounded", layers: [][]byte{layer(t, entry{name: "configs/" + strings.Repeat("n/", 2000) + "c", text: "1"})},
			want: ReasonInvalid, text: "a path of 4001 bytes",
		},
		"NotText": {
			reason: "names are text", layers: [][]byte{layer(t, entry{name: "configs/\xff", text: "1"})},
			want: ReasonInvalid, text: "not UTF-8",
		},
		"NotTar": {
			reason: "layers are archives", layers: [][]byte{zipped(t, bytes.Repeat([]byte("x"), 2000))},
			want: ReasonInvalid, text: "unpacking layer 1: a layer cannot be unpacked",
		},
		"TruncatedTar": {
			reason: "complete ones", layers: [][]byte{zipped(t, archive(t, entry{name: "configs/c", text: "1", size: 100}))},
			want: ReasonInvalid, text: "unexpected EOF",
		},
		"TruncatedGzip": {
			reason: "complete ones", layers: [][]byte{layer(t, file)[:20]},
			want: ReasonInvalid, text: "unexpected EOF",
		},
		"GiganticClaim": {
			reason: "what is announced counts", layers: [][]byte{zipped(t, archive(t, entry{name: "configs/c", text: "1", size: 1 << 42}))},
			want: ReasonTooLarge, text: `file "/configs/c" has 4398046511104 bytes`,
		},
		"Bomb": {
			reason: "what is skipped is bounded too", layers: [][]byte{layer(t, entry{name: "x", text: strings.Repeat("\x00", 8<<20)})},
			options: small(func(l *Limits) { l.MaxUnpackedBytes = 1 << 20 }), want: ReasonTooLarge, text: "unpack to more than 1048576 bytes",
		},
		"BombInside": {
			reason: "what is kept is bounded", layers: [][]byte{layer(t, file, entry{name: "configs/d", text: "123456789"})},
			options: small(func(l *Limits) { l.MaxBytes = 16 }), want: ReasonTooLarge, text: "holds more than 16 bytes",
		},
		"HardLinkBomb": {
			reason: "links to files count as files", layers: [][]byte{layer(t, file, entry{name: "configs/l", link: "configs/c", kind: tar.TypeLink})},
			options: small(func(l *Limits) { l.MaxBytes = 15 }), want: ReasonTooLarge, text: "holds more than 15 bytes",
		},
		"ManyFiles": {
			reason: "the number is bounded", layers: [][]byte{layer(t, file, entry{name: "configs/d"})},
			options: small(func(l *Limits) { l.MaxFiles = 1 }), want: ReasonTooLarge, text: "holds more than 1 files",
		},
		"ManyEntries": {
			reason: "the number is bounded", layers: [][]byte{layer(t, file, entry{name: "x"})},
			options: small(func(l *Limits) { l.MaxEntries = 1 }), want: ReasonTooLarge, text: "more than 1 entries",
		},
		"ManyLayers": {
			reason: "the number is bounded", layers: [][]byte{layer(t, file), layer(t)},
			options: small(func(l *Limits) { l.MaxLayers = 1 }), want: ReasonTooLarge, text: "2 layers, at most 1",
		},
		"LargeLayers": {
			reason: "the transfer is bounded", layers: [][]byte{layer(t, file)},
			options: small(func(l *Limits) { l.MaxLayerBytes = 10 }), want: ReasonTooLarge, text: "layers have more than 10 bytes",
		},
		"LargeManifest": {
			reason: "manifests are bounded", layers: [][]byte{layer(t, file)},
			options: small(func(l *Limits) { l.MaxManifestBytes = 100 }), want: ReasonTooLarge, text: "more than 100 bytes where a manifest is expected",
		},
		"NoDirectory": {
			reason: "there must be a catalog", layers: [][]byte{layer(t, entry{name: "x"})},
			want: ReasonNoTree, text: "directory /configs is not in the image, and it has no label " + configs,
		},
		"WrongLabel": {
			reason: "where the label says", labels: map[string]string{configs: "/c"}, layers: [][]byte{layer(t, file)},
			want: ReasonNoTree, text: "directory /c is not in the image",
		},
		"Removed": {
			reason: "not where it was", layers: [][]byte{layer(t, file), layer(t, entry{name: ".wh.configs"})},
			want: ReasonNoTree, text: "directory /configs is not in the image",
		},
		"ReplacedByLink": {
			reason: "nor behind a link",
			layers: [][]byte{layer(t, file), layer(t, entry{name: "configs", link: "etc", kind: tar.TypeSymlink})},
			want:   ReasonNoTree, text: "directory /configs is not in the image",
		},
		"Database": {
			reason: "old catalogs are told", labels: map[string]string{"operators.operatorframework.io.index.database.v1": "/db"},
			layers: [][]byte{layer(t, entry{name: "db"})}, want: ReasonNoTree, text: "SQLite database",
		},
		"Bundle": {
			reason: "bundles are told", labels: map[string]string{"operators.operatorframework.io.bundle.manifests.v1": "manifests/"},
			layers: [][]byte{layer(t, entry{name: "db"})}, want: ReasonNoTree, text: "a single bundle",
		},
	}
	r := serve(t, (*httptest.Server).Start)
	for what, tc := range cases {
		t.Run(what, func(t *testing.T) {
			reference := r.push(t, strings.ToLower(what)+":v1", build(t, tc.labels, tc.layers...))
			to := newPulled(t)
			_, err := client(t, tc.options).Extract(t.Context(), reference, Catalog(), to.dir, to.scratch)
			expect(t, tc.reason, err, reference, tc.want, tc.text)
			to.clean(t)
		})
	}
}

// expect checks that an error has a reason and a text with the reference.
func expect(t *testing.T, why string, err error, reference string, want Reason, text string) {
	t.Helper()
	if ReasonOf(err) != want {
		t.Errorf("%s: got %v (%s), want %s", why, err, ReasonOf(err), want)
		return
	}
	if typed, ok := errors.AsType[*Error](err); !ok || typed.Reference != reference || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: got %v, want %q for %s", why, err, text, reference)
	}
}

// TestSymbolicLinkChain creates links that lead out of the root only in combination.
func TestSymbolicLinkChain(t *testing.T) {
	r := serve(t, (*httptest.Server).Start)
	reference := r.push(t, "chain:v1", build(t, nil, layer(t,
		entry{name: "configs/d/e/c", text: "1"},
		entry{name: "configs/s", link: "d/e", kind: tar.TypeSymlink},
		entry{name: "configs/d/e/up", link: "..", kind: tar.TypeSymlink},
		// Followed step by step, this link is the parent of the root.
		entry{name: "configs/t", link: "s/up/up/../../x", kind: tar.TypeSymlink},
	)))
	to := newPulled(t)
	_, err := client(t, nil).Extract(t.Context(), reference, Catalog(), to.dir, to.scratch)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"d/e/c": "1", "s": "-> d/e", "d/e/up": "-> ..", "t": "-> s/x"}
	if diff := cmp.Diff(want, to.files(t)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPlatforms(t *testing.T) {
	of := func(text string) v1.Image { return build(t, nil, layer(t, entry{name: "configs/c", text: text})) }
	platform := func(arch string) v1.Descriptor {
		return v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}
	}
	index := mutate.AppendManifests(empty.Index,
		mutate.IndexAddendum{Add: of("unknown"), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "unknown", Architecture: "unknown"}}},
		mutate.IndexAddendum{Add: of("s390x"), Descriptor: platform("s390x")},
		mutate.IndexAddendum{Add: of("mips"), Descriptor: platform("mips")},
	)
	r := serve(t, (*httptest.Server).Start)
	reference := r.push(t, "platforms:v1", index)
	nested := r.push(t, "nested:v1", mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: index, Descriptor: platform("mips")}))
	cases := map[string]struct {
		reason, reference, platform, content string
		want                                 Reason
		text                                 string
	}{
		"Named":   {reason: "the platform asked for", reference: reference, platform: "linux/mips", content: "mips"},
		"Default": {reason: "any will do when none is asked for and ours is not there", reference: reference, content: "s390x"},
		"Missing": {
			reason: "the platforms of the image are named", reference: reference, platform: "linux/riscv64", want: ReasonPlatform,
			text: "is not made for linux/riscv64; it is for: linux/mips, linux/s390x",
		},
		"Nested": {reason: "an index of indexes is refused", reference: nested, want: ReasonInvalid, text: "names another index"},
	}
	for what, tc := range cases {
		t.Run(what, func(t *testing.T) {
			to := newPulled(t)
			c := client(t, func(o *Options) { o.Platform = tc.platform })
			_, err := c.Extract(t.Context(), tc.reference, Catalog(), to.dir, to.scratch)
			if tc.want != "" {
				expect(t, tc.reason, err, tc.reference, tc.want, tc.text)
				return
			}
			if err != nil || to.files(t)["c"] != tc.content {
				t.Errorf("%s: got %v, %v", tc.reason, to.files(t), err)
			}
		})
	}
}

// TestForgedManifests serves manifests that no tool would push.
func TestForgedManifests(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	blob := func(size int64, kind string) map[string]any {
		return map[string]any{"mediaType": kind, "digest": digest, "size": size}
	}
	config := blob(2, string(types.OCIConfigJSON))
	cases := map[string]struct {
		reason   string
		manifest any
		want     Reason
		text     string
	}{
		"NotJSON": {reason: "JSON", manifest: "x", want: ReasonInvalid, text: "is not JSON of the expected form"},
		"Old":     {reason: "the current schema", manifest: map[string]any{"schemaVersion": 1}, want: ReasonInvalid, text: "schema version 1"},
		"Neither": {reason: "something in it", manifest: map[string]any{"schemaVersion": 2}, want: ReasonInvalid, text: "neither layers nor manifests"},
		"Gigantic": {
			reason:   "nothing is transferred when the claim is too large already",
			manifest: map[string]any{"schemaVersion": 2, "config": config, "layers": []any{blob(1<<50, string(types.OCILayer))}},
			want:     ReasonTooLarge, text: "its layers have more than",
		},
		"Sum": {
			reason: "what counts is the sum",
			manifest: map[string]any{"schemaVersion": 2, "config": config, "layers": []any{
				blob(3<<30, string(types.OCILayer)), blob(3<<30, string(types.OCILayer)),
			}},
			want: ReasonTooLarge, text: "its layers have more than",
		},
		"Overflow": {
			reason: "sums do not wrap around",
			manifest: map[string]any{"schemaVersion": 2, "config": config, "layers": []any{
				blob(1<<31, string(types.OCILayer)), blob(1<<63-1, string(types.OCILayer)), blob(1<<63-1, string(types.OCILayer)),
			}},
			want: ReasonTooLarge, text: "its layers have more than",
		},
		"Negative": {
			reason:   "sizes are not negative",
			manifest: map[string]any{"schemaVersion": 2, "config": config, "layers": []any{blob(-1, string(types.OCILayer))}},
			want:     ReasonInvalid, text: "size of -1 bytes",
		},
		"LargeConfig": {
			reason:   "the configuration is bounded",
			manifest: map[string]any{"schemaVersion": 2, "config": blob(1<<40, string(types.OCIConfigJSON)), "layers": []any{blob(1, string(types.OCILayer))}},
			want:     ReasonTooLarge, text: "a configuration of 1099511627776 bytes",
		},
		"Foreign": {
			reason:   "layers come from the registry and nowhere else",
			manifest: map[string]any{"schemaVersion": 2, "config": config, "layers": []any{blob(1, string(types.DockerForeignLayer))}},
			want:     ReasonInvalid, text: "not to be had from the registry",
		},
		"BadDigest": {
			reason:   "digests are digests",
			manifest: map[string]any{"schemaVersion": 2, "config": map[string]any{"digest": "../../x", "size": 1}, "layers": []any{blob(1, string(types.OCILayer))}},
			want:     ReasonInvalid, text: "cannot be decoded",
		},
	}
	r := serve(t, (*httptest.Server).Start)
	for what, tc := range cases {
		t.Run(what, func(t *testing.T) {
			text, err := json.Marshal(tc.manifest)
			if err != nil {
				t.Fatal(err)
			}
			r.answer(func(w http.ResponseWriter, request *http.Request) bool {
				if !strings.Contains(request.URL.Path, "/manifests/") {
					return false
				}
				w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
				_, _ = w.Write(text)
				return true
			})
			to := newPulled(t)
			reference := r.host() + "/forged:v1"
			_, err = client(t, nil).Extract(t.Context(), reference, Catalog(), to.dir, to.scratch)
			expect(t, tc.reason, err, reference, tc.want, tc.text)
			to.clean(t)
		})
	}
}

// TestCancelled cancels a pull from a slow registry.
func TestCancelled(t *testing.T) {
	r := serve(t, (*httptest.Server).Start)
	reference := r.push(t, "slow:v1", build(t, nil, layer(t, entry{name: "configs/c"})))
	ctx, cancel := context.WithCancelCause(t.Context())
	errStop := errors.New("stopped")
	r.answer(func(_ http.ResponseWriter, request *http.Request) bool {
		if !strings.Contains(request.URL.Path, "/blobs/") {
			return false
		}
		cancel(errStop)
		<-request.Context().Done()
		return true
	})
	to := newPulled(t)
	_, err := client(t, nil).Extract(ctx, reference, Catalog(), to.dir, to.scratch)
	if !errors.Is(err, errStop) {
		t.Errorf("got %v", err)
	}
	to.clean(t)
}
