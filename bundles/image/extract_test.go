package image

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const configs = "operators.operatorframework.io.index.configs.v1"

// extractedImage is an image, and the files that are extracted from it.
type extractedImage struct {
	reason string
	labels map[string]string
	layers [][]byte
	want   map[string]string
}

func directory(name string) entry { return entry{name: name, kind: tar.TypeDir} }

// extractedDirectories returns images whose catalogs are in several directories.
func extractedDirectories(t *testing.T) map[string]extractedImage {
	t.Helper()
	return map[string]extractedImage{
		"Default": {
			reason: "without a label it is /configs, and nothing else is kept",
			layers: [][]byte{layer(t, entry{name: "etc/passwd", text: "x"}, directory("configs/"), entry{name: "configs/p/c.json", text: "1"})},
			want:   map[string]string{"p/c.json": "1"},
		},
		"Label": {
			reason: "the label names the directory", labels: map[string]string{configs: "/some/where/"},
			layers: [][]byte{layer(t, entry{name: "./some/where/c", text: "1"}, entry{name: "configs/c", text: "2"})},
			want:   map[string]string{"c": "1"},
		},
		"WholeImage": {
			reason: "the directory may be the root", labels: map[string]string{configs: "/"},
			layers: [][]byte{layer(t, directory("./"), entry{name: "a/c", text: "1"}, entry{name: "c", text: "2"})},
			want:   map[string]string{"a/c": "1", "c": "2"},
		},
		"EmptyDirectory": {
			reason: "that it holds nothing is for others to judge", layers: [][]byte{layer(t, directory("configs"))}, want: map[string]string{},
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
}

// extractedCompressions returns images whose layers are not compressed with gzip.
func extractedCompressions(t *testing.T) map[string]extractedImage {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return map[string]extractedImage{
		"Plain": {
			reason: "layers need not be compressed", layers: [][]byte{archive(t, entry{name: "configs/c", text: "1"})},
			want: map[string]string{"c": "1"},
		},
		"Zstandard": {
			reason: "nor with gzip", layers: [][]byte{w.EncodeAll(archive(t, entry{name: "configs/c", text: "1"}), nil)},
			want: map[string]string{"c": "1"},
		},
	}
}

// extractedLayers returns images whose higher layers change what lower ones have.
func extractedLayers(t *testing.T) map[string]extractedImage {
	t.Helper()
	return map[string]extractedImage{
		"Overwrite": {
			reason: "higher layers win",
			layers: [][]byte{
				layer(t, entry{name: "configs/a", text: "1"}, entry{name: "configs/b", text: "1"}, entry{name: "configs/d/c", text: "1"}),
				layer(t, entry{name: "configs/a", text: "2"}, directory("configs/b"), entry{name: "configs/d", text: "2"}),
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
	}
}

// extractedLinks returns images with links.
func extractedLinks(t *testing.T) map[string]extractedImage {
	t.Helper()
	return map[string]extractedImage{
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
	}
}

func TestExtract(t *testing.T) {
	r := serve(t, (*httptest.Server).Start)
	for _, cases := range []map[string]extractedImage{extractedDirectories(t), extractedCompressions(t), extractedLayers(t), extractedLinks(t)} {
		for what, tc := range cases {
			t.Run(what, func(t *testing.T) { checkExtraction(t, r, &tc) })
		}
	}
}

// checkExtraction extracts an image from a registry and compares its files.
func checkExtraction(t *testing.T, r *fakeRegistry, tc *extractedImage) {
	t.Helper()
	reference := r.push(t, strings.ToLower(t.Name())+":v1", build(t, tc.labels, tc.layers...))
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

// TestManifestWithAnotherDigest pulls a digest from a registry that sends another manifest. For the type of old signed
// manifests, the library takes the digest from a header of the answer.
func TestManifestWithAnotherDigest(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	text := `{"schemaVersion":2,"config":{"mediaType":"` + string(types.OCIConfigJSON) + `","digest":"` + digest + `","size":2},"layers":[]}`
	r := serve(t, (*httptest.Server).Start)
	for name, tc := range map[string]struct {
		reason string
		kind   types.MediaType
		want   Reason
		text   string
	}{
		"Current": {"the library compares the digest", types.OCIManifestSchema1, ReasonUnreachable, "does not match requested digest"},
		"Old":     {"the type is refused", types.DockerManifestSchema1Signed, ReasonInvalid, "schema version 1"},
	} {
		t.Run(name, func(t *testing.T) {
			r.answer(func(w http.ResponseWriter, request *http.Request) bool {
				if !strings.Contains(request.URL.Path, "/manifests/") {
					return false
				}
				w.Header().Set("Content-Type", string(tc.kind))
				w.Header().Set("Docker-Content-Digest", digest)
				_, _ = w.Write([]byte(text))
				return true
			})
			to := newPulled(t)
			reference := r.host() + "/forged@" + digest
			_, err := client(t, nil).Extract(t.Context(), reference, Catalog(), to.dir, to.scratch)
			expect(t, tc.reason, err, reference, tc.want, tc.text)
			to.clean(t)
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
