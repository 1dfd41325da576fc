package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
)

// refusedImage is a broken or malicious image, and the error that it causes.
type refusedImage struct {
	reason  string
	labels  map[string]string
	layers  [][]byte
	options func(*Options)
	want    Reason
	text    string
}

// smallFile returns a file of 8 bytes in the directory of a catalog.
func smallFile() entry { return entry{name: "configs/c", text: "12345678"} }

// limited returns options with changed limits.
func limited(change func(*Limits)) func(*Options) {
	return func(o *Options) { change(&o.Limits) }
}

// refusedPaths returns images with invalid names.
func refusedPaths(t *testing.T) map[string]refusedImage {
	t.Helper()
	return map[string]refusedImage{
		"Upwards": {
			reason: "paths must not lead out", layers: [][]byte{layer(t, entry{name: "configs/../../x", text: "1"})},
			want: ReasonInvalid, text: "leads upwards",
		},
		"UpwardsElsewhere": {
			reason: "wherever they are", layers: [][]byte{layer(t, smallFile(), entry{name: "../x", text: "1"})},
			want: ReasonInvalid, text: "leads upwards",
		},
		"Absolute": {
			reason: "paths are relative", layers: [][]byte{layer(t, entry{name: "/configs/c", text: "1"})},
			want: ReasonInvalid, text: `absolute path "/configs/c"`,
		},
		"LongName": {
			reason: "names are bounded", layers: [][]byte{layer(t, entry{name: "configs/" + strings.Repeat("n", 300), text: "1"})},
			want: ReasonInvalid, text: "a name of 300 bytes",
		},
		"LongPath": {
			reason: "paths are bounded", layers: [][]byte{layer(t, entry{name: "configs/" + strings.Repeat("n/", 2000) + "c", text: "1"})},
			want: ReasonInvalid, text: "a path of 4001 bytes",
		},
		"DeepPath": {
			reason: "each element costs system calls", layers: [][]byte{layer(t, entry{name: "configs/" + strings.Repeat("n/", 64) + "c", text: "1"})},
			want: ReasonInvalid, text: "a path of 65 elements",
		},
		"NotText": {
			reason: "names are text", layers: [][]byte{layer(t, entry{name: "configs/\xff", text: "1"})},
			want: ReasonInvalid, text: "not UTF-8",
		},
	}
}

// refusedEntries returns images with links that lead out, and with what is neither a file nor a directory.
func refusedEntries(t *testing.T) map[string]refusedImage {
	t.Helper()
	link := func(target string) []byte {
		return layer(t, smallFile(), entry{name: "configs/l", link: target, kind: tar.TypeSymlink})
	}
	return map[string]refusedImage{
		"LinkOut":         {reason: "links stay inside", layers: [][]byte{link("../etc/passwd")}, want: ReasonInvalid, text: "leads out of /configs"},
		"AbsoluteLinkOut": {reason: "links stay inside", layers: [][]byte{link("/etc/passwd")}, want: ReasonInvalid, text: "leads out of /configs"},
		"LinkToRoot":      {reason: "links stay inside", layers: [][]byte{link("/")}, want: ReasonInvalid, text: "leads out of /configs"},
		"ThroughLink": {
			reason: "nothing is written through links",
			layers: [][]byte{link("."), layer(t, entry{name: "configs/l/x", text: "1"})},
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
	}
}

// refusedArchives returns images whose layers are damaged.
func refusedArchives(t *testing.T) map[string]refusedImage {
	t.Helper()
	return map[string]refusedImage{
		"NotTar": {
			reason: "layers are archives", layers: [][]byte{zipped(t, bytes.Repeat([]byte("x"), 2000))},
			want: ReasonInvalid, text: "unpacking layer 1: a layer cannot be unpacked",
		},
		"TruncatedTar": {
			reason: "complete ones", layers: [][]byte{zipped(t, archive(t, entry{name: "configs/c", text: "1", size: 100}))},
			want: ReasonInvalid, text: "unexpected EOF",
		},
		"TruncatedGzip": {
			reason: "complete ones", layers: [][]byte{layer(t, smallFile())[:20]},
			want: ReasonInvalid, text: "unexpected EOF",
		},
	}
}

// refusedSizes returns images that exceed a limit.
func refusedSizes(t *testing.T) map[string]refusedImage {
	t.Helper()
	return map[string]refusedImage{
		"GiganticClaim": {
			reason: "what is announced counts", layers: [][]byte{zipped(t, archive(t, entry{name: "configs/c", text: "1", size: 1 << 42}))},
			want: ReasonTooLarge, text: `file "/configs/c" has 4398046511104 bytes`,
		},
		"Bomb": {
			reason: "what is skipped is bounded too", layers: [][]byte{layer(t, entry{name: "x", text: strings.Repeat("\x00", 8<<20)})},
			options: limited(func(l *Limits) { l.MaxUnpackedBytes = 1 << 20 }), want: ReasonTooLarge, text: "unpack to more than 1048576 bytes",
		},
		"BombInside": {
			reason: "what is kept is bounded", layers: [][]byte{layer(t, smallFile(), entry{name: "configs/d", text: "123456789"})},
			options: limited(func(l *Limits) { l.MaxBytes = 16 }), want: ReasonTooLarge, text: "holds more than 16 bytes",
		},
		"HardLinkBomb": {
			reason: "links to files count as files", layers: [][]byte{layer(t, smallFile(), entry{name: "configs/l", link: "configs/c", kind: tar.TypeLink})},
			options: limited(func(l *Limits) { l.MaxBytes = 15 }), want: ReasonTooLarge, text: "holds more than 15 bytes",
		},
		"ManyFiles": {
			reason: "the number is bounded", layers: [][]byte{layer(t, smallFile(), entry{name: "configs/d"})},
			options: limited(func(l *Limits) { l.MaxFiles = 1 }), want: ReasonTooLarge, text: "holds more than 1 files",
		},
		"ManyEntries": {
			reason: "the number is bounded", layers: [][]byte{layer(t, smallFile(), entry{name: "x"})},
			options: limited(func(l *Limits) { l.MaxEntries = 1 }), want: ReasonTooLarge, text: "more than 1 entries",
		},
		"ManyLayers": {
			reason: "the number is bounded", layers: [][]byte{layer(t, smallFile()), layer(t)},
			options: limited(func(l *Limits) { l.MaxLayers = 1 }), want: ReasonTooLarge, text: "2 layers, at most 1",
		},
		"LargeLayers": {
			reason: "the transfer is bounded", layers: [][]byte{layer(t, smallFile())},
			options: limited(func(l *Limits) { l.MaxLayerBytes = 10 }), want: ReasonTooLarge, text: "layers have more than 10 bytes",
		},
		"LargeManifest": {
			reason: "manifests are bounded", layers: [][]byte{layer(t, smallFile())},
			options: limited(func(l *Limits) { l.MaxManifestBytes = 100 }), want: ReasonTooLarge, text: "more than 100 bytes where a manifest is expected",
		},
	}
}

// refusedTrees returns images without the directory of a catalog.
func refusedTrees(t *testing.T) map[string]refusedImage {
	t.Helper()
	return map[string]refusedImage{
		"NoDirectory": {
			reason: "there must be a catalog", layers: [][]byte{layer(t, entry{name: "x"})},
			want: ReasonNoTree, text: "directory /configs is not in the image, and it has no label " + configs,
		},
		"WrongLabel": {
			reason: "where the label says", labels: map[string]string{configs: "/c"}, layers: [][]byte{layer(t, smallFile())},
			want: ReasonNoTree, text: "directory /c is not in the image",
		},
		"Removed": {
			reason: "not where it was", layers: [][]byte{layer(t, smallFile()), layer(t, entry{name: ".wh.configs"})},
			want: ReasonNoTree, text: "directory /configs is not in the image",
		},
		"ReplacedByLink": {
			reason: "nor behind a link",
			layers: [][]byte{layer(t, smallFile()), layer(t, entry{name: "configs", link: "etc", kind: tar.TypeSymlink})},
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
}

// TestExtractRefuses pulls broken and malicious images.
func TestExtractRefuses(t *testing.T) {
	r := serve(t, (*httptest.Server).Start)
	for _, cases := range []map[string]refusedImage{refusedPaths(t), refusedEntries(t), refusedArchives(t), refusedSizes(t), refusedTrees(t)} {
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
