package catalogsource

import (
	"fmt"
	"strings"
	"time"

	refs "github.com/distribution/reference"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/supervisor/api"
)

// Pin is what is run of an image.
type Pin struct {
	// Image is spec.image as it was asked for.
	Image string
	// Digest is what it stood for; empty when nobody could tell, and the tag is
	// run as it is.
	Digest string
	// CatalogDir is where the label of the image says that its catalog is.
	CatalogDir string
}

// Reference names the image so that it always stands for the same, if that is
// known.
func (p Pin) Reference() string {
	if p.Digest == "" || image.IsDigest(p.Image) {
		return p.Image
	}
	return repository(p.Image) + "@" + p.Digest
}

// fixed says whether the reference always stands for the same content.
func (p Pin) fixed() bool { return p.Digest != "" || image.IsDigest(p.Image) }

// repository is a reference without its tag.
func repository(reference string) string {
	colon := strings.LastIndexByte(reference, ':')
	if colon > strings.LastIndexByte(reference, '/') {
		return reference[:colon]
	}
	return reference
}

// checkImage says what is wrong with an image that no node could pull.
func checkImage(text string, running *Pin) error {
	_, err := refs.ParseDockerRef(text)
	switch {
	case err == nil:
		return nil
	case running == nil:
		return fmt.Errorf("spec.image %q names no image: %w; write it as repository:tag or repository@sha256:<64 hex digits>", text, err)
	default:
		return fmt.Errorf("spec.image %q names no image: %w; what runs, %s, runs on; write it as repository:tag or repository@sha256:<64 hex digits>",
			text, err, running.Reference())
	}
}

// Answer is what a registry said of an image when it was last asked.
type Answer struct {
	// Pin is the answer; without a digest when Err says why.
	Pin Pin
	// Err is why there is no answer.
	Err error
	// Time is when it was asked.
	Time time.Time
	// Generation is that of the CatalogSource for which it was asked.
	Generation int64
}

// refused says whether the registry knows the image not to be there, or not to be
// there for us; elsewise it may only be the supervisor that cannot ask.
func (a Answer) refused() bool {
	switch image.ReasonOf(a.Err) {
	case image.ReasonNotFound, image.ReasonUnauthorized, image.ReasonReference:
		return true
	default:
		return false
	}
}

// consequence says what becomes of a question without an answer, and what to do.
func (a Answer) consequence(pin Pin, running *Pin) string {
	remedy := "see that the registry has the image, and spec.secrets"
	switch reason := image.ReasonOf(a.Err); {
	case reason == image.ReasonPlainHTTP:
		remedy = "serve the registry with TLS, or start the supervisor with --image-plain-http"
	case reason == image.ReasonUntrusted:
		remedy = "have the registry show a certificate that the supervisor trusts, or start the supervisor with --image-skip-tls-verify"
	case !a.refused():
		remedy = "see that the supervisor reaches the registry, and spec.secrets"
	}
	switch {
	case running != nil && pin == *running && pin.fixed():
		return "what runs, " + pin.Reference() + ", runs on; " + remedy
	case a.refused():
		return remedy
	default:
		return "the image is run by its tag; " + remedy
	}
}

// choose decides what is run of an image: by what runs now, and by what the
// registry said of the image, if it was asked since this process started. ok is
// false when nothing can be run before it is asked.
func choose(wanted string, running *Pin, answer *Answer) (pin Pin, ok bool) {
	if answer != nil && answer.Pin.Image != wanted {
		answer = nil
	}
	if answer != nil && answer.Err == nil {
		return answer.Pin, true
	}
	if running == nil {
		return Pin{Image: wanted}, answer != nil
	}
	switch {
	case running.Image == wanted && running.fixed():
		return *running, true
	case answer == nil:
		// Until the registry has answered.
		return *running, true
	case answer.refused():
		// What runs is better than what is known not to be there.
		return *running, true
	default:
		return Pin{Image: wanted}, true
	}
}

// runningPin reads off a Deployment what it runs; nil when that is no image of a
// catalog.
func runningPin(deployment *appsv1.Deployment) *Pin {
	if deployment == nil || deployment.Annotations[api.AnnotationImage] == "" {
		return nil
	}
	return &Pin{
		Image:      deployment.Annotations[api.AnnotationImage],
		Digest:     deployment.Annotations[api.AnnotationImageDigest],
		CatalogDir: deployment.Annotations[api.AnnotationCatalogDir],
	}
}
