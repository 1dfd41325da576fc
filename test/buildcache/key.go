package buildcache

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// keyLength is the number of hexadecimal digits in the name of a directory. It is long enough to
// avoid collisions on one machine and short enough to read.
const keyLength = 16

// key returns a digest of everything that determines the binaries: the requirements and their
// checksums, the module's own Go files, the flags, the platform and the version of Go. It does not
// cover folders outside Dir in replace directives.
func key(m Module, goVersion string) (string, error) {
	sources := map[string]string{}

	err := filepath.WalkDir(m.Dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}

		decides := entry.Name() == "go.mod" || entry.Name() == "go.sum" || strings.HasSuffix(entry.Name(), ".go")
		if !entry.Type().IsRegular() || !decides {
			return nil
		}

		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}

		rel, err := filepath.Rel(m.Dir, name)
		sum := sha256.Sum256(data)
		sources[filepath.ToSlash(rel)] = hex.EncodeToString(sum[:])

		return err
	})
	if err != nil {
		return "", fmt.Errorf("read helper module %s: %w", m.Name, err)
	}

	if _, ok := sources["go.mod"]; !ok {
		return "", fmt.Errorf("read helper module %s: %w", m.Name,
			errors.Join(ErrInvalidModule, fmt.Errorf("%s has no go.mod", m.Dir)))
	}

	inputs := map[string]any{
		"programs": m.Programs, "files": m.Files, "tags": m.Tags, "sources": sources,
		"go": goVersion, "platform": runtime.GOOS + "/" + runtime.GOARCH,
	}
	if m.Cgo {
		inputs["cgo"] = true
	}

	// encoding/json sorts the keys of maps, so equal inputs produce equal bytes.
	described, err := json.Marshal(inputs)
	if err != nil {
		return "", fmt.Errorf("describe helper module %s: %w", m.Name, err)
	}

	sum := sha256.Sum256(described)

	return hex.EncodeToString(sum[:])[:keyLength], nil
}
