package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// refName is the annotation with the name of an image in a layout.
const refName = "org.opencontainers.image.ref.name"

// bundlePredicate is the annotation with the type of what a Sigstore bundle states.
const bundlePredicate = "dev.sigstore.bundle.predicateType"

// reference is an image in a registry, by its digest.
type reference struct{ repository, digest string }

// String returns the reference as manifests contain it.
func (r reference) String() string { return r.repository + "@" + r.digest }

// stored is an image, an index or an artifact of a layout.
type stored struct {
	// repository and tag are its name; empty for an artifact that refers to another one, its subject.
	repository, tag string
	digest          v1.Hash
	// members are the digests of the images of an index.
	members []v1.Hash
	subject *v1.Descriptor
	// predicate is the type of what a Sigstore bundle states about its subject; empty for other artifacts.
	predicate string
	content   remote.Taggable
}

var errNotNamed = errors.New("has neither a name nor a subject in the layout")

// readLayout returns what a layout stores, in its order, after checking every digest in it.
func readLayout(dir string) ([]stored, error) {
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the layout %s: %w", dir, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("reading the layout %s: %w", dir, err)
	}
	var all []stored
	for _, d := range manifest.Manifests {
		one, err := readStored(index, d)
		if err != nil {
			return nil, fmt.Errorf("reading %s of the layout %s: %w", d.Digest, dir, err)
		}
		all = append(all, one)
	}
	return all, nil
}

func readStored(index v1.ImageIndex, d v1.Descriptor) (stored, error) {
	one := stored{digest: d.Digest}
	one.repository, one.tag, _ = strings.Cut(d.Annotations[refName], ":")
	if d.MediaType.IsIndex() {
		child, err := index.ImageIndex(d.Digest)
		if err != nil {
			return stored{}, err //nolint:wrapcheck // wrapped by the caller
		}
		manifest, err := child.IndexManifest()
		if err != nil {
			return stored{}, err //nolint:wrapcheck // wrapped by the caller
		}
		for _, member := range manifest.Manifests {
			one.members = append(one.members, member.Digest)
		}
		one.content = child
		return one, validate.Index(child)
	}
	image, err := index.Image(d.Digest)
	if err != nil {
		return stored{}, err //nolint:wrapcheck // wrapped by the caller
	}
	manifest, err := image.Manifest()
	if err != nil {
		return stored{}, err //nolint:wrapcheck // wrapped by the caller
	}
	one.subject, one.predicate, one.content = manifest.Subject, manifest.Annotations[bundlePredicate], image
	return one, validateArtifact(image, manifest)
}

// validateArtifact checks the digest of an artifact's content, which is no image with a file system.
func validateArtifact(image v1.Image, manifest *v1.Manifest) error {
	for _, d := range manifest.Layers {
		content, err := image.LayerByDigest(d.Digest)
		if err != nil {
			return err //nolint:wrapcheck // wrapped by the caller
		}
		body, err := content.Compressed()
		if err != nil {
			return err //nolint:wrapcheck // wrapped by the caller
		}
		digest, _, err := v1.SHA256(body)
		if err := errors.Join(err, body.Close()); err != nil {
			return err
		}
		if digest != d.Digest {
			return fmt.Errorf("the content %s has the digest %s", d.Digest, digest)
		}
	}
	return nil
}

// places returns for each digest the repository to which it belongs: that of its name, of its index, or of its subject.
func places(all []stored) (map[v1.Hash]string, error) {
	repositories := map[v1.Hash]string{}
	for _, one := range all {
		if one.repository == "" {
			continue
		}
		for _, digest := range append(one.members, one.digest) {
			repositories[digest] = one.repository
		}
	}
	for _, one := range all {
		if one.repository != "" {
			continue
		}
		if one.subject == nil || repositories[one.subject.Digest] == "" {
			return nil, fmt.Errorf("%s %w", one.digest, errNotNamed)
		}
		repositories[one.digest] = repositories[one.subject.Digest]
	}
	return repositories, nil
}

// push writes what layouts store to a registry, below a host and a prefix.
func push(ctx context.Context, all []stored, host string, options ...name.Option) error {
	repositories, err := places(all)
	if err != nil {
		return err
	}
	for _, one := range all {
		repository, err := name.NewRepository(host+"/"+repositories[one.digest], options...)
		if err != nil {
			return fmt.Errorf("pushing to %s: %w", host, err)
		}
		var target name.Reference = repository.Digest(one.digest.String())
		if one.tag != "" {
			target = repository.Tag(one.tag)
		}
		if err := remote.Push(target, one.content, remote.WithContext(ctx), remote.WithAuthFromKeychain(keychain)); err != nil {
			return fmt.Errorf("pushing %s: %w", target, err)
		}
	}
	return nil
}

// named returns the references of what has a name in layouts, by the name without its tag, below a host and a prefix.
func named(all []stored, host string) map[string]reference {
	references := map[string]reference{}
	for _, one := range all {
		if one.repository != "" {
			references[one.repository] = reference{host + "/" + one.repository, one.digest.String()}
		}
	}
	return references
}

// addresses returns references as strings, sorted.
func addresses(references map[string]reference) []string {
	var all []string
	for _, one := range references {
		all = append(all, one.String())
	}
	slices.Sort(all)
	return all
}

// decode reads JSON into a new value.
func decode[T any](text []byte) (T, error) {
	var value T
	err := json.Unmarshal(text, &value)
	return value, err
}
