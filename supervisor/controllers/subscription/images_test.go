package subscription

import (
	"errors"
	"testing"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/supervisor/bundleimage"
)

// TestRemedyOfImage checks what to do about an image that admission would let a pod pull with other names and credentials.
func TestRemedyOfImage(t *testing.T) {
	cause := errors.New("401 Unauthorized")
	const remedy, retries = "name a Secret with credentials in spec.secrets of the CatalogSource", "; the supervisor retries"
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"NodesTried": {cause, remedy + retries},
		"Excluded":   {&bundleimage.ExcludedError{Err: cause, Setting: "--image-pull"}, remedy + ", or set --image-pull to auto, so that a node pulls the image" + retries},
	} {
		failed := missingImage{state: bundleimage.State{Err: &image.Error{Reference: "source.test/lamp:v1", Reason: image.ReasonUnauthorized, Err: test.err}}}
		if got := failed.remedy(); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
