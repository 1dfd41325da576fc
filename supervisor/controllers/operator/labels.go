package operator

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chandlery/chandlery/supervisor/api"
)

// operators returns the names of the Operators that an object belongs to according to its labels.
// It omits names that are not valid.
func operators(labels map[string]string) []string {
	var names []string
	for _, key := range componentKeys(labels) {
		if name := strings.TrimPrefix(key, api.PrefixComponent); len(validation.IsDNS1123Subdomain(name)) == 0 {
			names = append(names, name)
		}
	}
	return names
}

// componentKeys returns the sorted component labels of an object.
func componentKeys(labels map[string]string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(labels)), func(key string) bool {
		return !strings.HasPrefix(key, api.PrefixComponent)
	})
}

// missingKeys returns the keys that labels lack.
func missingKeys(labels map[string]string, keys []string) []string {
	var missing []string
	for _, key := range keys {
		if _, has := labels[key]; !has {
			missing = append(missing, key)
		}
	}
	return missing
}
