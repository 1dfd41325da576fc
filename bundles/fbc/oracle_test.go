package fbc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/test/realcatalogs"
)

// loadPlainly loads a catalog in the simplest way: it decodes one file after the other with
// encoding/json into maps, and encodes the maps again.
func loadPlainly(root fs.FS, options Options) (*bundles.Catalog, error) {
	options = options.withDefaults()
	var (
		problems bundles.Problems
		missing  gaps
		objects  []object
	)
	files, err := Files(root)
	if errors.As(err, &problems) {
		missing.anything = true
	}
	l := &loader{root: root, options: options}
	for _, name := range files {
		err := l.visit(name, func(d document, fields map[string]any) {
			head, problem := identify(fields)
			if problem == nil {
				o, err := decode(fields, head, bundles.Origin{File: name, Line: d.line}, options.MaxDepth)
				if err == nil {
					err = o.check(new([]byte))
				}
				if err == nil {
					objects = append(objects, o)
					return
				}
				problem = head.problem(err)
			}
			missing.add(head)
			problem.File = bundles.Origin{File: name, Line: d.line}.String()
			problems = append(problems, *problem)
		})
		if err != nil {
			missing.anything = true
			problems = append(problems, describe(name, err))
		}
	}
	return putTogether(objects, missing), problems.OrNil()
}

// visit decodes all of a file, within the limits.
func (l *loader) visit(name string, visit func(document, map[string]any)) error {
	data, err := readFile(l.root, name, l.options.MaxFileBytes)
	if err != nil {
		return err
	}
	if err := l.count(int64(len(data))); err != nil {
		return err
	}
	return documents(data, func(d document) error {
		if l.documents.Add(1) > l.options.MaxDocuments {
			return l.tooManyObjects()
		}
		fields, err := d.decoded()
		if err != nil {
			return err
		}
		visit(d, fields)
		return nil
	})
}

// putTogether assigns every object to its package.
func putTogether(objects []object, missing gaps) *bundles.Catalog {
	catalog := &bundles.Catalog{}
	packages := make(map[string]*bundles.Package)
	names := slices.Clone(missing.declarations)
	for _, o := range objects {
		if o.pkg != nil {
			catalog.Packages = append(catalog.Packages, o.pkg)
			if packages[o.pkg.Name] == nil {
				packages[o.pkg.Name] = o.pkg
			}
		}
		if missing.anything && o.pkg == nil && o.custom == nil {
			names = append(names, o.stray().Package)
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" || packages[name] != nil })
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		packages[name] = &bundles.Package{Name: name}
		catalog.Packages = append(catalog.Packages, packages[name])
	}
	for _, o := range objects {
		switch {
		case o.custom != nil:
			catalog.Custom = append(catalog.Custom, *o.custom)
		case o.pkg != nil:
		case packages[o.stray().Package] != nil:
			adopt(packages[o.stray().Package], o)
		default:
			catalog.Strays = append(catalog.Strays, o.stray())
		}
	}
	for _, p := range catalog.Packages {
		p.Incomplete = missing.affect(p.Name)
	}
	sortCatalog(catalog)
	return catalog
}

// compareLoads checks that Load and loadPlainly agree.
func compareLoads(t *testing.T, root fs.FS, options Options) {
	t.Helper()
	want, wantErr := loadPlainly(root, options)
	got, err := Load(t.Context(), root, options)
	if diff := gocmp.Diff(bundles.AsProblems(wantErr), bundles.AsProblems(err)); diff != "" {
		t.Errorf("problems: -want +got:\n%s", diff)
	}
	if !reflect.DeepEqual(want, got) {
		t.Errorf("-want +got:\n%s", difference(want, got))
	}
	checkParts(t, root, options, want)
}

// difference returns the differences of two catalogs. For large catalogs it names only their
// positions, because a full comparison takes minutes.
func difference(want, got *bundles.Catalog) string {
	const large = 5
	for i := range min(len(want.Packages), len(got.Packages)) {
		p := want.Packages[i]
		if len(p.Bundles)+len(p.Channels) > large && !reflect.DeepEqual(p, got.Packages[i]) {
			return fmt.Sprintf("package %q", p.Name)
		}
	}
	return gocmp.Diff(want, got)
}

// checkParts checks that the reader returns each package once under its name.
func checkParts(t *testing.T, root fs.FS, options Options, want *bundles.Catalog) {
	t.Helper()
	r, err := Open(t.Context(), root, options)
	if err != nil {
		t.Fatal(err)
	}
	var packages []*bundles.Package
	custom, strays := 0, 0
	for _, name := range r.Packages() {
		part, err := r.Package(t.Context(), name)
		if err != nil && !errors.As(err, new(bundles.Problems)) {
			t.Fatal(err)
		}
		packages = append(packages, part.Packages...)
		custom += len(part.Custom)
		strays += len(part.Strays)
	}
	if parts := (&bundles.Catalog{Packages: packages}); !reflect.DeepEqual(want.Packages, packages) {
		t.Errorf("packages: -want +got:\n%s", difference(&bundles.Catalog{Packages: want.Packages}, parts))
	}
	if custom != len(want.Custom) || strays != len(want.Strays) {
		t.Errorf("got %d strays and %d objects of other schemas, want %d and %d", strays, custom, len(want.Strays), len(want.Custom))
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestLoadLikePlainly(t *testing.T) {
	t.Parallel()
	all := os.DirFS(realcatalogs.Dir(t, realcatalogs.Metadata))
	entries, err := fs.ReadDir(all, ".")
	if err != nil {
		t.Fatal(err)
	}
	// Check every tenth package, because the simple way is slow.
	for i := 0; i < len(entries); i += 10 {
		root, err := fs.Sub(all, entries[i].Name())
		if err != nil {
			t.Fatal(err)
		}
		compareLoads(t, root, Options{})
	}
}

// FuzzConvertYAML checks that documents converted without a parser equal the result of the parser.
func FuzzConvertYAML(f *testing.F) {
	for _, seed := range []string{
		"a: b\n", "---\na: b\nc:\n- d: e\n  f: |-\n    x\n\n      y\n  g: 'h''i'\n- j\n", "a: |+\n  b\n\n\nc: |\n\n  d\n\ne: \"f\\n\\\"g\"\n",
		"a: 1\nb: 01\nc: 1.2.3\nd: 1.2\ne: yes\nf: true\ng: null\nh:\ni: 2001-01-01\n", "a:\n  b:\n    c: []\n  d: {}\n\n", "a: b\n c\n", "a: b # c\n",
		"a:\n- b\n - c\n", "a:\n  - b: c\n    d: e\n  - f\n", "a: 'b'\n  c\n", "a: b: c\n", "a: x:\n", "on: a\n", "a: |\n   b\n  c\n", "a: |\n \n  b\n", "a: /b\nc: \u00a0d\ne: f\u00a0\n",
		"a: b\na: c\n", "a: |\n  b\n# c\n", "a: |-\n  \n  b\n", "- a\n", "a: |\n", "a: b\n...\n", "a: [b]\n", "a:\n- - b\n", "a:\n-\n", "a:\n- |\n b\n", "a: 0\nb: 1_0\nc: 0x1\nd: 1e3\n",
		"a:\n- b: |\n    c\n  d:\n  - e\n", "a: \"\\t\\\\\"\n", "a: ''\nb: \"\"\n", "a: 'b\n", "a: b\n  c\n  d\ne: f\n\n", "a: b\n  c: d\n", "a: |2-\n    b\n  c\nd: |1+\n  e\n\nf: g\n",
		"a: 'b\n  c''d'\ne: \"f\n  g\\n\n  h\"\ni: j\n", "a: 'b''\n  c'\n", "a: 'b\n\n  c'\n", "a: 'b\n  'c'\n", "a: \"b\\\n  c\"\n", "a:\n- 'b\n  # c'\n", "a: 'b \n  c'\n", "a: 'b\n  c '\n",
		"a: 3scale\nb: 2.x\nc: 2022-09-29T13:24:41UTC\nd: 03/13/2020\ne: 0b1\nf: 1x\n", "a:\n- b\n  c\n- d:\n    e\n    f\n", "a: b\n\n  c\n", "a: b \n  c\n", "a: |3\n  b\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !utf8.Valid(text) || !bytes.HasSuffix(text, []byte("\n")) {
			return
		}
		converted, ok := convertYAML(text)
		if !ok {
			return
		}
		want, err := decodeYAML(text)
		if err != nil {
			t.Fatalf("%q is converted, the parser says %v", text, err)
		}
		var got map[string]any
		if err := json.Unmarshal(converted, &got); err != nil {
			t.Fatalf("%q is converted to %s: %v", text, converted, err)
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("%q: -want +got:\n%s", text, diff)
		}
	})
}

// seeds are texts of catalogs, most of them unusual.
var seeds = []string{
	"", " ", "{", "{}", "{}{}{", "[]", "3", "null", "{}null", "schema: x\n---\n", "---\n---\n", "---\nschema: x\n--- # c\nname: y\n",
	`{"schema":"olm.package","name":"p","defaultChannel":"c","description":"\u003ca\u00e9\ud83d\ude00\ud800\"","icon":{"base64data":"PHN2Zz4=","mediatype":"m"}}`,
	`{"schema":"olm.package","name":"p","icon":null,"properties":[{"type":"a","value":1}]}{"schema":"olm.package","name":"p"}`,
	`{"schema":"olm.package","Name":"p"}`, `{"schema":"olm.package","name":1}`, `{"schema":"olm.package","package":"p"}`,
	`{"schema":"olm.channel","package":"p","name":"c","entries":[{"name":"a","replaces":"b","skips":["c","d"],"skipRange":"<1"},{}]}`,
	`{"schema":"olm.channel","package":"p","entries":null}{"schema":"olm.channel","package":"p","entries":[]}`,
	`{"schema":"olm.channel","package":"p","entries":[null,{"skips":null},{"Name":"x","skips":[]}]}`,
	`{"schema":"olm.bundle","package":"p","name":"b","image":"i","relatedImages":[{"name":"n","image":"i"},{}],"properties":[` +
		`{"type":"olm.package","value":{"version":"1.0.0","packageName":"p"}},{"value":[1.0,-0,1e3,12345678901234567890,1E-7,{"b":"\/\u2028","a":{"z":1,"y":[]}}]},{"type":"t"}]}`,
	`{"schema":"olm.bundle","package":"p","properties":[{"type":"x","value":{"a":1,"a":2}},{"type":"x","value":{"\u0061":1}},{"type":"n","value":null}]}`,
	`{"schema":"olm.bundle","package":"p","properties":[{"type":"x","value":1e999}]}`, `{"schema":"x","a":{"b":1e999}}`,
	`{"schema":"olm.bundle","package":"p","properties":[{"type":"olm.bundle.object","value":{"data":"e30="}},{"type":"olm.bundle.object","value":{"data":"/w=="}},{"type":"olm.bundle.object","value":{"data":"!"}}]}`,
	`{"schema":"olm.bundle","image":1}`, `{"schema":"olm.bundle","package":"q","image":1}{"schema":"olm.package","name":"q"}`,
	`{"schema":"olm.bundle","package":"p","image":"a","IMAGE":"b"}`, `{"schema":"olm.bundle","package":"p","\u017fchema":"b"}`,
	`{"schema":"olm.deprecations","package":"p","entries":[{"reference":{"schema":"olm.package"},"message":"m"},{"reference":null}]}`,
	`{"schema":"s","package":"p","name":"n","z":1,"a":[true,false,null]}{"name":"n"}{"schema":"s","schema":"t"}{"schema":"s","z":{"k":1,"k":2}}`,
	`{"schema":"s","a":[[[[[[[[[[[[1]]]]]]]]]]]]}`, "\xef\xbb\xbf{\"schema\":\"s\"}\n{\"schema\":\"t\"}", "\xef\xbb\xbfschema: s\n",
	"{\"schema\":\"s\"}\n---\nschema: t\n", "{\"schema\":\"s\"}{\"schema\":\"s\"}{", "{\"a\":1,}\n", "{\"schema\":\"s\",\"x\":\"\xff\"}", "{\"schema\":\"s\"}\x00",
	"schema: olm.package\nname: p\n---\r\nschema: olm.channel\npackage: p\nname: c\n...\n", "a: &a [x]\nb: *a\n", "{\"schema\":\"s\",\"x\":\"\u2028\"}",
	"\v{\"schema\":\"s\"}", "{\"schema\":\"s\"}\v{\"schema\":\"t\"}", "{\"schema\":\"s\"}}", "{\"schema\":\"s\" \"a\":1}", "schema: s\n---\nschema: [\n",
}

// FuzzLoadLikePlainly checks that Load and loadPlainly return the same objects and problems.
func FuzzLoadLikePlainly(f *testing.F) {
	for i, seed := range seeds {
		f.Add([]byte(seed), []byte(seeds[(i+11)%len(seeds)]), false)
	}
	f.Fuzz(func(t *testing.T, a, b []byte, tight bool) {
		options := Options{Concurrency: 1}
		if tight {
			options.MaxDepth, options.MaxFileBytes = 6, 200
		}
		compareLoads(t, fstest.MapFS{"a": {Data: a}, "d/b": {Data: b}}, options)
	})
}

// TestLoadTightly sets limits that the files reach one after the other.
func TestLoadTightly(t *testing.T) {
	t.Parallel()
	root := fstest.MapFS{"a": {Data: []byte(seeds[13])}, "b": {Data: []byte(seeds[12])}, "c": {Data: []byte("schema: x\n---\nschema: y\n")}}
	for documents := range int64(7) {
		compareLoads(t, root, Options{Concurrency: 1, MaxDocuments: documents})
	}
	for size := int64(1); size < 1000; size += 50 {
		compareLoads(t, root, Options{Concurrency: 1, MaxTotalBytes: size})
	}
}

// TestPackageStops cancels reads of packages.
func TestPackageStops(t *testing.T) {
	t.Parallel()
	r, err := Open(t.Context(), fstest.MapFS{"a": {Data: []byte(`{"schema":"olm.package","name":"p"}`)}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Package(ctx, "p"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
}

// TestPackageChanged changes files between the scan and the read.
func TestPackageChanged(t *testing.T) {
	t.Parallel()
	const text = `{"schema":"olm.package","name":"p","description":"d"}` + "\n" + `{"schema":"olm.channel","package":"p","name":"c"}`
	cases := map[string]struct {
		reason string
		change func(fstest.MapFS)
		want   string
	}{
		"Shorter": {
			reason: "another size", change: func(root fstest.MapFS) { root["f"] = &fstest.MapFile{Data: []byte(text[:40])} },
			want: `f: has changed while it was being read; load the catalog again`,
		},
		"Other": {
			reason: "the same size, another object",
			change: func(root fstest.MapFS) {
				root["f"] = &fstest.MapFile{Data: []byte(`{"schema":"olm.package","name":"q","description":"d"}` + text[53:])}
			},
			want: `f: has changed while it was being read; load the catalog again`,
		},
		"Gone": {
			reason: "no file", change: func(root fstest.MapFS) { delete(root, "f") },
			want: `f: cannot be read: open: file does not exist; correct the path or put the file there`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := fstest.MapFS{"f": {Data: []byte(text)}}
			r, err := Open(t.Context(), root, Options{})
			if err != nil {
				t.Fatal(err)
			}
			tc.change(root)
			_, err = r.Package(t.Context(), "p")
			problems := bundles.AsProblems(err)
			if len(problems) != 1 || problems[0].String() != tc.want || !problems[0].Unreadable {
				t.Errorf("%s: got %v, want %q", tc.reason, problems, tc.want)
			}
		})
	}
}

// unseekable is a file system whose files cannot seek.
type unseekable struct{ fs.FS }

func (u unseekable) Open(name string) (fs.File, error) {
	file, err := u.FS.Open(name)
	if dir, ok := file.(fs.ReadDirFile); ok || err != nil {
		return dir, err
	}
	return struct{ fs.File }{file}, nil
}

func TestPackageInterleaved(t *testing.T) {
	t.Parallel()
	root := fstest.MapFS{
		"a": {Data: []byte(`{"schema":"olm.channel","package":"p","name":"a"}` + "\n" +
			`{"schema":"olm.package","name":"q"}` + "\n\n" + `{"schema":"olm.package","name":"p"}`)},
		"b": {Data: []byte("schema: olm.channel\npackage: q\nname: c\n---\nschema: olm.channel\npackage: p\nname: c\n")},
	}
	compareLoads(t, unseekable{root}, Options{})
	got, err := Load(t.Context(), unseekable{root}, Options{})
	if err != nil || len(got.Packages) != 2 {
		t.Fatal(got, err)
	}
	var places []string
	for _, p := range got.Packages {
		places = append(places, p.Origin.String())
		for _, ch := range p.Channels {
			places = append(places, ch.Origin.String())
		}
	}
	if diff := gocmp.Diff([]string{"a:4", "a:1", "b:5", "a:2", "b:1"}, places); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
