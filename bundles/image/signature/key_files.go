package signature

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/sigstore/sigstore-go/pkg/root"
)

// trustedRoot is a trusted root, and sum the checksum of its text. The zero value is no root.
type trustedRoot struct {
	root *root.TrustedRoot
	sum  string
}

// keyFiles are the keys of an object. Each is decoded once, however many rules name it.
type keyFiles struct {
	content map[string][]byte
	keys    map[string][]*key
	roots   map[string]trustedRoot
}

func newKeyFiles(content map[string][]byte) *keyFiles {
	return &keyFiles{content: content, keys: map[string][]*key{}, roots: map[string]trustedRoot{}}
}

// publicKeys returns the public keys in a key of the object.
func (f *keyFiles) publicKeys(name string) ([]*key, error) {
	if known := f.keys[name]; known != nil {
		return known, nil
	}
	found, err := parseKeys(name, f.content[name])
	if err == nil {
		f.keys[name] = found
	}
	return found, err
}

// trustedRoot returns the trusted root in a key of the object.
func (f *keyFiles) trustedRoot(name string) (trustedRoot, error) {
	if known := f.roots[name]; known.root != nil {
		return known, nil
	}
	found, err := root.NewTrustedRootFromJSON(f.content[name])
	if err != nil {
		return trustedRoot{}, err //nolint:wrapcheck // the caller names the key
	}
	sum := sha256.Sum256(f.content[name])
	f.roots[name] = trustedRoot{root: found, sum: hex.EncodeToString(sum[:])}
	return f.roots[name], nil
}
