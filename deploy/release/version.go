package release

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
)

// Version is the version of a release.
type Version struct{ semver.Version }

// ParseVersion parses a version of Semantic Versioning, with or without the letter v.
func ParseVersion(text string) (Version, error) {
	version, err := semver.Parse(strings.TrimPrefix(text, "v"))
	if err != nil {
		return Version{}, fmt.Errorf("version %q: %w; name one such as VERSION=1.2.0 or VERSION=1.2.0-rc.1", text, err)
	}
	if len(version.Build) > 0 {
		return Version{}, fmt.Errorf("version %q: tags of images cannot contain the build metadata +%s", text, strings.Join(version.Build, "."))
	}
	return Version{version}, nil
}

// Tag returns the name of the version in git and in krew's index.
func (v Version) Tag() string { return "v" + v.String() }

// IsPrerelease reports whether the version precedes the one that its first three numbers name.
func (v Version) IsPrerelease() bool { return len(v.Pre) > 0 }
