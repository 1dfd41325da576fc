package bundles

import (
	"strings"

	"github.com/distribution/reference"
)

// checkImage returns an error if the reference of an image is invalid.
func checkImage(image string) error {
	if isPlainImage(image) {
		return nil
	}
	_, err := reference.ParseNormalizedNamed(image)
	return err //nolint:wrapcheck // the caller says what it is about
}

// maxPlainName is a length that is certainly not too long.
const maxPlainName = 200

// isPlainImage reports whether an image has one of the forms that can be recognized without a
// parser: host/path:tag, host/path@sha256:digest, host/path or host/path:tag@sha256:digest in lower
// case, with a dot in the host's name.
func isPlainImage(image string) bool {
	name := image
	if at := strings.IndexByte(name, '@'); at >= 0 {
		if !isPlainDigest(name[at+1:]) {
			return false
		}
		name = name[:at]
	}
	host, path, found := strings.Cut(name, "/")
	if !found || len(name) > maxPlainName {
		return false
	}
	if colon := strings.IndexByte(path, ':'); colon >= 0 {
		if !isTag(path[colon+1:]) {
			return false
		}
		path = path[:colon]
	}
	return isPlainHost(host) && isPlainPath(path)
}

// isPlainDigest reports whether a text is a sha256 digest in lower case.
func isPlainDigest(digest string) bool {
	const hexLength = 64
	encoded, found := strings.CutPrefix(digest, "sha256:")
	if !found || len(encoded) != hexLength {
		return false
	}
	for i := range len(encoded) {
		if c := encoded[i]; !isDigit(c) && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// isTag reports whether a text is a tag.
func isTag(tag string) bool {
	const maxLength = 128
	if tag == "" || len(tag) > maxLength {
		return false
	}
	for i := range len(tag) {
		switch c := tag[i]; {
		case isLowerOrDigit(c), 'A' <= c && c <= 'Z', c == '_':
		case i > 0 && (c == '.' || c == '-'):
		default:
			return false
		}
	}
	return true
}

// isPlainHost reports whether a host name consists of several labels.
func isPlainHost(host string) bool {
	dots := 0
	for i := range len(host) {
		switch c := host[i]; {
		case isLowerOrDigit(c):
		case i == 0 || i == len(host)-1:
			return false
		case c == '-' && host[i-1] != '.' && host[i+1] != '.':
		case c == '.' && host[i-1] != '.' && host[i-1] != '-':
			dots++
		default:
			return false
		}
	}
	return dots > 0
}

// isPlainPath reports whether a path has only single separators between letters and digits.
func isPlainPath(path string) bool {
	for i := range len(path) {
		switch c := path[i]; {
		case isLowerOrDigit(c):
		case c != '/' && c != '.' && c != '_' && c != '-':
			return false
		case i == 0 || i == len(path)-1 || !isLowerOrDigit(path[i-1]):
			return false
		}
	}
	return path != ""
}

func isLowerOrDigit(c byte) bool { return isDigit(c) || ('a' <= c && c <= 'z') }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
