package manifests

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	kjson "sigs.k8s.io/json"

	"github.com/chandlery/chandlery/bundles"
)

const (
	csvYAML = "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: lamp.v1}\n"
	csvJSON = `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"lamp.v1"}}`
)

func configMap(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"
}

// directory returns a file system of texts.
func directory(files map[string]string) fstest.MapFS {
	root := fstest.MapFS{}
	for name, text := range files {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return root
}

// names returns the objects of a bundle as KIND/NAME.
func names(t *testing.T, texts []string) []string {
	t.Helper()
	var out []string
	for _, text := range texts {
		var object struct {
			Kind     string `json:"kind"`
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		}
		if err := json.Unmarshal([]byte(text), &object); err != nil {
			t.Fatal(err)
		}
		out = append(out, object.Kind+"/"+object.Metadata.Name)
	}
	return out
}

func TestRead(t *testing.T) {
	const csv = "ClusterServiceVersion/lamp.v1"
	for what, tc := range map[string]struct {
		reason string
		files  map[string]string
		want   []string
	}{
		"Order": {
			reason: "the ClusterServiceVersion first, the others by file",
			files:  map[string]string{"b.yaml": configMap("b"), "m.yaml": csvYAML, "a.yaml": configMap("a")},
			want:   []string{csv, "ConfigMap/a", "ConfigMap/b"},
		},
		"SeveralInAFile": {
			reason: "however they are set apart",
			files: map[string]string{
				"all.yaml": "# first\n---\n" + configMap("a") + "---   \n# nothing\n---\n" + csvYAML + "--- # last\n" + configMap("b") + "...\n---\n",
			},
			want: []string{csv, "ConfigMap/a", "ConfigMap/b"},
		},
		"JSON": {
			reason: "one or several",
			files:  map[string]string{"csv.json": "\n\t" + csvJSON, "x.json": `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}{"apiVersion":"v1","kind":"Secret","metadata":{"name":"t"}}`},
			want:   []string{csv, "Secret/s", "Secret/t"},
		},
		"FlowMapping": {
			reason: "what begins like JSON may be YAML",
			files:  map[string]string{"csv.yaml": csvYAML, "x.yaml": "{apiVersion: v1, kind: Service, metadata: {name: s}}\n---\n" + configMap("a")},
			want:   []string{csv, "Service/s", "ConfigMap/a"},
		},
		"NotObjects": {
			reason: "what is none of Kubernetes is passed over",
			files: map[string]string{
				"csv.yaml": csvYAML, "values.yaml": "a: 1\n", "list.yaml": "- a\n", "empty.yaml": "", "README.md": "# A: b\n\t- {\n",
				".hidden.yaml": "{", "sub/x.yaml": "{", "LICENSE": "Some\x00thing", "notes.txt": "a: b: c",
			},
			want: []string{csv},
		},
		"AnyName": {
			reason: "an object counts in any file",
			files:  map[string]string{"csv": csvYAML, "settings.conf": configMap("a")},
			want:   []string{csv, "ConfigMap/a"},
		},
		"WindowsAndMark": {
			reason: "line ends and byte order marks",
			files:  map[string]string{"csv.yaml": "\xef\xbb\xbf" + strings.ReplaceAll(csvYAML+"---\n"+configMap("a"), "\n", "\r\n")},
			want:   []string{csv, "ConfigMap/a"},
		},
	} {
		t.Run(what, func(t *testing.T) {
			texts, err := Read(directory(tc.files), Limits{})
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, names(t, texts)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestReadKeepsDuplicateKeys repeats keys in a mapping. The last value counts, and a strict decoder
// finds each in the JSON.
func TestReadKeepsDuplicateKeys(t *testing.T) {
	yaml := "# first\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n---\n" + csvYAML + `
spec:
  displayName: {a: 1}
  displayName: Lamp
  list:
  - a: 1
  - b: 1
    b: {c: 1, c: 2, "c": 3}
  base: &base {d: 1}
  merged: {<<: *base, d: 2, e: 3}
`
	texts, err := Read(directory(map[string]string{"csv.yaml": yaml}), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	strict, err := kjson.UnmarshalStrict([]byte(texts[0]), &object)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range strict {
		found = append(found, e.Error())
	}
	if diff := cmp.Diff([]string{`duplicate field "spec.displayName"`, `duplicate field "spec.list[1].b"`, `duplicate field "spec.list[1].b.c"`}, found); diff != "" {
		t.Errorf("duplicates (-want +got):\n%s", diff)
	}
	want := map[string]any{
		"displayName": "Lamp", "list": []any{map[string]any{"a": int64(1)}, map[string]any{"b": map[string]any{"c": int64(3)}}},
		"base": map[string]any{"d": int64(1)}, "merged": map[string]any{"d": int64(2), "e": int64(3)},
	}
	if diff := cmp.Diff(want, object["spec"]); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if want := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`; texts[1] != want {
		t.Errorf("object without duplicates: %s", texts[1])
	}
}

// TestReadKeepsValues compares YAML values with the resulting JSON.
func TestReadKeepsValues(t *testing.T) {
	yaml := csvYAML + `
data:
  whole: 9223372036854775807
  large: 18446744073709551615
  half: 0.5
  yes: yes
  text: "yes"
  none: ~
  time: 2020-01-02
  1: one
  1.5: more
  true: bool
  html: <a & b>
  list: [&a {x: 1}, *a]
  merged: {<<: *a, z: 2}
  lines: |
    one
      two
`
	want := `{"apiVersion":"operators.coreos.com/v1alpha1",` +
		`"data":{"1":"one","1.5":"more","half":0.5,"html":"<a & b>","large":18446744073709551615,"lines":"one\n  two\n",` +
		`"list":[{"x":1},{"x":1}],"merged":{"x":1,"z":2},"none":null,"text":"yes","time":"2020-01-02","true":"bool","whole":9223372036854775807},` +
		`"kind":"ClusterServiceVersion","metadata":{"name":"lamp.v1"}}`
	// Both keys mean true.
	yaml = strings.Replace(yaml, "  yes: yes\n", "", 1)
	texts, err := Read(directory(map[string]string{"csv.yaml": yaml}), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, texts[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// bad is an invalid bundle with its expected problems.
type bad struct {
	files  map[string]string
	limits Limits
	want   []string
}

func badBundles() map[string]bad {
	crd := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  annotations: {}\n  name: lamps.example.com\n"
	return map[string]bad{
		"Empty":   {files: map[string]string{"README.md": "x"}, want: []string{"holds no manifests: it is no bundle"}},
		"NoCSV":   {files: map[string]string{"a.yaml": configMap("a")}, want: []string{"has no ClusterServiceVersion among its 1 objects; add"}},
		"TwoCSVs": {files: map[string]string{"a.yaml": csvYAML, "b.yaml": "---\n" + strings.ReplaceAll(csvYAML, "v1}", "v2}")}, want: []string{`b.yaml:2: ClusterServiceVersion "lamp.v2" is a second ClusterServiceVersion beside ClusterServiceVersion "lamp.v1" in a.yaml:1; leave one`}},
		"NoVersion": {
			files: map[string]string{"a.yaml": "\n\nkind: ClusterServiceVersion\nmetadata: {name: lamp.v1}\n"},
			want:  []string{`a.yaml:3: bundle CSV lamp.v1 missing APIVersion; add the apiVersion operators.coreos.com/v1alpha1`},
		},
		"NoCSVKind": {
			files: map[string]string{"a.yaml": "apiVersion: operators.coreos.com/v1alpha1\nmetadata: {name: lamp.v1}\n"},
			want:  []string{"a.yaml:1: bundle CSV lamp.v1 missing Kind; add the kind ClusterServiceVersion"},
		},
		"NoKind":      {files: map[string]string{"a.yaml": csvYAML + "---\napiVersion: v1\n"}, want: []string{`a.yaml:5: an object of "v1" lacks kind; add`}},
		"NoName":      {files: map[string]string{"a.yaml": csvYAML + "---\napiVersion: v1\nkind: Service\n"}, want: []string{`a.yaml:5: an object of kind "Service" lacks metadata.name; add`}},
		"WrongName":   {files: map[string]string{"a.yaml": csvYAML + "---\napiVersion: v1\nkind: Service\nmetadata: {name: 1}\n"}, want: []string{`a.yaml:5: metadata.name is no string`}},
		"WrongMeta":   {files: map[string]string{"a.yaml": csvYAML + "---\napiVersion: v1\nkind: Service\nmetadata: 1\n"}, want: []string{`a.yaml:5: metadata is no object`}},
		"InvalidYAML": {files: map[string]string{"a.yaml": csvYAML, "b.yml": configMap("b") + "---\na: b\nc: d: e\n"}, want: []string{"b.yml:6: is not valid YAML: mapping values are not allowed"}},
		"Tab":         {files: map[string]string{"a.yaml": csvYAML + "spec:\n\tx: 1\n"}, want: []string{"a.yaml:5: is not valid YAML: found character that cannot start any token"}},
		"InvalidJSON": {files: map[string]string{"a.json": "{\n\"a\": ]"}, want: []string{"a.json:2: is not valid JSON"}},
		"NoJSONKey":   {files: map[string]string{"a.yaml": "{[a]: b}: c\n"}, want: []string{"a.yaml:1"}},
		"NoJSONValue": {files: map[string]string{"a.yaml": csvYAML + "x: .inf\n"}, want: []string{`a.yaml:1: "+Inf" is no value that JSON knows`}},
		"AllAtOnce":   {files: map[string]string{"a.yaml": "a: b: c", "b.yaml": "kind: A\n"}, want: []string{"a.yaml:1", "b.yaml:1"}},
		"LargeObject": {
			files:  map[string]string{"a.yaml": csvYAML, "b.yaml": crd + "x: " + strings.Repeat("y", 1000) + "\n"},
			limits: Limits{MaxObjectBytes: 1000},
			want:   []string{`b.yaml:1: CustomResourceDefinition "lamps.example.com" has 1138 bytes as JSON, at most 1000 can be stored; shorten`},
		},
		"VeryLargeObject": {
			files: map[string]string{"a.yaml": csvYAML, "b.yaml": crd + strings.Repeat("# comment\n", 1<<19)},
			want:  []string{`b.yaml:1: CustomResourceDefinition "lamps.example.com" is too large: it has 5243001 bytes, at most 4194304 are allowed; shorten`},
		},
		"ManyValues": {
			files: map[string]string{"a.yaml": csvYAML, "b.yaml": crd + "x: [" + strings.Repeat("1,", 400_000) + "]"},
			want:  []string{`CustomResourceDefinition "lamps.example.com" is too large: it may hold 400007 values, at most 400000 are allowed`},
		},
		"ManyValuesCR": {
			files: map[string]string{"a.yaml": csvYAML, "b.yaml": crd + "x:\n" + strings.Repeat("- 1\r", 400_000)},
			want:  []string{`CustomResourceDefinition "lamps.example.com" is too large: it may hold 400007 values, at most 400000 are allowed`},
		},
		"ManyValuesNEL": {
			files: map[string]string{"a.yaml": csvYAML, "b.yaml": crd + "x:\n" + strings.Repeat("- 1\u0085", 400_000)},
			want:  []string{`CustomResourceDefinition "lamps.example.com" is too large: it may hold 400007 values, at most 400000 are allowed`},
		},
		"ManyValuesLS": {
			files: map[string]string{"a.yaml": csvYAML, "b.yaml": crd + "x:\n" + strings.Repeat("- 1\u2028", 400_000)},
			want:  []string{`CustomResourceDefinition "lamps.example.com" is too large: it may hold 400007 values, at most 400000 are allowed`},
		},
		"LargeFile": {
			files:  map[string]string{"a.yaml": csvYAML, "b.yaml": crd + strings.Repeat("#\n", 1000)},
			limits: Limits{MaxFileBytes: 1000},
			want:   []string{`b.yaml: CustomResourceDefinition "lamps.example.com" is too large: the file has 2121 bytes, at most 1000 are allowed`},
		},
		"Aliases": {
			files: map[string]string{"a.yaml": csvYAML + "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 10000) + "]\n"},
			want:  []string{"an object is too large: it has more than 12582912 bytes as JSON"},
		},
		"Deep":        {files: map[string]string{"a.yaml": "a: " + strings.Repeat("[", 1100) + strings.Repeat("]", 1100)}, want: []string{"is nested more than 1000 levels deep"}},
		"ManyFiles":   {files: map[string]string{"a.yaml": csvYAML, "b.yaml": ""}, limits: Limits{MaxFiles: 1}, want: []string{"has 2 files, at most 1 are allowed; remove"}},
		"ManyObjects": {files: map[string]string{"a.yaml": csvYAML, "b.yaml": configMap("b") + "---\n" + configMap("c")}, limits: Limits{MaxObjects: 1}, want: []string{"has more than 1 objects; remove"}},
		"ManyBytes":   {files: map[string]string{"a.yaml": csvYAML, "b.yaml": configMap("b")}, limits: Limits{MaxBytes: 150}, want: []string{"its objects have more than 150 bytes"}},
	}
}

func TestReadRefuses(t *testing.T) {
	for what, tc := range badBundles() {
		t.Run(what, func(t *testing.T) {
			texts, err := Read(directory(tc.files), tc.limits)
			if !errors.As(err, new(bundles.Problems)) {
				t.Fatalf("got %d objects and %v", len(texts), err)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not contain %q", err, want)
				}
			}
			if lines := len(strings.Split(err.Error(), "\n")); lines != len(tc.want) {
				t.Errorf("%d problems, want %d: %v", lines, len(tc.want), err)
			}
		})
	}
}

// TestReadLinks reads a directory with links. No link may lead out of it.
func TestReadLinks(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("outside.yaml", configMap("outside"))
	if err := os.Mkdir(filepath.Join(dir, "manifests"), 0o700); err != nil {
		t.Fatal(err)
	}
	write("manifests/csv.yaml", csvYAML)
	root, err := os.OpenRoot(filepath.Join(dir, "manifests"))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	link := func(target, name string) {
		if err := root.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	link("csv.yaml", "README")
	link(".", "folder.yaml")
	if _, err := Read(root.FS(), Limits{}); err == nil || !strings.Contains(err.Error(), "is a second ClusterServiceVersion") {
		t.Errorf("a link to a file counts as the file: %v", err)
	}
	if err := root.Remove("README"); err != nil {
		t.Fatal(err)
	}
	if texts, err := Read(root.FS(), Limits{}); err != nil || len(texts) != 1 {
		t.Errorf("a link to a directory is none: %d, %v", len(texts), err)
	}
	for target, want := range map[string]string{"../outside.yaml": "escape", "nowhere.yaml": "no such file", "loop.yaml": "loop"} {
		link(target, "loop.yaml")
		_, err := Read(root.FS(), Limits{})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "loop.yaml") {
			t.Errorf("a link to %s: %v", target, err)
		}
		if err := root.Remove("loop.yaml"); err != nil {
			t.Fatal(err)
		}
	}
}

// FuzzRead reads arbitrary bytes as a manifest beside a ClusterServiceVersion. Accepted objects
// must be JSON within the limits.
func FuzzRead(f *testing.F) {
	f.Add([]byte(configMap("a") + "---\n" + configMap("b")))
	f.Add([]byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}`))
	f.Add([]byte("{apiVersion: v1, kind: &a A, metadata: {name: *a, x: {<<: {y: !!binary aGk=}}}}\n...\n--- \n"))
	for _, tc := range badBundles() {
		for _, text := range tc.files {
			if len(text) < 10_000 {
				f.Add([]byte(text))
			}
		}
	}
	limits := Limits{MaxObjectBytes: 10_000, MaxBytes: 50_000, MaxObjects: 10}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, name := range []string{"a.yaml", "README"} {
			texts, err := Read(fstest.MapFS{"csv.json": {Data: []byte(csvJSON)}, name: {Data: text}}, limits)
			if err != nil {
				if err.Error() == "" {
					t.Error("an error without a text")
				}
				continue
			}
			for i, one := range texts {
				checkObject(t, i, one, &limits)
			}
		}
	})
}

func checkObject(t *testing.T, i int, text string, limits *Limits) {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil || len(text) > limits.MaxObjectBytes || i >= limits.MaxObjects {
		t.Fatalf("object %d, %q: %v", i, text, err)
	}
	kind, _ := object["kind"].(string)
	if version, _ := object["apiVersion"].(string); kind == "" || version == "" || i == 0 && kind != csvKind {
		t.Errorf("object %d is %q", i, text)
	}
}

// BenchmarkRead reads a bundle with a large definition.
func BenchmarkRead(b *testing.B) {
	var crd strings.Builder
	crd.WriteString("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.b}\nspec:\n  properties:\n")
	for i := range 8000 {
		fmt.Fprintf(&crd, "    field%d:\n      description: What the field with the number %d is for, as schemas tell.\n      type: string\n", i, i)
	}
	var root fs.FS = directory(map[string]string{"csv.yaml": csvYAML, "crd.yaml": crd.String()})
	b.SetBytes(int64(crd.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(root, Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}
