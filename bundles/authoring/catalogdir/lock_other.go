//go:build !unix

package catalogdir

import (
	"context"
	"fmt"
	"os"
)

// lock opens a directory. It does not lock files on this platform, so processes that change one
// catalog concurrently may lose changes.
func lock(_ context.Context, dir string) (*os.File, error) {
	file, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the catalog: %w", err)
	}
	return file, nil
}
