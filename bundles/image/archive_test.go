package image

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// mounted returns the root of the files of an image. A text that begins with "->" is the target of a link.
func mounted(t *testing.T, texts map[string]string) *os.Root {
	t.Helper()
	dir := t.TempDir()
	for name, text := range texts {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if target, isLink := strings.CutPrefix(text, "->"); isLink {
			err = errors.Join(err, os.Symlink(target, path))
		} else {
			err = errors.Join(err, os.WriteFile(path, []byte(text), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

const (
	archivedAs     = "registry.test/lamp:v1"
	archivedDigest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

// imported archives the files of an image and imports them to a store.
func imported(t *testing.T, texts map[string]string, limits Limits) (*Kept, error) {
	t.Helper()
	var archive bytes.Buffer
	bundle := Bundle()
	if err := bundle.Archive(&archive, mounted(t, texts), limits); err != nil {
		return nil, err
	}
	store := Store{Dir: t.TempDir(), Realm: "node"}
	kept, err := store.Import(t.Context(), client(t, nil), archivedAs, Archive{archivedDigest, bundle, &archive})
	if err != nil && len(names(t, store.Dir)) > 0 {
		t.Errorf("after %v, the store has %v", err, names(t, store.Dir))
	}
	return kept, err
}

func TestArchiveIsImported(t *testing.T) {
	const (
		annotations = "metadata/annotations.yaml"
		other       = "annotations:\n  operators.operatorframework.io.bundle.manifests.v1: deploy/own/\n"
		format      = "annotations:\n  operators.operatorframework.io.bundle.mediatype.v1: helm\n"
	)
	for name, c := range map[string]struct {
		files  map[string]string
		limits Limits
		dir    string
		want   map[string]string
		reason Reason
	}{
		"the usual directory": {
			files: map[string]string{"manifests/a.yaml": "a", "manifests/deep/b.yaml": "b", annotations: "annotations: {}", "etc/passwd": "c"},
			dir:   "/manifests", want: map[string]string{"a.yaml": "a", "deep/b.yaml": "b"},
		},
		"without metadata": {files: map[string]string{"manifests/a.yaml": "a"}, dir: "/manifests", want: map[string]string{"a.yaml": "a"}},
		"another directory": {
			files: map[string]string{"manifests/a.yaml": "a", "deploy/own/b.yaml": "b", annotations: other},
			dir:   "/deploy/own", want: map[string]string{"b.yaml": "b"},
		},
		"a link": {
			files: map[string]string{"manifests/a.yaml": "a", "manifests/b.yaml": "->a.yaml"},
			dir:   "/manifests", want: map[string]string{"a.yaml": "a", "b.yaml": "a"},
		},
		"a link to another directory": {files: map[string]string{"manifests/a.yaml": "->../etc/passwd", "etc/passwd": "c"}, reason: ReasonInvalid},
		"no manifests":                {files: map[string]string{annotations: "annotations: {}"}, reason: ReasonNoTree},
		"the root directory":          {files: map[string]string{annotations: strings.Replace(other, "deploy/own", "", 1)}, reason: ReasonInvalid},
		"another format":              {files: map[string]string{"manifests/a.yaml": "a", annotations: format}, reason: ReasonFormat},
		"annotations that are no YAML": {
			files: map[string]string{"manifests/a.yaml": "a", annotations: "\t"}, reason: ReasonInvalid,
		},
		"too many files": {files: map[string]string{"manifests/a.yaml": "a", "manifests/b.yaml": "b"}, limits: Limits{MaxFiles: 2}, reason: ReasonTooLarge},
		"too many bytes": {files: map[string]string{"manifests/a.yaml": "four"}, limits: Limits{MaxBytes: 3}, reason: ReasonTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			kept, err := imported(t, c.files, c.limits)
			if c.reason != "" || err != nil {
				if ReasonOf(err) != c.reason {
					t.Errorf("error %v, want reason %q", err, c.reason)
				}
				return
			}
			defer kept.Release()
			got := map[string]string{}
			for file := range c.want {
				text, err := os.ReadFile(filepath.Join(kept.Path, file))
				if err != nil {
					t.Error(err)
				}
				got[file] = string(text)
			}
			if diff := cmp.Diff(c.want, got); diff != "" || kept.Dir != c.dir || kept.Digest != archivedDigest {
				t.Errorf("%+v (-want +got):\n%s", kept.Extracted, diff)
			}
		})
	}
}

// TestImportChecksTheArchive imports archives that [Tree.Archive] did not write.
func TestImportChecksTheArchive(t *testing.T) {
	for name, data := range map[string][]byte{
		"a path that leads upwards": layer(t, entry{name: "manifests/../../a", text: "a"}),
		"an absolute path":          layer(t, entry{name: "/manifests/a", text: "a"}),
		"no archive":                []byte("manifests"),
	} {
		store := Store{Dir: t.TempDir()}
		_, err := store.Import(t.Context(), client(t, nil), archivedAs, Archive{archivedDigest, Bundle(), bytes.NewReader(data)})
		if reason := ReasonOf(err); reason != ReasonInvalid && reason != ReasonNoTree || len(names(t, store.Dir)) > 0 {
			t.Errorf("%s: %v, and the store has %v", name, err, names(t, store.Dir))
		}
	}
}
