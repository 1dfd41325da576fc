package deployment

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/big"
)

// hash returns a short hash of a value that is valid in a label: SHA-224 of its JSON in base 62.
// OLM writes such hashes to the labels olm.*-hash.
func hash(value any) (string, error) {
	var text bytes.Buffer
	if err := json.NewEncoder(&text).Encode(value); err != nil {
		return "", fmt.Errorf("hashing %T: %w", value, err)
	}
	sum := sha256.Sum224(text.Bytes())
	var number big.Int
	return number.SetBytes(sum[:]).Text(62), nil
}
