package signature

import (
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore/pkg/signature"
)

// key is a public key whose signatures are accepted.
type key struct {
	// name is the key of the ConfigMap, and sum the checksum of the public key.
	name, sum string
	// verifiers verify signatures: cosign has used different hash functions for one kind of key.
	verifiers []signature.Verifier
}

var (
	errNoPEM   = errors.New("it has no PEM block of type PUBLIC KEY")
	errKeyType = errors.New("has a PEM block of type")
)

// parseKeys returns the public keys in a PEM text.
func parseKeys(name string, data []byte) ([]*key, error) {
	var found []*key
	for rest := data; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "PUBLIC KEY" {
			return nil, fmt.Errorf("%w %s", errKeyType, block.Type)
		}
		public, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, err //nolint:wrapcheck // the caller names the key
		}
		one := &key{name: name}
		sum := sha256.Sum256(block.Bytes)
		one.sum = hex.EncodeToString(sum[:])
		usual, err := signature.LoadVerifier(public, crypto.SHA256)
		if err != nil {
			return nil, err //nolint:wrapcheck // the caller names the key
		}
		one.verifiers = []signature.Verifier{usual}
		if matching, err := signature.LoadDefaultVerifier(public); err == nil {
			one.verifiers = append(one.verifiers, matching)
		}
		found = append(found, one)
		if len(found) > maxSigners {
			break
		}
	}
	if len(found) == 0 {
		return nil, errNoPEM
	}
	return found, nil
}

// material returns trust in one of the verifiers of a key, with no bounds of time.
func material(verifier signature.Verifier) root.TrustedMaterial {
	unbounded := root.NewExpiringKey(verifier, time.Time{}, time.Time{})
	return root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) { return unbounded, nil })
}
