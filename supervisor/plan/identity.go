package plan

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

// Identity is one version that a plan installs, with all that makes two plans
// the same plan: the content it has, the place it comes from and the version it
// replaces. Who asked for it, and whether it has to be approved, may change
// without making another plan.
type Identity struct {
	Catalog  string `json:"catalog"`
	Package  string `json:"package"`
	Channel  string `json:"channel"`
	Bundle   string `json:"bundle"`
	Replaces string `json:"replaces,omitempty"`
	// Content is the digest of the bundle's manifests.
	Content string `json:"content"`
	// Generated says that no Subscription asks for it: another version of the
	// plan needs it, and the plan makes a Subscription for it.
	Generated bool `json:"generated,omitempty"`
}

// nameLength is the number of characters of the fingerprint used in a name: 50
// bits, so that two plans of one namespace do not meet by chance.
const nameLength = 10

// ours is what the names of our InstallPlans look like. Those of another lifecycle
// manager have five characters.
var ours = regexp.MustCompile(fmt.Sprintf(`^install-[a-z2-7]{%d}(-[0-9]+)?$`, nameLength))

// IsName says whether a name is one that Name gives.
func IsName(name string) bool { return ours.MatchString(name) }

// Name is the name of the InstallPlan for the versions that it installs, in
// whatever order. The first attempt has number 1; a further one is made only when
// what an earlier attempt installed has been removed since.
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
		// Structs of strings always marshal.
		text = []byte(fmt.Sprint(sorted))
	}
	sum := sha256.Sum256(text)
	fingerprint := strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:nameLength]
	if attempt <= 1 {
		return "install-" + fingerprint
	}
	return fmt.Sprintf("install-%s-%d", fingerprint, attempt)
}
