package catalogfile

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// entry has the fields of a channel entry.
type entry struct {
	Name     string `json:"name"`
	Replaces string `json:"replaces,omitempty"`
}

// appendTests are the cases of TestAppend. Each appends an entry v2 that replaces v1.
var appendTests = map[string]struct {
	reason     string
	text, want string
	document   int
	path       Path
}{
	"Indentless": {
		reason: "a list may have the indentation of its key",
		text:   "schema: olm.channel # the only one\nentries:\n# oldest first\n- name: v1 # the first\nname: stable\n",
		want:   "schema: olm.channel # the only one\nentries:\n# oldest first\n- name: v1 # the first\n- name: v2\n  replaces: v1\nname: stable\n",
		path:   Fields("entries"),
	},
	"Indented": {
		reason: "a new element has the indentation of the others",
		text:   "entries:\n    -   name: v1\n        skips: [a]\n\n# behind\nname: stable",
		want:   "entries:\n    -   name: v1\n        skips: [a]\n    - name: v2\n      replaces: v1\n\n# behind\nname: stable",
		path:   Fields("entries"),
	},
	"LastLineOpen": {
		reason: "the last line may have no end",
		text:   "entries:\n- name: v1",
		want:   "entries:\n- name: v1\n- name: v2\n  replaces: v1\n",
		path:   Fields("entries"),
	},
	"Carriage": {
		reason: "line ends stay as they are",
		text:   "entries:\r\n- name: v1\r\n",
		want:   "entries:\r\n- name: v1\r\n- name: v2\r\n  replaces: v1\r\n",
		path:   Fields("entries"),
	},
	"Literal": {
		reason: "a line of a text that looks like a comment belongs to the text",
		text:   "entries:\n- name: v0\n  note: |\n    one\n    # two\nname: stable\n",
		want:   "entries:\n- name: v0\n  note: |\n    one\n    # two\n- name: v2\n  replaces: v1\nname: stable\n",
		path:   Fields("entries"),
	},
	"SecondDocument": {
		reason: "other documents stay as they are",
		text:   "---\na:   1 # odd\n---\nentries:\n  - name: v1\n---\nb: 2\n",
		want:   "---\na:   1 # odd\n---\nentries:\n  - name: v1\n  - name: v2\n    replaces: v1\n---\nb: 2\n",
		path:   Fields("entries"), document: 1,
	},
	"Template": {
		reason: "a template lists channels among its entries",
		text:   "schema: olm.template.basic\nentries:\n  # the channel\n  - schema: olm.channel\n    entries:\n      - name: v1 # first\n  - schema: olm.bundle\n    image: x\n",
		want:   "schema: olm.template.basic\nentries:\n  # the channel\n  - schema: olm.channel\n    entries:\n      - name: v1 # first\n      - name: v2\n        replaces: v1\n  - schema: olm.bundle\n    image: x\n",
		path:   Fields("entries").Then(Element(0), Field("entries")),
	},
	"Flow": {
		reason: "a list in flow style becomes one in block style; comments stay",
		text:   "# head\nentries: [{name: v1}]\nname: stable # tail\n",
		want:   "# head\nentries:\n  - {name: v1}\n  - name: v2\n    replaces: v1\nname: stable # tail\n",
		path:   Fields("entries"),
	},
	"Missing": {
		reason: "a list that is missing is created",
		text:   "name: stable # tail\n",
		want:   "name: stable # tail\nentries:\n  - name: v2\n    replaces: v1\n",
		path:   Fields("entries"),
	},
	"JSONLines": {
		reason: "an object in one line stays in one line",
		text:   `{"entries":[{"name":"v1"}],"x":1}` + "\n",
		want:   `{"entries":[{"name":"v1"},{"name":"v2","replaces":"v1"}],"x":1}` + "\n",
		path:   Fields("entries"),
	},
	"JSONIndented": {
		reason: "indentation is that of the other elements",
		text:   "{\n  \"entries\": [\n    {\n      \"name\": \"v1\"\n    }\n  ]\n}\n{\"b\":1}\n",
		want:   "{\n  \"entries\": [\n    {\n      \"name\": \"v1\"\n    },\n    {\n      \"name\": \"v2\",\n      \"replaces\": \"v1\"\n    }\n  ]\n}\n{\"b\":1}\n",
		path:   Fields("entries"),
	},
	"JSONEmpty": {
		reason: "an empty list gets lines of its own",
		text:   "{\n    \"entries\": []\n}\n",
		want:   "{\n    \"entries\": [\n        {\n            \"name\": \"v2\",\n            \"replaces\": \"v1\"\n        }\n    ]\n}\n",
		path:   Fields("entries"),
	},
	"JSONMissing": {
		reason: "a field that is missing is added",
		text:   "{\n    \"name\": \"a]}\\\"\"\n}\n",
		want:   "{\n    \"name\": \"a]}\\\"\",\n    \"entries\": [\n        {\n            \"name\": \"v2\",\n            \"replaces\": \"v1\"\n        }\n    ]\n}\n",
		path:   Fields("entries"),
	},
}

func TestAppend(t *testing.T) {
	t.Parallel()
	v2 := entry{Name: "v2", Replaces: "v1"}
	for name, tt := range appendTests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, err := Parse([]byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			got, err := file.Append(tt.document, tt.path, v2)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got.Text())); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tt.reason, diff)
			}
		})
	}
}

func TestSet(t *testing.T) {
	t.Parallel()
	message := Fields("entries").Then(Element(1), Field("message"))
	for name, tt := range map[string]struct{ reason, text, want string }{
		"Block": {
			reason: "lines around the value stay as they are",
			text:   "entries:\n- message: a\n- message: |\n    b\n    c\n  # about the reference\n  reference: {schema: olm.package}\n",
			want:   "entries:\n- message: a\n- message: use other\n  # about the reference\n  reference: {schema: olm.package}\n",
		},
		"Commented": {
			reason: "a comment behind the value stays",
			text:   "entries:\n- message: a\n- message: b # why\n",
			want:   "entries:\n  - message: a\n  - message: use other # why\n",
		},
		"JSON": {
			reason: "only the value changes",
			text:   `{"entries": [{"message": "a"}, {"message" : "b", "x": {}}]}`,
			want:   `{"entries": [{"message": "a"}, {"message" : "use other", "x": {}}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, err := Parse([]byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			got, err := file.Set(0, message, "use other")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got.Text())); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tt.reason, diff)
			}
		})
	}
}

func TestAddDocument(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ reason, text, want string }{
		"YAML":         {"documents are separated", "a: 1 # one", "a: 1 # one\n---\nname: v2\n"},
		"EmptyYAML":    {"the first document of a file has a separator, as opm writes it", "", "---\nname: v2\n"},
		"JSONLines":    {"one line for each object", "{\"a\":1}\n", "{\"a\":1}\n{\"name\":\"v2\"}\n"},
		"JSONIndented": {"objects have several lines", "{\n \"a\":1\n}", "{\n \"a\":1\n}\n{\n    \"name\": \"v2\"\n}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, err := Parse([]byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			got, err := file.AddDocument(entry{Name: "v2"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got.Text())); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tt.reason, diff)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	_, err := Parse([]byte("a: 1\n---\nb: [\n"))
	wrong, ok := errors.AsType[*SyntaxError](err)
	if !ok || wrong.Line != 3 {
		t.Errorf("want the line where the document begins, got %v", err)
	}
}

func TestObjects(t *testing.T) {
	t.Parallel()
	file, err := Parse([]byte("schema: olm.template.basic\nentries:\n- {schema: olm.package, name: p}\n- {schema: olm.bundle, image: x}\n"))
	if err != nil {
		t.Fatal(err)
	}
	objects := file.Objects()
	if file.Template() != SchemaBasic || len(objects) != 2 || objects[0].Name != "p" || objects[1].Path.String() != "entries[1]" {
		t.Errorf("got %q, %+v", file.Template(), objects)
	}
}

// FuzzAppend checks that a change is made as requested or refused.
func FuzzAppend(f *testing.F) {
	for _, seed := range []string{
		"entries:\n- name: v1\n", "{\"entries\":[{}]}", "entries: [a, b] # c\n", "# c\nentries:\n  -\n    name: x\n...\n",
		"a: &x [1]\nentries: *x\n", "entries:\n- - - 1\n- |+\n  a\n\n\nb: 2\n", "{\"entries\":[],\"entries\":[1]}", "? entries\n: - 1\n",
		"entries:\r- nam1*", "entries:\r\n- a\r\n", "entries:\u0085- a", "entries:\n- \"a\u2028b\"\n- c\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<12 {
			return
		}
		file, err := Parse([]byte(text))
		if err != nil || len(file.Objects()) == 0 {
			return
		}
		changed, err := file.Append(0, Fields("entries"), entry{Name: "v2"})
		if err != nil {
			return
		}
		// Append has compared all values. Comments of other lines must stay.
		if strings.Count(string(changed.Text()), "\x00") != strings.Count(text, "\x00") {
			t.Errorf("%q became %q", text, changed.Text())
		}
		if _, err := changed.Set(0, Fields("entries").Then(Element(0)), 1); err != nil && !errors.Is(err, errNoValue) && !errors.Is(err, errLayout) && !errors.Is(err, errNotEqual) {
			t.Errorf("%q: %v", changed.Text(), err)
		}
	})
}
