//go:build !unix

package catalogdir

import (
	"context"
	"fmt"
	"os"
)

// lock opens a directory. Files cannot be locked here in the same way, so that processes that
// change one catalog at a time may lose changes.
func lock(_ context.Context, dir string) (*os.File, error) {
	file, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the catalog: %w", err)
	}
	return file, nil
}
