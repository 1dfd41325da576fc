package plansteps

import (
	"crypto/sha256"
	"encoding/json"
	"math/big"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chandlery/chandlery/supervisor/api"
)

// ComponentLabel returns the label that connects a Subscription, its InstallPlan, its ClusterServiceVersion and
// their components with one package in one namespace. Its name part is at most 63 characters, and begins and ends
// with a letter or digit, as a label key must. Other characters of the package's name become '-'.
func ComponentLabel(pkg, namespace string) string {
	name := strings.TrimLeft(strings.Map(labelCharacter, pkg+"."+namespace), "._-")
	if len(name) > validation.DNS1123LabelMaxLength {
		name = strings.TrimRight(name[:validation.DNS1123LabelMaxLength], "._-")
	}
	return api.PrefixComponent + name
}

// labelCharacter returns a character unchanged if a label key may contain it, and '-' otherwise.
func labelCharacter(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-' {
		return r
	}
	return '-'
}

// ComponentLabels returns those of some labels that connect an object with packages.
func ComponentLabels(labels map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range labels {
		if strings.HasPrefix(key, api.PrefixComponent) {
			out[key] = value
		}
	}
	return out
}

// OwnerLabels returns the labels of an object that belongs to a ClusterServiceVersion. They replace an owner
// reference if the object has no namespace.
func OwnerLabels(csv, namespace string) map[string]string {
	return map[string]string{
		api.LabelManaged:        "true",
		api.LabelOwner:          csv,
		api.LabelOwnerNamespace: namespace,
		api.LabelOwnerKind:      kindCSV,
	}
}

// hash returns a short digest of a value that is valid in a label. It is the SHA-224 of the JSON text and a
// newline, in base 62. Existing clusters have labels and names of this form, so a takeover of such a cluster
// changes none of them.
func hash(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		// Callers pass only plain API structs, whose encoding never fails.
		return ""
	}
	sum := sha256.Sum224(append(text, '\n'))
	var n big.Int
	return n.SetBytes(sum[:]).Text(62)
}
