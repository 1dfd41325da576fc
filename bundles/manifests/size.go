package manifests

import (
	"fmt"

	"github.com/chandlery/chandlery/bundles/internal/values"
)

// maxInlineBytes is the largest inline manifest. Objects that can be stored are smaller, but catalogs have larger texts for
// users.
const maxInlineBytes = 16 << 20

// maxBundleValues is the largest number of values in the manifests of a bundle.
const maxBundleValues = 4 * values.Max

// CheckSize returns an error for the manifests of a bundle, as JSON texts, that need far more memory than any bundle that can
// be installed: one has more than 16 MiB, or they hold more than 1,600,000 values. A catalog can send any text, so callers
// check texts before they decode them. The error is a predicate of the manifests.
func CheckSize(texts ...string) error {
	total := 0
	for i, text := range texts {
		if len(text) > maxInlineBytes {
			return fmt.Errorf("%w: manifest %d of %d has %d bytes, at most %d are allowed", errLong, i+1, len(texts), len(text), maxInlineBytes)
		}
		n := values.Count([]byte(text))
		if n > values.Max {
			return fmt.Errorf("%w: manifest %d of %d may hold %d values, at most %d are allowed", errLong, i+1, len(texts), n, values.Max)
		}
		if total += n; total > maxBundleValues {
			return fmt.Errorf("%w: the first %d of %d manifests may hold %d values, at most %d are allowed", errLong, i+1, len(texts), total, maxBundleValues)
		}
	}
	return nil
}
