package olmstyle

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/big"
)

// Hash is what OLM's hash labels hold: SHA-224 of the JSON with a newline, in base 62.
func Hash(value any) string {
	var text bytes.Buffer
	if err := json.NewEncoder(&text).Encode(value); err != nil {
		panic(err) //nolint:forbidigo // values of API types can be encoded
	}
	sum := sha256.Sum224(text.Bytes())
	return new(big.Int).SetBytes(sum[:]).Text(62)
}

// caHash is what the annotation olmcahash holds.
func caHash(ca []byte) string {
	sum := sha256.Sum256(ca)
	return hex.EncodeToString(sum[:])
}

// unpackName names the ConfigMap with the content of a bundle image.
func unpackName(image string) string {
	sum := sha256.Sum256([]byte(image))
	return hex.EncodeToString(sum[:])[:63]
}

// named joins a base and a hash to the name of a role.
func named(base, hash string) string {
	const longest = 63
	if room := longest - len(hash) - 1; len(base) > room {
		base = base[:room]
	}
	return base + "-" + hash
}

// Hash62 is SHA-224 of a text, in base 62, as it ends the names of the roles of
// OperatorGroups.
func Hash62(text string) string {
	sum := sha256.Sum224([]byte(text))
	return new(big.Int).SetBytes(sum[:]).Text(62)
}
