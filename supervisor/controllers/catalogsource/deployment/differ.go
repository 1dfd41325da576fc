package deployment

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandlery/chandlery/supervisor/api"
)

// exact lists fields that must match completely, because any addition would change the meaning of
// the object.
var exact = []string{"selector", "podSelector", "matchLabels", "nodeSelector", "command", "args", "ingress", "egress", "tolerations"}

// Differs reports whether an object must be applied again: the applied configuration has changed,
// or an applied field was modified. Fields that others have added are ignored.
func Differs(wanted, live *unstructured.Unstructured) bool {
	return wanted.GetAnnotations()[api.AnnotationAppliedHash] != live.GetAnnotations()[api.AnnotationAppliedHash] || !contains(live.Object, wanted.Object)
}

// contains reports whether live contains everything in wanted.
func contains(live, wanted any) bool {
	switch w := wanted.(type) {
	case map[string]any:
		l, isMap := live.(map[string]any)
		if !isMap {
			return live == nil && isZero(wanted)
		}
		return containsFields(l, w)
	case []any:
		l, isList := live.([]any)
		if !isList {
			return live == nil && len(w) == 0
		}
		return containsAll(l, w)
	default:
		return reflect.DeepEqual(number(live), number(wanted)) || (live == nil && isZero(wanted))
	}
}

func containsFields(live, wanted map[string]any) bool {
	for key, value := range wanted {
		if slices.Contains(exact, key) && !same(live[key], value) {
			return false
		}
		if !contains(live[key], value) {
			return false
		}
	}
	return true
}

// containsAll reports whether live contains a match for each wanted element.
func containsAll(live, wanted []any) bool {
	for _, w := range wanted {
		if !slices.ContainsFunc(live, func(l any) bool { return contains(l, w) }) {
			return false
		}
	}
	return true
}

// same reports whether live has no more elements than wanted at this level. Defaults inside of
// elements are ignored.
func same(live, wanted any) bool {
	if live == nil || wanted == nil {
		return isZero(live) && isZero(wanted)
	}
	switch w := wanted.(type) {
	case map[string]any:
		l, isMap := live.(map[string]any)
		return isMap && len(l) == len(w)
	case []any:
		l, isList := live.([]any)
		return isList && len(l) == len(w)
	default:
		return true
	}
}

// isZero reports whether a value equals the meaning of an omitted field.
func isZero(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	default:
		return v == nil || reflect.ValueOf(v).IsZero()
	}
}

// number converts integers to float64, so that values of different decoders compare equal.
func number(value any) any {
	switch v := value.(type) {
	case int64:
		return float64(v)
	case int32:
		return float64(v)
	case int:
		return float64(v)
	default:
		return value
	}
}
