package image

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// tagName returns the file in which a tag is remembered.
func (s Store) tagName(reference string) string {
	sum := sha256.Sum256([]byte(reference))
	return filepath.Join(s.Dir, tagPrefix+hex.EncodeToString(sum[:8]))
}

// Remember stores the digest that a reference resolved to, for times when the registry is unreachable.
func (s Store) Remember(reference, digest string) error {
	file, err := os.CreateTemp(s.Dir, newPrefix)
	if err != nil {
		return fmt.Errorf("remembering a tag: %w", err)
	}
	_, err = file.WriteString(digest + " " + reference + "\n")
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), s.tagName(reference))
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return fmt.Errorf("remembering a tag: %w", err)
	}
	return nil
}

// Recall returns the remembered digest of a reference, and whether there is one.
func (s Store) Recall(reference string) (string, bool) {
	text, err := os.ReadFile(s.tagName(reference))
	if err != nil {
		return "", false
	}
	digest, of, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	if _, err := v1.NewHash(digest); err != nil || of != reference {
		return "", false
	}
	return digest, true
}

// Forget removes the remembered digest of a reference.
func (s Store) Forget(reference string) {
	if _, ok := s.Recall(reference); ok {
		// [Store.Bound] removes a file that cannot be removed now.
		_ = os.Remove(s.tagName(reference))
	}
}
