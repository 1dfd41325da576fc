package olmobjects

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/big"
)

// Hash returns the value of OLM's hash labels: SHA-224 of the JSON with a newline, in base 62.
func Hash(value any) string {
	var text bytes.Buffer
	if err := json.NewEncoder(&text).Encode(value); err != nil {
		panic(err) //nolint:forbidigo // values of API types can be encoded
	}
	sum := sha256.Sum224(text.Bytes())
	return new(big.Int).SetBytes(sum[:]).Text(62)
}

// caHash returns the value of the annotation olmcahash.
func caHash(ca []byte) string {
	sum := sha256.Sum256(ca)
	return hex.EncodeToString(sum[:])
}

// unpackName returns the name of the ConfigMap with the content of a bundle image.
func unpackName(image string) string {
	sum := sha256.Sum256([]byte(image))
	return hex.EncodeToString(sum[:])[:63]
}

// named returns the name of a role with a base and a hash.
func named(base, hash string) string {
	const longest = 63
	if room := longest - len(hash) - 1; len(base) > room {
		base = base[:room]
	}
	return base + "-" + hash
}

// Hash62 returns the SHA-224 of a text in base 62, the suffix of the role names of OperatorGroups.
func Hash62(text string) string {
	sum := sha256.Sum224([]byte(text))
	return new(big.Int).SetBytes(sum[:]).Text(62)
}
