package fbc

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/internal/values"
)

func fsOf(content map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range content {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

func TestLoad(t *testing.T) {
	root := fsOf(map[string]string{
		".indexignore": "*.md\n",
		"README.md":    "not YAML: [",
		"b/two.yaml": "schema: olm.bundle\npackage: p\nname: b2\nimage: i\nproperties:\n- type: x\n  value: {z: 1.0, a: 12345678901234567890}\n" +
			"---\nschema: olm.deprecations\npackage: p\nentries: [{reference: {schema: olm.package}, message: m}]\n",
		"a.json": `{"schema":"olm.package","name":"p","defaultChannel":"c"}` + "\n" +
			`{"schema":"olm.channel","package":"p","name":"c","entries":[{"name":"b2","skips":["x"]}]}` + "\n\n" +
			`{"Schema":"custom","extra":"<&>"}{"schema":"olm.channel","package":"q","name":"lost"}`,
	})
	got, err := Load(t.Context(), root, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := &bundles.Catalog{
		Packages: []*bundles.Package{{
			Name: "p", DefaultChannel: "c", Origin: bundles.Origin{File: "a.json", Line: 1},
			Channels: []*bundles.Channel{{
				Name: "c", Package: "p", Entries: []bundles.Entry{{Name: "b2", Skips: []string{"x"}}},
				Origin: bundles.Origin{File: "a.json", Line: 2},
			}},
			Bundles: []*bundles.Bundle{{
				Name: "b2", Package: "p", Image: "i", Origin: bundles.Origin{File: "b/two.yaml", Line: 1},
				Properties: []bundles.Property{{Type: "x", Value: []byte(`{"a":12345678901234567000,"z":1}`)}},
			}},
			Deprecations: []bundles.DeprecationList{{
				Entries: []bundles.Deprecation{{Reference: bundles.Reference{Schema: bundles.SchemaPackage}, Message: "m"}},
				Origin:  bundles.Origin{File: "b/two.yaml", Line: 9},
			}},
		}},
		Strays: []bundles.Stray{{
			Schema: bundles.SchemaChannel, Package: "q", Name: "lost", Origin: bundles.Origin{File: "a.json", Line: 4},
		}},
		Custom: []bundles.Custom{{
			Schema: "custom", Blob: []byte(`{"Schema":"custom","extra":"<&>"}`), Origin: bundles.Origin{File: "a.json", Line: 4},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// tooMany is an object with one value more than allowed, and with a line break.
func tooMany(lineBreak string) string {
	return "schema: x\nv: !!seq\n" + strings.Repeat("- 1"+lineBreak, values.Max)
}

func tooManyText(n int) string {
	return fmt.Sprintf("an object is too large: it may hold %d values, at most %d are allowed", n, values.Max)
}

func TestLoadProblems(t *testing.T) {
	deep := `{"schema":"x","v":` + strings.Repeat("[", 20) + strings.Repeat("]", 20) + "}"
	cases := map[string]struct {
		reason  string
		content map[string]string
		options Options
		want    []string
	}{
		"EachFile": {
			reason:  "every file is read to its first syntax error",
			content: map[string]string{"a": "{}\n{}\n{\"x\":,}", "b": "x: y: z"},
			want: []string{
				`a:1: an object is missing its schema field`,
				`a:2: an object is missing its schema field`,
				`a:3: decoding JSON: invalid character ',' looking for beginning of value`,
				`b:1: decoding YAML: yaml: mapping values are not allowed in this context`,
			},
		},
		"Types": {
			reason:  "a field of the wrong type names its object",
			content: map[string]string{"a": "schema: olm.bundle\nname: b\npackage: p\nimage: [1]\n"},
			want:    []string{`a:1: package "p", bundle "b": decoding bundle: wrong type: field "image" must be a string, found array`},
		},
		"Keys": {
			reason:  "keys that differ in case only are refused",
			content: map[string]string{"a": "schema: x\nName: a\nname: b\n"},
			want:    []string{`a:1: duplicate keys for key "name": [Name name]`},
		},
		"Separator": {
			reason:  "the line of a bad separator is given",
			content: map[string]string{"a": "schema: x\n--- schema: y\n"},
			want:    []string{`a:2: text after a YAML document separator: "schema: y"`},
		},
		"LeftOver": {
			reason:  "what follows the end of a document is not dropped",
			content: map[string]string{"a": "schema: x\n...\nschema: z\n", "b": "schema: x\n...\n# end\n---\nschema: z\n...\n", "c": "  schema: x\nname: y\n", "d": "# JSON\n{\"schema\":\"x\"}\n{\"schema\":\"y\"}\n"},
			want: []string{
				"a:1: text after the end of a YAML document; begin another document with a line ---",
				"c:1: text after the end of a YAML document; begin another document with a line ---",
				"d:1: text after the end of a YAML document; begin another document with a line ---",
			},
		},
		"Long": {
			reason:  "lines that are repeated are shortened",
			content: map[string]string{"a": "schema: x\n--- " + strings.Repeat("x", 1<<20) + "\n"},
			want:    []string{"a:2: text after a YAML document separator: \"" + strings.Repeat("x", 197) + "…\""},
		},
		"Binary":    {reason: "text alone", content: map[string]string{"a": "schema: x\n\x00"}, want: []string{"a: is not text: it holds a NUL byte"}},
		"Encoding":  {reason: "text alone", content: map[string]string{"a": "{\"schema\":\"\xff\"}"}, want: []string{"a: is not UTF-8 text"}},
		"FileSize":  {reason: "bound", content: map[string]string{"a": "schema: x\n"}, options: Options{MaxFileBytes: 5}, want: []string{"a: too large: 10 bytes, the limit is 5"}},
		"TotalSize": {reason: "bound", content: map[string]string{"a": "schema: x\n"}, options: Options{MaxTotalBytes: 5}, want: []string{"a: the catalog is too large: more than 5 bytes"}},
		"Documents": {reason: "bound", content: map[string]string{"a": "schema: x\n---\nschema: y\n"}, options: Options{MaxDocuments: 1}, want: []string{"a: the catalog is too large: more than 1 objects"}},
		"Values": {
			reason: "the parser takes memory for each value",
			content: map[string]string{
				"cr": tooMany("\r"), "lf": tooMany("\n"), "ls": tooMany("\u2028"), "nel": tooMany("\u0085"), "ps": tooMany("\u2029"),
				"flow": "schema: x\nv: ![" + strings.Repeat("1,", values.Max) + "]\n", "dash": "schema: x\nv: !!seq\n" + strings.Repeat("- ", values.Max+2) + "\n",
				"json": `{"schema":"x","Schema":"y","v":[` + strings.Repeat("1,", values.Max) + `1]}`,
			},
			want: []string{
				"cr:1: " + tooManyText(values.Max+2), "dash:1: " + tooManyText(values.Max+4), "flow:1: " + tooManyText(values.Max+3), "json:1: " + tooManyText(values.Max+4),
				"lf:1: " + tooManyText(values.Max+2), "ls:1: " + tooManyText(values.Max+3), "nel:1: " + tooManyText(values.Max+3), "ps:1: " + tooManyText(values.Max+3),
			},
		},
		"Manifest": {
			reason: "and so in a manifest within an object",
			content: map[string]string{"a": `{"schema":"olm.bundle","name":"b","package":"p","properties":[{"type":"olm.bundle.object","value":{"data":"` +
				base64.StdEncoding.EncodeToString([]byte(tooMany("\r"))) + `"}}]}`},
			want: []string{`a:1: package "p", bundle "b": properties[0] of type "olm.bundle.object": decoding manifest: ` + tooManyText(values.Max+2)},
		},
		"Depth": {reason: "bound", content: map[string]string{"a": deep}, options: Options{MaxDepth: 10}, want: []string{"a:1: nested too deeply: more than 10 levels"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Load(t.Context(), fsOf(tc.content), tc.options)
			var got []string
			for _, p := range bundles.AsProblems(err) {
				if p.Remedy == "" {
					t.Errorf("%s: no remedy for %v", tc.reason, p)
				}
				p.Remedy = ""
				got = append(got, p.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestLoadByteOrderMark(t *testing.T) {
	root := fsOf(map[string]string{
		"json": "\xef\xbb\xbf" + `{"schema":"x","name":"a"}{"schema":"x","name":"b"}`,
		"yaml": "\xef\xbb\xbfschema: x\nname: c\n---\nschema: x\nname: d\n",
	})
	got, err := Load(t.Context(), root, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range got.Custom {
		names = append(names, c.Name)
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "d"}, names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// bottomless is a file system with one file of NUL bytes. It counts the bytes that are read.
type bottomless struct {
	fs.FS

	read int
}

func (b *bottomless) Open(name string) (fs.File, error) {
	file, err := b.FS.Open(name)
	return &bottomlessFile{File: file, read: &b.read}, err
}

type bottomlessFile struct {
	fs.File

	read *int
}

func (f *bottomlessFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	*f.read += n
	return n, err
}

func TestReadFileStopsAtJunk(t *testing.T) {
	root := &bottomless{FS: fstest.MapFS{"f": {Data: make([]byte, 8*probeBytes)}}}
	if _, err := readFile(root, "f", DefaultMaxFileBytes); !errors.Is(err, errBinary) || root.read > 2*probeBytes {
		t.Errorf("got %v having read %d bytes", err, root.read)
	}
}

// TestLoadAllProblems checks that problems of intact objects are found beside broken files and
// objects. Consequences of the broken ones must not be reported.
func TestLoadAllProblems(t *testing.T) {
	const (
		declared = `{"schema":"olm.package","name":"p","defaultChannel":"c"}` + "\n"
		channel  = `{"schema":"olm.channel","package":"p","name":"c","entries":[{"name":"b"}]}` + "\n"
		bundle   = `{"schema":"olm.bundle","package":"p","name":"b","image":"i","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}}]}` + "\n"
		old      = `{"schema":"olm.bundle","package":"p","name":"b","image":"i","properties":[{"type":"olm.package","value":{"packageName":"p","version":"v1"}}]}` + "\n"
	)
	cases := map[string]struct {
		reason  string
		content map[string]string
		want    []string
	}{
		"PackageFile": {
			reason:  "the package is not said to be unknown",
			content: map[string]string{"a": "{", "b": channel + old},
			want:    []string{`a:1: decoding JSON: unexpected EOF`, `b:2: package "p", bundle "b": version "v1" is not a semantic version: No Major.Minor.Patch elements found`},
		},
		"PackageObject": {
			reason:  "neither is one whose object is broken",
			content: map[string]string{"a": `{"schema":"olm.package","name":"p","description":1}`, "b": channel + bundle},
			want:    []string{`a:1: package "p": decoding package: wrong type: field "description" must be a string, found number`},
		},
		"ChannelObject": {
			reason:  "default channel and entries of bundles may be there",
			content: map[string]string{"a": declared + `{"schema":"olm.channel","package":"p","name":"c","entries":{}}` + bundle},
			want:    []string{`a:2: package "p", channel "c": decoding channel: wrong type: field "entries" must be a list, found object`},
		},
		"BundleObject": {
			reason:  "the entry's bundle may be there; other packages are not affected",
			content: map[string]string{"a": declared + channel + `{"schema":"olm.bundle","package":"p","name":"b","image":1}` + `{"schema":"olm.package","name":"q","defaultChannel":"c"}`},
			want: []string{
				`a:3: package "p", bundle "b": decoding bundle: wrong type: field "image" must be a string, found number`,
				`a:3: package "q": default channel "c" not found in channels list`,
				`a:3: package "q": package must contain at least one channel`,
			},
		},
		"Properties": {
			reason: "each property has its line, and its absence none",
			content: map[string]string{"a": declared + channel + `{"schema":"olm.bundle","package":"p","name":"b","image":"i","properties":[` +
				`{"type":"olm.package","value":1},{"type":"olm.gvk","value":[]},{"type":"olm.gvk.required","value":{"group":1}}]}`},
			want: []string{
				`a:3: package "p", bundle "b": properties[0] of type "olm.package": decoding value: wrong type: it must be an object, found number`,
				`a:3: package "p", bundle "b": properties[1] of type "olm.gvk": decoding value: wrong type: it must be an object, found array`,
				`a:3: package "p", bundle "b": properties[2] of type "olm.gvk.required": decoding value: wrong type: field "group" must be a string, found number`,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			catalog, err := Load(t.Context(), fsOf(tc.content), Options{})
			all := append(bundles.AsProblems(err), bundles.AsProblems(catalog.Validate())...)
			var got []string
			for _, p := range bundles.AsProblems(all.OrNil()) {
				p.Remedy = ""
				got = append(got, p.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestLoadOddFiles(t *testing.T) {
	dir := t.TempDir()
	for name, create := range map[string]func(string) error{
		"directory-link": func(path string) error { return os.Symlink(t.TempDir(), path) },
		"dangling-link":  func(path string) error { return os.Symlink("nowhere", path) },
		"pipe":           func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"good":           func(path string) error { return os.WriteFile(path, []byte("schema: x\n"), 0o600) },
		"file-link":      func(path string) error { return os.Symlink("good", path) },
	} {
		if err := create(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Load(t.Context(), os.DirFS(dir), Options{})
	var got []string
	for _, p := range bundles.AsProblems(err) {
		got = append(got, p.String())
	}
	want := []string{
		"dangling-link: cannot be read: stat: no such file or directory; correct the path or put the file there",
		"directory-link: is a symbolic link to a directory; put a real directory there, or exclude it by an .indexignore file",
		"pipe: is not a regular file; remove it, or exclude it by an .indexignore file",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLoadStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Load(ctx, fsOf(map[string]string{"a": "schema: x"}), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
}

// FuzzLoad checks that any input is refused or loaded, and that a loaded catalog can be validated.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		"", "{", "{}{}{", "schema: x\n---\n", "---\n---\n", `{"schema":"olm.bundle","properties":[{"type":"olm.gvk","value":1}]}`,
		"a: &a [x]\nb: *a\n", `{"schema":"olm.channel","package":"p","entries":[{"name":"a","replaces":"a"}]}`,
		`{"schema":"olm.package","name":"p"}` + "\n---\nschema: olm.bundle\npackage: p\n", "\xef\xbb\xbf{}", "{\"a\":1,}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		root := fstest.MapFS{"f": &fstest.MapFile{Data: data}}
		catalog, err := Load(t.Context(), root, Options{MaxFileBytes: 1 << 16})
		if err == nil {
			err = catalog.Validate()
		}
		for _, p := range bundles.AsProblems(err) {
			if line := p.String(); line == "" || strings.ContainsAny(line, "\n\r") {
				t.Errorf("not one line: %q", line)
			}
		}
	})
}

// TestObjectLimit has objects of exactly the allowed size, and larger ones.
func TestObjectLimit(t *testing.T) {
	for name, tc := range map[string]struct {
		reason       string
		begins, ends string
	}{
		"JSON": {"a stream of JSON", `{"schema":"x","v":"`, `"}`},
		"YAML": {"a YAML document", "schema: x\nv: '", "'\n"},
	} {
		t.Run(name, func(t *testing.T) {
			fill := maxObjectBytes - len(tc.begins) - len(tc.ends)
			_, err := Load(t.Context(), fsOf(map[string]string{"a": tc.begins + strings.Repeat("v", fill) + tc.ends}), Options{})
			if err != nil {
				t.Errorf("%s of %d bytes: %v", tc.reason, maxObjectBytes, err)
			}
			_, err = Load(t.Context(), fsOf(map[string]string{"a": tc.begins + strings.Repeat("v", fill+1) + tc.ends}), Options{})
			if problems := bundles.AsProblems(err); len(problems) != 1 || !strings.Contains(problems[0].Message, "an object is too large: it has 67108865 bytes, at most 67108864 are allowed") {
				t.Errorf("%s of a byte more: got %v", tc.reason, err)
			}
		})
	}
}
