package mirror

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/distribution/reference"
)

// Mirrors are the mirrors of registries. The zero value has none.
type Mirrors struct {
	// all is the mirror of the registries that are not in single; empty for none.
	all    string
	single map[string]string
}

var (
	errNoMirror    = errors.New("has no mirror; write MIRROR or REGISTRY=MIRROR")
	errMirrorTwice = errors.New("is the second mirror of a registry; name one")
	errUnmirrored  = errors.New("there is no mirror for its registry; add")
	errCollision   = errors.New("have the same place in the mirror, so one would overwrite the other")
)

// ParseMirrors parses mirrors. MIRROR is for all registries, and REGISTRY=MIRROR for one. A mirror is HOST or HOST/PREFIX.
func ParseMirrors(values []string) (Mirrors, error) {
	found := Mirrors{single: map[string]string{}}
	for _, value := range values {
		registry, at, isSingle := strings.Cut(value, "=")
		if !isSingle {
			registry, at = "", value
		}
		at = strings.TrimSuffix(at, "/")
		if at == "" || isSingle && registry == "" {
			return Mirrors{}, fmt.Errorf("%q %w", value, errNoMirror)
		}
		if _, isKnown := found.single[registry]; isKnown || !isSingle && found.all != "" {
			return Mirrors{}, fmt.Errorf("%q %w", value, errMirrorTwice)
		}
		if isSingle {
			found.single[registry] = at
		} else {
			found.all = at
		}
	}
	return found, nil
}

// IsZero reports whether there is no mirror.
func (m *Mirrors) IsZero() bool { return m.all == "" && len(m.single) == 0 }

// String lists the mirrors.
func (m *Mirrors) String() string {
	all := slices.Sorted(maps.Values(m.single))
	if m.all != "" {
		all = slices.Insert(all, 0, m.all)
	}
	return strings.Join(all, ", ")
}

// places returns the references of images in their mirrors, in the order of the images. It fails if images that may differ
// have the same one.
func (m *Mirrors) places(images []Image) ([]string, error) {
	all := make([]string, len(images))
	// sources are the images by their places.
	sources := map[string]reference.Named{}
	for i := range images {
		named, err := reference.ParseNormalizedNamed(images[i].Reference)
		if err != nil {
			return nil, fmt.Errorf("image %q: %w", images[i].Reference, err)
		}
		registry := reference.Domain(named)
		at := cmp.Or(m.single[registry], m.all)
		if at == "" {
			return nil, fmt.Errorf("image %q: %w %s=MIRROR", images[i].Reference, errUnmirrored, registry)
		}
		// The place has the same path, with the same digest, or with the same tag if there is no digest.
		all[i] = at + "/" + reference.Path(named) + version(reference.TagNameOnly(named))
		other, isTaken := sources[all[i]]
		// The same digest has the same content.
		if _, isDigest := named.(reference.Digested); isTaken && !isDigest && other.Name() != named.Name() {
			return nil, fmt.Errorf("%s and %s %w; add a mirror for one registry, such as %s=%s/%s", reference.TagNameOnly(other),
				images[i].Reference, errCollision, registry, at, strings.ReplaceAll(registry, ":", "-"))
		}
		sources[all[i]] = named
	}
	return all, nil
}
