package release

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// sums are the SHA-256 checksums of files, in hexadecimal, by path.
type sums map[string]string

var errNoSum = errors.New("is no line of sha256sum")

// checksums returns the checksums of all files of a tree for which keep returns true.
func checksums(tree fs.FS, keep func(name string) bool) (sums, error) {
	all := sums{}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !keep(name) {
			return err
		}
		body, err := fs.ReadFile(tree, name)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		all[name] = checksum(body)
		return nil
	})
	return all, err
}

func checksum(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// text returns the checksums in the format of sha256sum, sorted by path.
func (s sums) text() []byte {
	var out bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(&out, "%s  %s\n", s[name], name)
	}
	return out.Bytes()
}

// parseSums parses the format of sha256sum.
func parseSums(text []byte) (sums, error) {
	all := sums{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		sum, name, found := strings.Cut(lines.Text(), "  ")
		if raw, err := hex.DecodeString(sum); !found || err != nil || len(raw) != sha256.Size || !fs.ValidPath(name) {
			return nil, fmt.Errorf("%q %w", lines.Text(), errNoSum)
		}
		all[name] = sum
	}
	return all, nil
}

// differences returns a line for each path whose checksum differs from what is wanted, sorted.
func (s sums) differences(want sums) []string {
	var lines []string
	for name, sum := range want {
		switch got, found := s[name]; {
		case !found:
			lines = append(lines, name+" is missing")
		case got != sum:
			lines = append(lines, name+" has another checksum")
		}
	}
	for name := range s {
		if want[name] == "" {
			lines = append(lines, name+" has no checksum")
		}
	}
	slices.Sort(lines)
	return lines
}
