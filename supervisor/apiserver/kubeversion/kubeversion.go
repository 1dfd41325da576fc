// Package kubeversion parses the versions that Kubernetes, kubelets and container runtimes report.
package kubeversion

import (
	"errors"
	"fmt"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/chandlery/chandlery/bundles"
)

var errNoVersion = errors.New("it does not begin with a version")

// Parse parses the version at the beginning of a text, such as v1.36.3-gke.100. It omits the build that vendors
// append, which would count as a pre-release.
func Parse(text string) (semver.Version, error) {
	numbers := strings.TrimPrefix(text, "v")
	if end := strings.IndexFunc(numbers, func(r rune) bool { return r != '.' && (r < '0' || r > '9') }); end >= 0 {
		numbers = numbers[:end]
	}
	numbers = strings.Trim(numbers, ".")
	if numbers == "" {
		return semver.Version{}, fmt.Errorf("reading version %s: %w", bundles.Quote(text), errNoVersion)
	}
	if parts := strings.SplitN(numbers, ".", 4); len(parts) > 3 {
		numbers = strings.Join(parts[:3], ".")
	}
	version, err := semver.ParseTolerant(numbers)
	if err != nil {
		return semver.Version{}, fmt.Errorf("reading version %s: %w", bundles.Quote(text), err)
	}
	return version, nil
}

// AtLeast reports whether a version is at least a minor version.
func AtLeast(v semver.Version, major, minor uint64) bool {
	return v.GE(semver.Version{Major: major, Minor: minor})
}
