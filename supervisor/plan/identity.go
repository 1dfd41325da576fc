package plan

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"strings"
)

// Identity is what makes two plans the same plan: the version to be installed,
// the content it has, the place it comes from and the version it replaces. Who
// asked for it, and whether it has to be approved, may change without making
// another plan.
type Identity struct {
	Catalog  string `json:"catalog"`
	Package  string `json:"package"`
	Channel  string `json:"channel"`
	Bundle   string `json:"bundle"`
	Replaces string `json:"replaces,omitempty"`
	// Content is the digest of the bundle's manifests.
	Content string `json:"content"`
}

// nameLength is the number of characters of the fingerprint used in a name: 50
// bits, so that two plans of one namespace do not meet by chance.
const nameLength = 10

// Name is the name of the InstallPlan for an identity. The first attempt has
// number 1; a further one is made only when what an earlier attempt installed
// has been removed since.
func Name(id Identity, attempt int) string {
	text, err := json.Marshal(id)
	if err != nil {
		// A struct of strings always marshals.
		text = []byte(id.Bundle)
	}
	sum := sha256.Sum256(text)
	fingerprint := strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:nameLength]
	if attempt <= 1 {
		return "install-" + fingerprint
	}
	return fmt.Sprintf("install-%s-%d", fingerprint, attempt)
}
