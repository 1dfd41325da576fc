// Package digest resolves the tags of catalog images to digests, and polls registries for new digests.
package digest

import (
	"fmt"
	"strings"
	"time"

	refs "github.com/distribution/reference"

	"github.com/chandlery/chandlery/bundles/image"
)

// Image is a catalog image with its resolved digest.
type Image struct {
	// Spec is the value of spec.image that was resolved.
	Spec string
	// Digest is the resolved digest; empty if the registry did not return one, or if a policy of
	// nodes covers the tag. The image then runs by its tag.
	Digest string
	// CatalogDir is the catalog directory in the label of the image.
	CatalogDir string
}

// Reference returns the image reference by digest if it is known, otherwise by tag.
func (i Image) Reference() string {
	if i.Digest == "" || image.IsDigest(i.Spec) {
		return i.Spec
	}
	return Repository(i.Spec) + "@" + i.Digest
}

// IsFixed reports whether the reference always refers to the same content.
func (i Image) IsFixed() bool { return i.Digest != "" || image.IsDigest(i.Spec) }

// Repository returns a reference without its tag.
func Repository(reference string) string {
	colon := strings.LastIndexByte(reference, ':')
	if colon > strings.LastIndexByte(reference, '/') {
		return reference[:colon]
	}
	return reference
}

// checkSpec returns an error if text is not a valid image reference.
func checkSpec(text string, running *Image) error {
	_, err := refs.ParseDockerRef(text)
	switch {
	case err == nil:
		return nil
	case running == nil:
		return fmt.Errorf("spec.image %q names no image: %w; write it as repository:tag or repository@sha256:<64 hex digits>", text, err)
	default:
		return fmt.Errorf("spec.image %q names no image: %w; image %s still runs; write it as repository:tag or repository@sha256:<64 hex digits>",
			text, err, running.Reference())
	}
}

// result is the result of the last query of a registry.
type result struct {
	// image is the resolved image. It has no digest if err is set or it must run by its tag.
	image Image
	// err is the error of the query.
	err error
	// time is when the query started.
	time time.Time
	// generation is the generation of the CatalogSource at that time, and policy the version of the policy for signatures.
	generation int64
	policy     string
	// guarded is true if rules for signatures apply: nothing may run that has not met them.
	guarded bool
	// verified identifies the digest and the rules that it meets; empty without rules.
	verified string
}

// refused reports whether the registry has no such image, or denies access to it. For other errors,
// nodes may still be able to pull the image.
func (r *result) refused() bool {
	if image.IsAway(r.err) {
		return false
	}
	switch image.ReasonOf(r.err) {
	case image.ReasonNotFound, image.ReasonUnauthorized, image.ReasonReference:
		return true
	default:
		return false
	}
}

// consequence describes what runs after a failed query, and the remedy.
func (r *result) consequence(chosen Image, running *Image) string {
	remedy := r.remedy()
	switch {
	case running != nil && chosen == *running && chosen.IsFixed():
		return "image " + chosen.Reference() + " still runs; " + remedy
	case r.refused():
		return remedy
	case r.guarded && running != nil && chosen == *running:
		return "image " + chosen.Reference() + " still runs by its tag; " + remedy
	case r.guarded:
		return "it does not run before its signature is accepted; " + remedy
	default:
		return "the image is run by its tag; " + remedy
	}
}

// remedy returns what to do about a failed query.
func (r *result) remedy() string {
	switch image.ReasonOf(r.err) {
	case image.ReasonPolicyRefused:
		return "sign the image, or correct the rule for its signatures"
	case image.ReasonPolicyNotSupported:
		return "write a rule with keys or identities for the image"
	case image.ReasonBlocked, image.ReasonConfiguration:
		return "correct the settings for image registries of the supervisor"
	case image.ReasonPlainHTTP:
		return "serve the registry with TLS, or start the supervisor with --image-plain-http"
	case image.ReasonUntrusted:
		return "add the CA of the registry to the supervisor's settings for image registries: key HOST or ca-bundle.crt, or --image-ca"
	default:
		if r.refused() {
			return "check that the registry has the image, and check spec.secrets" + r.nodesOnly()
		}
		return "check that the supervisor can reach the registry, and check spec.secrets"
	}
}

// nodesOnly returns how a catalog runs whose image only nodes can pull, for example because admission rewrites the images and
// pull secrets of pods. It is empty if spec.image has a digest already.
func (r *result) nodesOnly() string {
	if image.IsDigest(r.image.Spec) {
		return ""
	}
	return "; if only nodes have access to it, write its digest in spec.image"
}

// choose returns the image to run. It depends on the running image and on the result of the query,
// if there was one since the start of the process. ok is false if nothing can run before the
// registry answers.
func choose(wanted string, running *Image, last *result) (chosen Image, ok bool) {
	if last != nil && last.image.Spec != wanted {
		last = nil
	}
	if last != nil && last.err == nil {
		return last.image, true
	}
	if running == nil {
		return Image{Spec: wanted}, last != nil && !last.guarded
	}
	switch {
	case running.Spec == wanted:
		return *running, true
	case last == nil:
		// The registry has not answered yet.
		return *running, true
	case last.refused(), last.guarded:
		// The running content is better than an image that is not available, or that must not run.
		return *running, true
	default:
		return Image{Spec: wanted}, true
	}
}
