package conformance

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/test/realcatalogs"
)

// sampleBundles are bundle directories.
const sampleBundles = "../../examples/bundles"

// imageRef names the images of bundles that are read from directories.
const imageRef = "example.com/{{.Package}}:{{.Version}}"

// documents starts a program and returns the documents that it prints, one at a time, until nil.
func documents(t *testing.T, program string, args ...string) func() json.RawMessage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(out)
	return func() json.RawMessage {
		var document json.RawMessage
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			if err := cmd.Wait(); err != nil {
				t.Fatalf("%s %v: %v\n%s", filepath.Base(program), args, err, complaints.String())
			}
			return nil
		}
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", filepath.Base(program), args, err, complaints.String())
		}
		return document
	}
}

// sameDocuments compares the output of two programs and returns the number of documents.
func sameDocuments(t *testing.T, ours, theirs func() json.RawMessage) int {
	t.Helper()
	for count := 0; ; count++ {
		got, want := ours(), theirs()
		if got == nil && want == nil {
			return count
		}
		if bytes.Equal(got, want) {
			continue
		}
		// A comparison is much faster than a diff.
		if a, b := parsed(t, want), parsed(t, got); !reflect.DeepEqual(a, b) {
			t.Fatalf("document %d: -want +got:\n%s", count, gocmp.Diff(a, b))
		}
	}
}

// parsed returns an object with its related images sorted. They are a set, and opm orders images
// with the same reference at random.
func parsed(t *testing.T, document json.RawMessage) any {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(document, &fields); err != nil {
		t.Fatal(err)
	}
	images, _ := fields["relatedImages"].([]any)
	slices.SortFunc(images, func(a, b any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return fields
}

// TestRenderRealCatalogs compares real catalogs unchanged, and with the manifests of bundles
// converted. The bundles get images for that, because those without an image are not converted.
func TestRenderRealCatalogs(t *testing.T) {
	opm, catalog := buildOPM(t), catalogProgram()
	for name, tt := range map[string]struct{ reason, catalog, image, level string }{
		"Metadata":  {"bundles with metadata", realcatalogs.Metadata, "", "none"},
		"Objects":   {"bundles with manifests", realcatalogs.Objects, "", "none"},
		"Converted": {"manifests become metadata", realcatalogs.Objects, "example.com/bundle:v1", "bundle-object-to-csv-metadata"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, packages := realcatalogs.Sample(t, tt.catalog)
			if tt.image != "" {
				dir = withImages(t, dir, tt.image)
			}
			ours := documents(t, catalog, "render", dir, "--migrate-level", tt.level)
			theirs := documents(t, opm, "render", dir, "--migrate-level", tt.level)
			if count, least := sameDocuments(t, ours, theirs), 5*packages; count < least {
				t.Errorf("%s: compared only %d objects, want %d", tt.reason, count, least)
			}
		})
	}
}

// withImages copies a catalog and sets one image for all bundles without one.
func withImages(t *testing.T, dir, image string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "catalog.json"))
	if err != nil {
		t.Fatal(err)
	}
	copied, changed := t.TempDir(), 0
	for i, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		const begin = `{"schema":"olm.bundle",`
		changed += bytes.Count(text, []byte(begin))
		text = bytes.ReplaceAll(text, []byte(begin), []byte(begin+`"image":"`+image+`",`))
		if err := os.WriteFile(filepath.Join(copied, fmt.Sprintf("%d.json", i)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if changed < len(files) {
		t.Fatalf("%d of %d packages have bundles without an image", changed, len(files))
	}
	return copied
}

func TestRenderBundles(t *testing.T) {
	opm, catalog := buildOPM(t), catalogProgram()
	dirs, err := filepath.Glob(filepath.Join(sampleBundles, "*", "*", "metadata"))
	if err != nil || len(dirs) < 6 {
		t.Fatalf("sample bundles: %v, %v", dirs, err)
	}
	for i := range dirs {
		dirs[i] = filepath.Dir(dirs[i])
	}
	for name, tt := range map[string]struct {
		reason       string
		ours, theirs []string
	}{
		"Inline":   {"a bundle without an image holds its manifests", nil, nil},
		"Template": {"the template names the image", []string{"--image-ref-template", imageRef}, []string{"--alpha-image-ref-template", imageRef}},
		"Migrated": {
			"manifests become metadata",
			[]string{"--image-ref-template", imageRef, "--migrate-level", "all"},
			[]string{"--alpha-image-ref-template", imageRef, "--migrate-level", "bundle-object-to-csv-metadata"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ours := documents(t, catalog, slices.Concat([]string{"render"}, dirs, tt.ours)...)
			theirs := documents(t, opm, slices.Concat([]string{"render"}, dirs, tt.theirs)...)
			if count := sameDocuments(t, ours, theirs); count != len(dirs) {
				t.Errorf("%s: compared %d bundles, want %d", tt.reason, count, len(dirs))
			}
		})
	}
}

// TestConvert compares a converted catalog with the output of opm.
func TestConvert(t *testing.T) {
	opm, catalog := buildOPM(t), catalogProgram()
	dir := t.TempDir()
	text, err := exec.CommandContext(t.Context(), catalog, "render", filepath.Join(sampleBundles, "lantern", "1.0.0"), "--image-ref-template", imageRef).Output()
	if err != nil {
		t.Fatal(err)
	}
	head := pkg("lantern", "stable") + channel("lantern", "stable", `{"name":"lantern.v1.0.0"}`)
	if err := os.WriteFile(filepath.Join(dir, "catalog.json"), append([]byte(head), text...), 0o600); err != nil {
		t.Fatal(err)
	}
	ours := documents(t, catalog, "convert", dir)
	theirs := documents(t, opm, "render", dir, "--migrate-level", "bundle-object-to-csv-metadata")
	if count := sameDocuments(t, ours, theirs); count != 3 {
		t.Errorf("compared %d objects", count)
	}
}

// TestPrunedIsValid prunes a real catalog in many ways and validates each result with opm. A
// package that is kept whole must equal opm's rendering of its directory.
func TestPrunedIsValid(t *testing.T) {
	opm, catalog := buildOPM(t), catalogProgram()
	dir := realcatalogs.Dir(t, realcatalogs.Metadata)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	selections := map[string][]string{"AllHeads": {"--heads"}}
	// Prune every thirtieth package, whole and in parts, or fewer of them in a sample.
	for i := 0; i < len(entries); i += 30 * min(4, realcatalogs.Share(t)) {
		name := entries[i].Name()
		selections[name] = []string{"--package", name}
		selections[name+"/heads"] = []string{"--package", name, "--heads"}
		selections[name+"/dependencies"] = []string{"--package", name, "--dependencies"}
	}
	for name, flags := range selections {
		t.Run(name, func(t *testing.T) {
			to := filepath.Join(t.TempDir(), "pruned")
			if out, err := exec.CommandContext(t.Context(), catalog, append([]string{"prune", dir, "--to", to}, flags...)...).CombinedOutput(); err != nil {
				t.Fatalf("pruning: %v\n%s", err, out)
			}
			if len(flags) == 2 {
				sameDocuments(t, documents(t, catalog, "render", to), documents(t, opm, "render", filepath.Join(dir, name)))
			}
			if out, err := exec.CommandContext(t.Context(), opm, "validate", to).CombinedOutput(); err != nil {
				t.Errorf("opm finds the result invalid: %v\n%s", err, out)
			}
		})
	}
}
