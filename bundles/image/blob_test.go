package image

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// TestCheckedBlob reads blobs from a source without checks of its own, like the registry client.
func TestCheckedBlob(t *testing.T) {
	text := []byte("content")
	sum := sha256.Sum256(text)
	right, wrong := hex.EncodeToString(sum[:]), hex.EncodeToString(make([]byte, sha256.Size))
	for name, tc := range map[string]struct {
		reason string
		size   int
		digest string
		want   error
	}{
		"Right":     {"what was announced", len(text), right, nil},
		"Digest":    {"other bytes", len(text), wrong, errWrongDigest},
		"Truncated": {"too few bytes", len(text) + 1, right, errTruncated},
		"Overlong":  {"too many bytes", len(text) - 1, right, errOverlong},
	} {
		t.Run(name, func(t *testing.T) {
			b := &checkedBlob{
				ReadCloser: io.NopCloser(bytes.NewReader(text)), hash: sha256.New(),
				want: v1.Descriptor{Size: int64(tc.size), Digest: v1.Hash{Algorithm: "sha256", Hex: tc.digest}},
			}
			if _, err := io.ReadAll(b); !errors.Is(err, tc.want) {
				t.Errorf("%s: got %v, want %v", tc.reason, err, tc.want)
			}
		})
	}
}
