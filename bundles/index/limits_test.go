package index

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOpenSize opens files of invalid sizes. The large one is sparse.
func TestOpenSize(t *testing.T) {
	for name, tc := range map[string]struct {
		size int64
		want string
	}{
		"Small": {headerSize - 1, "fewer than a header"},
		"Large": {maxFileBytes + 1, "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "index")
			if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, tc.size)); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(file); !errors.Is(err, ErrNotIndex) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("a file of %d bytes: got %v", tc.size, err)
			}
		})
	}
}
