// Package testrelease builds releases of this checkout for tests.
package testrelease

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/chandlery/chandlery/deploy/release"
	"github.com/chandlery/chandlery/test/buildcache"
)

const (
	// Version is the version of the releases.
	Version = "1.2.3-test"
	// Commit is the commit in their provenance.
	Commit = "0123456789abcdef0123456789abcdef01234567"
)

// Created returns the time of the commit, and of all files.
func Created() time.Time { return time.Unix(1_700_000_000, 0) }

var tools = sync.OnceValues(func() (release.Tools, error) {
	root, err := buildcache.SourceDir(".")
	if err != nil {
		return release.Tools{}, err
	}
	ctx := context.Background()          //nolint:forbidigo // They are built once for all tests, and outlive the first.
	return release.BuildTools(ctx, root) //nolint:wrapcheck // names the tool
})

// Tools returns the programs that make and verify releases.
func Tools() (release.Tools, error) { return tools() }

// Build builds a release into a folder. Its images are for the registry with the given host, with a prefix or without.
// The release is for this machine alone, because other platforms differ only in names.
func Build(ctx context.Context, dir, images string) error {
	programs, err := Tools()
	if err != nil {
		return err
	}
	root, err := buildcache.SourceDir(".")
	if err != nil {
		return fmt.Errorf("building a release: %w", err)
	}
	version, err := release.ParseVersion(Version)
	if err != nil {
		return err //nolint:wrapcheck // names the version
	}
	return release.Build(ctx, dir, release.Options{ //nolint:wrapcheck // says what it does
		Source:  release.Source{Dir: root, Commit: Commit, Created: Created(), Go: runtime.Version()},
		Version: version, Images: images, Downloads: "https://example.com/v" + Version, Builder: "https://example.com/test",
		Platforms:       []v1.Platform{{OS: "linux", Architecture: runtime.GOARCH}},
		PluginPlatforms: []v1.Platform{{OS: "linux", Architecture: runtime.GOARCH}},
		Fast:            true,
	}, programs, os.Stderr)
}
