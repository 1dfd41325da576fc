package image_test

import (
	"testing"

	"github.com/chandlery/chandlery/bundles/image"
)

// TestParseReference checks that no spelling of a name evades rules for the name.
func TestParseReference(t *testing.T) {
	for text, valid := range map[string]bool{
		"quay.io/acme/x": true, "quay.io/acme/x:v1": true, "localhost:5000/x": true, "nginx": true, "127.0.0.1:5000/a/b": true, "[::1]:5000/x": true,
		"quay.io/acme/x@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": true,
		"quay.io//acme/x": false, "quay.io/b/../acme/x": false, "quay.io/./acme/x": false, "quay.io./acme/x": false, "quay.io:0443/acme/x": false,
		"https://quay.io/acme/x": false, "quay.io/acme/": false, "": false, "quay.io/Acme/x": false,
	} {
		if ref, err := image.ParseReference(text); (err == nil) != valid {
			t.Errorf("%q: got %v, %v", text, ref, err)
		}
	}
}
