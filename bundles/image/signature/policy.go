package signature

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/chandlery/chandlery/bundles/image/sources"
)

// Use is what an image is used for.
type Use string

// The uses of images.
const (
	Catalogs Use = "catalogs"
	Bundles  Use = "bundles"
)

// Requirement is what a rule requires of its images.
type Requirement string

// The requirements of rules.
const (
	// RequireNone allows all images.
	RequireNone Requirement = "none"
	// RequireSignature allows images with an accepted signature.
	RequireSignature Requirement = "signature"
	// RequireNode leaves the decision to the policies of nodes: only they may pull the image.
	RequireNode Requirement = "node"
	// RequireReject allows no image.
	RequireReject Requirement = "reject"
)

// Policy has the rules of one origin. It is immutable.
type Policy struct{ rules []*Rule }

// Rule is the requirement for the images with a prefix.
type Rule struct {
	// Prefix is the start of a repository up to a "/"; empty for all images.
	Prefix string
	// Origin is the file or the key with the rule, and its line.
	Origin string
	// Requirement is what the rule requires.
	Requirement Requirement

	uses       []Use
	keys       []*key
	identities []identity
	// log is true if a signature must be in the transparency log.
	log  bool
	root *root.TrustedRoot
	// id identifies what the rule accepts.
	id string
}

// identity is who may have signed an image without a key.
type identity struct {
	text    string
	matcher verify.CertificateIdentity
}

// ID identifies what the rule accepts: it changes with keys, identities and the trusted root.
func (r *Rule) ID() string { return r.id }

// String names the rule for messages.
func (r *Rule) String() string {
	if r.Prefix == "" {
		return fmt.Sprintf("the rule for all images (%s)", r.Origin)
	}
	return fmt.Sprintf("the rule for prefix %s (%s)", r.Prefix, r.Origin)
}

// Accepts describes the signers that the rule accepts.
func (r *Rule) Accepts() string {
	var all []string
	for _, k := range r.keys {
		all = append(all, fmt.Sprintf("key %s (SHA-256 %s)", k.name, k.sum))
	}
	for i := range r.identities {
		all = append(all, r.identities[i].text)
	}
	return strings.Join(all, ", ")
}

// For returns the rule with the longest prefix for an image; nil if there is none. The name counts that the catalog has,
// not that of a mirror.
func (p *Policy) For(ref name.Reference, use Use) *Rule {
	if p == nil {
		return nil
	}
	repository := canonical(ref)
	var found *Rule
	for _, r := range p.rules {
		if slices.Contains(r.uses, use) && r.covers(repository) && (found == nil || len(r.Prefix) > len(found.Prefix)) {
			found = r
		}
	}
	return found
}

// canonical returns the repository of an image as references in catalogs have it.
func canonical(ref name.Reference) string {
	return canonicalHost(ref.Context().RegistryStr()) + "/" + ref.Context().RepositoryStr()
}

// canonicalHost returns a registry as references in catalogs have it, without the port that it has anyway.
func canonicalHost(host string) string {
	return strings.TrimSuffix(sources.CanonicalHost(host), ":443")
}

// covers reports whether a repository has the prefix of the rule.
func (r *Rule) covers(repository string) bool {
	rest, ok := strings.CutPrefix(repository, r.Prefix)
	return ok && (r.Prefix == "" || rest == "" || rest[0] == '/')
}

// identify sets what identifies the rule. trusted is the checksum of the trusted root; empty if it has none.
func (r *Rule) identify(trusted string) {
	hash := sha256.New()
	fmt.Fprintf(hash, "%s %t\n", r.Requirement, r.log)
	for _, k := range r.keys {
		fmt.Fprintf(hash, "key %s\n", k.sum)
	}
	for i := range r.identities {
		fmt.Fprintf(hash, "identity %q\n", r.identities[i].text)
	}
	fmt.Fprintf(hash, "root %s\n", trusted)
	r.id = hex.EncodeToString(hash.Sum(nil))
}
