// Package helm builds the pinned helm for tests.
package helm

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/chandlery/chandlery/internal/gotool"
	"github.com/chandlery/chandlery/test/buildcache"
)

// Program returns the path of the program. It is built once.
func Program() (string, error) { return program() }

var program = sync.OnceValues(func() (string, error) {
	dir, err := buildcache.SourceDir("tools/helm")
	if err != nil {
		return "", fmt.Errorf("building helm: %w", err)
	}
	ctx := context.Background() //nolint:forbidigo // It is built once for all tests, and outlives the first.
	return gotool.Path(ctx, filepath.Join(dir, "go.mod"), "helm")
})
