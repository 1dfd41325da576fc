package image

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/distribution/reference"
	"github.com/google/go-containerregistry/pkg/name"
)

var errPort = errors.New("its port begins with 0; write it without")

// ParseReference parses the reference of an image. It refuses names that nodes refuse, such as those with an empty element
// or "..", and ports that begin with 0: registries may find another image there than the rules for the name expect.
func ParseReference(text string, options ...name.Option) (name.Reference, error) {
	if _, err := reference.ParseNormalizedNamed(text); err != nil {
		return nil, fmt.Errorf("reading the reference %q: %w", text, err)
	}
	ref, err := name.ParseReference(text, options...)
	if err != nil {
		return nil, fmt.Errorf("reading the reference %q: %w", text, err)
	}
	if _, port, err := net.SplitHostPort(ref.Context().RegistryStr()); err == nil && strings.HasPrefix(port, "0") {
		return nil, fmt.Errorf("reading the reference %q: %w", text, errPort)
	}
	return ref, nil
}
