package realcatalogs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chandlery/chandlery/test/sampling"
)

// ShareVariable is the environment variable with the share of packages in a sample: one in so many.
// Without it, a sample is the whole catalog.
const ShareVariable = "CATALOG_SHARE"

// Share returns $CATALOG_SHARE, 1 without it.
func Share(tb testing.TB) int {
	tb.Helper()
	return sampling.Number(tb, ShareVariable, 1, 1)
}

// Sample returns a directory with a fixed part of the packages of a catalog, and their number. It
// skips and fails as [Dir] does.
func Sample(tb testing.TB, name string) (dir string, packages int) {
	tb.Helper()
	share := Share(tb)
	whole := Dir(tb, name)
	entries, err := os.ReadDir(whole)
	if err != nil {
		tb.Fatal(err)
	}
	if share == 1 {
		return whole, len(entries)
	}
	dir = tb.TempDir()
	for i := share / 2; i < len(entries); i += share {
		from, to := filepath.Join(whole, entries[i].Name()), filepath.Join(dir, entries[i].Name())
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			tb.Fatal(err)
		}
		packages++
	}
	return dir, packages
}
