package bundles

import (
	"slices"
	"strings"
	"testing"

	"github.com/distribution/reference"
)

// images are references of all kinds, and texts that resemble one.
var images = []string{
	"", "a", "a/b", "example.org/a", "example.org/a/b-c_d.e:v1.0", "example.org:5000/a", "localhost/a", "example.org/a__b/c--d",
	"example.org/a@sha256:" + strings.Repeat("a", 64), "example.org/a:t@sha256:" + strings.Repeat("0", 64),
	"example.org/a@sha256:" + strings.Repeat("a", 63), "example.org/a@sha256:" + strings.Repeat("A", 64), "example.org/a@sha512:" + strings.Repeat("a", 64),
	"example.org/a@", "example.org/a:", "example.org/a:.x", "example.org/a:-x", "example.org/a:_X.y-z", "example.org/a:" + strings.Repeat("t", 129),
	"Example.org/a", "example.org/A", "example..org/a", ".example.org/a", "example.org./a", "ex-.org/a", "-ex.org/a", "ex.-org/a", "example.org//a", "example.org/a/",
	"example.org/.a", "example.org/a.", "example.org/a._b", "example.org/a b", "oci://example.org/a", "example.org/é", strings.Repeat("a", 64),
	"docker.io/a", "index.docker.io/a", "docker.io/library/a:t", "1.2.3.4/a", "[::1]:5000/a", "example.org/" + strings.Repeat("a", 255), "example.org/" + strings.Repeat("a", 256),
	"example.org/a:t:u", "example.org/a@b@sha256:" + strings.Repeat("a", 64), "example.org/a@sha256:" + strings.Repeat("a", 64) + ":t",
}

func checkPlainImage(t *testing.T, image string) {
	t.Helper()
	_, err := reference.ParseNormalizedNamed(image)
	if isPlainImage(image) && err != nil {
		t.Errorf("%q is accepted, the parser says %v", image, err)
	}
}

func TestIsPlainImage(t *testing.T) {
	t.Parallel()
	var plain []string
	for _, image := range images {
		checkPlainImage(t, image)
		if isPlainImage(image) {
			plain = append(plain, image)
		}
	}
	for _, want := range []string{"example.org/a", "example.org/a/b-c_d.e:v1.0", images[8], images[9]} {
		if !slices.Contains(plain, want) {
			t.Errorf("%q is not taken for plain", want)
		}
	}
}

// FuzzIsPlainImage checks that isPlainImage accepts nothing that the parser refuses.
func FuzzIsPlainImage(f *testing.F) {
	for _, image := range images {
		f.Add(image)
	}
	f.Fuzz(checkPlainImage)
}
