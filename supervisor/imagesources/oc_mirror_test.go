package imagesources

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/bundles/image/sources"
	"github.com/chandlery/chandlery/supervisor/discovery"
	"github.com/chandlery/chandlery/test/openshiftobjects"
)

// TestMirrorsOfOCMirror reads objects as oc-mirror writes them for a cluster. Each image in its mapping.txt is first asked of
// the place that oc-mirror has copied it to.
//
// The images, their copies and the mirrors in testdata/oc-mirror are those in oc-mirror's own tests TestGenerateIDMS and
// TestGenerateITMS; only the name of the registry myregistry is another:
// https://github.com/openshift/oc-mirror/blob/0e1ad418ea0f9f58b1e86e59f8529e4238b1b3d4/internal/pkg/clusterresources/clusterresources_test.go.
// The form of the files is that of oc-mirror 4.20, with names and annotations of a real run.
func TestMirrorsOfOCMirror(t *testing.T) {
	folders, err := filepath.Glob("testdata/oc-mirror/*")
	if err != nil || len(folders) != 3 {
		t.Fatalf("%d recordings, %v, want 3", len(folders), err)
	}
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			c := &openshiftobjects.Reader{Specs: openshiftobjects.Specs{}}
			for _, file := range []string{"idms-oc-mirror.yaml", "itms-oc-mirror.yaml"} {
				addObjects(t, c.Specs, filepath.Join(folder, file))
			}
			s := New(sources.Paths{}, nil)
			s.Found(t.Context(), c, openshiftobjects.Checked(discovery.Installed))
			if problem := s.Problem(); problem != "" {
				t.Fatal(problem)
			}
			mapping, err := os.ReadFile(filepath.Join(folder, "mapping.txt"))
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(mapping)) {
				from, to, found := strings.Cut(strings.TrimSpace(line), "=")
				if !found {
					t.Fatalf("%q is no mapping", line)
				}
				image := strings.TrimPrefix(from, "docker://")
				want := []string{copied(image, strings.TrimPrefix(to, "docker://")), withoutTag(image)}
				if diff := cmp.Diff(want, places(t, s, image)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", image, diff)
				}
			}
		})
	}
}

// addObjects adds the objects in a file to specs.
func addObjects(t *testing.T, specs openshiftobjects.Specs, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(strings.TrimPrefix(string(text), "---\n"), "---\n") {
		var object struct {
			Kind     string `json:"kind"`
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
			Spec any `json:"spec"`
		}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		if specs[object.Kind] == nil {
			specs[object.Kind] = map[string]any{}
		}
		specs[object.Kind][object.Metadata.Name] = object.Spec
	}
}

// copied returns where an image is asked. oc-mirror copies an image with a digest to a tag in some cases. Nodes ask for the
// digest in the same repository.
func copied(image, to string) string {
	_, digest, byDigest := strings.Cut(image, "@")
	if !byDigest {
		return to
	}
	repository, _, _ := strings.Cut(to, "@")
	return withoutTag(repository + "@" + digest)
}

// withoutTag returns a reference with a digest without its tag, and others as they are.
func withoutTag(image string) string {
	repository, digest, byDigest := strings.Cut(image, "@")
	if !byDigest {
		return image
	}
	if colon := strings.LastIndex(repository, ":"); colon > strings.LastIndex(repository, "/") {
		repository = repository[:colon]
	}
	return repository + "@" + digest
}
