package extension

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The limits that the contract states.
const (
	// maxName is the largest name in a request, in bytes.
	maxName = 1024
	// maxListed is the largest number of elements of a list in a request, and of most lists in an
	// element of an answer.
	maxListed = 100
	// maxRange is the largest version range, in bytes.
	maxRange = 256
	// maxQuery and maxWords bound the text of a search, in bytes and in words.
	maxQuery = 256
	maxWords = 16
	// maxDescription is the largest description of a package, in bytes.
	maxDescription = 4096
	// maxProblemText is the largest text of a problem, in bytes.
	maxProblemText = 1000
	// maxPageBytes is the size at which a page ends early.
	maxPageBytes = 2 << 20
	// maxGraphBytes is the largest upgrade graph of several channels.
	maxGraphBytes = 3 << 20
)

// pageLimits are the default and the largest number of elements of a page.
type pageLimits struct {
	standard, most int
}

func bundlePages() pageLimits      { return pageLimits{standard: 500, most: 1000} }
func packagePages() pageLimits     { return pageLimits{standard: 50, most: 200} }
func deprecationPages() pageLimits { return pageLimits{standard: 500, most: 1000} }

// of returns the number of elements of a page for the size that a client requests.
func (l pageLimits) of(size int32) (int, error) {
	switch {
	case size < 0:
		return 0, invalid("page_size", "must not be negative, found %d: give 1 to %d, or 0 for %d", size, l.most, l.standard)
	case size == 0:
		return l.standard, nil
	default:
		return min(int(size), l.most), nil
	}
}

// remainingSpace is the space left in an answer under construction.
type remainingSpace struct {
	elements, bytes int
}

// newRemainingSpace returns the space of an empty page.
func newRemainingSpace(elements int) remainingSpace {
	return remainingSpace{elements: elements, bytes: maxPageBytes}
}

// take uses up space for an element and reports whether there was enough. The first element of a
// page always fits; otherwise no client could get it.
func (r *remainingSpace) take(size int) bool {
	first := r.bytes == maxPageBytes
	if r.elements == 0 || size > r.bytes && !first {
		return false
	}
	r.elements--
	r.bytes -= size
	return true
}

// invalid returns the status for an invalid field of a request.
func invalid(field, format string, args ...any) error {
	return status.Error(codes.InvalidArgument, field+" "+fmt.Sprintf(format, args...))
}

// checkName returns an error for a name that no catalog can have.
func checkName(field, name string) error {
	if len(name) > maxName {
		return invalid(field, "must have at most %d bytes, found %d: give a name from the catalog", maxName, len(name))
	}
	return nil
}

// checkNames returns an error for a list that is too long or has a name that no catalog can have.
func checkNames(field string, names []string) error {
	if len(names) > maxListed {
		return invalid(field, "must have at most %d elements, found %d: ask several times", maxListed, len(names))
	}
	for i, name := range names {
		if name == "" {
			return invalid(fmt.Sprintf("%s[%d]", field, i), "must not be empty: give a name, or leave the element out")
		}
		if err := checkName(fmt.Sprintf("%s[%d]", field, i), name); err != nil {
			return err
		}
	}
	return nil
}

// clip returns at most so many bytes of a text and does not split characters. The result is valid
// UTF-8, as protobuf requires.
func clip(text string, most int) string {
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// clipList returns the first elements of a list, up to maxListed.
func clipList[T any](list []T) []T { return list[:min(len(list), maxListed)] }

// count returns a number for an answer.
func count(n int) int32 { return int32(min(max(0, n), math.MaxInt32)) }
