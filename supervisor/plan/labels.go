package plan

import (
	"crypto/sha256"
	"encoding/json"
	"math/big"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chandlery/chandlery/supervisor/api"
)

// ComponentLabel is the label that ties a Subscription, its InstallPlan, its
// ClusterServiceVersion and their components to one package in one namespace.
// Its name part is at most 63 characters and ends in a letter or digit, as a
// label key must.
func ComponentLabel(pkg, namespace string) string {
	name := pkg + "." + namespace
	if len(name) > validation.DNS1123LabelMaxLength {
		name = strings.TrimRight(name[:validation.DNS1123LabelMaxLength], "._-")
	}
	return api.PrefixComponent + name
}

// ComponentLabels returns those of some labels that tie an object to packages.
func ComponentLabels(labels map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range labels {
		if strings.HasPrefix(key, api.PrefixComponent) {
			out[key] = value
		}
	}
	return out
}

// OwnerLabels mark an object as belonging to a ClusterServiceVersion. They take
// the place of an owner reference where the object has no namespace.
func OwnerLabels(csv, namespace string) map[string]string {
	return map[string]string{
		api.LabelManaged:        "true",
		api.LabelOwner:          csv,
		api.LabelOwnerNamespace: namespace,
		api.LabelOwnerKind:      kindCSV,
	}
}

// hash is a short, label-safe digest of a value: the SHA-224 of its JSON text
// and a newline, written in base 62. Existing clusters carry labels and names
// made in this way, so the form is kept: taking over such a cluster then
// changes nothing.
func hash(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		// Only plain API structs come here; they always marshal.
		return ""
	}
	sum := sha256.Sum224(append(text, '\n'))
	var n big.Int
	return n.SetBytes(sum[:]).Text(62)
}
