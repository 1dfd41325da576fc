package plansteps

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Identity is one version that a plan installs. It holds everything that makes two plans the same plan: the
// content, the catalog and the replaced version. The requesting Subscriptions and the approval are not part of
// it.
type Identity struct {
	Catalog  string `json:"catalog"`
	Package  string `json:"package"`
	Channel  string `json:"channel"`
	Bundle   string `json:"bundle"`
	Replaces string `json:"replaces,omitempty"`
	// Content is the digest of the bundle's manifests.
	Content string `json:"content"`
	// Generated is true if no Subscription requests the version. Another version of the plan needs it, and the plan
	// creates a Subscription for it.
	Generated bool `json:"generated,omitempty"`
}

// nameLength is the number of characters of the fingerprint in a name. These are 50 bits, so names of two plans
// in one namespace do not collide by chance.
const nameLength = 10

// namePattern matches the names of this project's InstallPlans. The names of another lifecycle manager have five
// characters.
var namePattern = regexp.MustCompile(fmt.Sprintf(`^install-[a-z2-7]{%d}(-[0-9]+)?$`, nameLength))

// IsName reports whether a name is one that Name returns.
func IsName(name string) bool { return namePattern.MatchString(name) }

// Name returns the name of the InstallPlan for the versions that it installs, in any order. The first attempt
// has number 1. Another attempt is made only if the versions of an earlier one have been removed since.
func Name(versions []Identity, attempt int) string {
	sorted := slices.SortedFunc(slices.Values(versions), func(a, b Identity) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Bundle, b.Bundle), cmp.Compare(a.Catalog, b.Catalog))
	})
	var named any = sorted
	if len(sorted) == 1 {
		named = sorted[0]
	}
	text, err := json.Marshal(named)
	if err != nil {
		// The encoding of structs of strings never fails.
		text = []byte(fmt.Sprint(sorted))
	}
	sum := sha256.Sum256(text)
	fingerprint := strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:nameLength]
	if attempt <= 1 {
		return "install-" + fingerprint
	}
	return fmt.Sprintf("install-%s-%d", fingerprint, attempt)
}
