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

// Pin is an image with its resolved digest.
type Pin struct {
	// Image is the value of spec.image that was resolved.
	Image string
	// Digest is the resolved digest; empty if the registry did not return one. The image then runs
	// by its tag.
	Digest string
	// CatalogDir is the catalog directory in the label of the image.
	CatalogDir string
}

// Reference returns the image reference by digest if it is known, otherwise by tag.
func (p Pin) Reference() string {
	if p.Digest == "" || image.IsDigest(p.Image) {
		return p.Image
	}
	return repository(p.Image) + "@" + p.Digest
}

// fixed reports whether the reference always refers to the same content.
func (p Pin) fixed() bool { return p.Digest != "" || image.IsDigest(p.Image) }

// repository returns a reference without its tag.
func repository(reference string) string {
	colon := strings.LastIndexByte(reference, ':')
	if colon > strings.LastIndexByte(reference, '/') {
		return reference[:colon]
	}
	return reference
}

// checkImage returns an error if text is not a valid image reference.
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

// Answer is the result of the last request to a registry.
type Answer struct {
	// Pin is the resolved image. It has no digest if Err is set.
	Pin Pin
	// Err is the error of the request.
	Err error
	// Time is when the request started.
	Time time.Time
	// Generation is the generation of the CatalogSource at that time.
	Generation int64
}

// refused reports whether the registry has no such image, or denies access to it. For other errors,
// nodes may still be able to pull the image.
func (a Answer) refused() bool {
	switch image.ReasonOf(a.Err) {
	case image.ReasonNotFound, image.ReasonUnauthorized, image.ReasonReference:
		return true
	default:
		return false
	}
}

// consequence describes what runs after a failed request, and the remedy.
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

// choose returns the image reference to run. It depends on what runs now and on the answer of the
// registry, if there is one since the start of the process. ok is false if nothing can run before
// the registry answers.
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
		// The registry has not answered yet.
		return *running, true
	case answer.refused():
		// The running content is better than an image that is not available.
		return *running, true
	default:
		return Pin{Image: wanted}, true
	}
}

// runningPin returns the image reference that a Deployment runs; nil if it does not run a catalog
// image.
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
