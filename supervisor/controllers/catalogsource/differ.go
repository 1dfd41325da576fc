package catalogsource

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandlery/chandlery/supervisor/api"
)

// exact are the fields whose content has to be the same: to whatever else
// somebody adds there, the object would mean something else.
var exact = []string{"selector", "podSelector", "matchLabels", "nodeSelector", "command", "args", "ingress", "egress", "tolerations"}

// differs says whether an object that is there has to be applied again: because
// something else was applied last, or because somebody has since changed a field
// that was. What others added beside those is theirs.
func differs(wanted, live *unstructured.Unstructured) bool {
	return wanted.GetAnnotations()[api.AnnotationAppliedHash] != live.GetAnnotations()[api.AnnotationAppliedHash] || !contains(live.Object, wanted.Object)
}

// contains says whether live has all that is wanted.
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

// containsAll finds each wanted element somewhere.
func containsAll(live, wanted []any) bool {
	for _, w := range wanted {
		if !slices.ContainsFunc(live, func(l any) bool { return contains(l, w) }) {
			return false
		}
	}
	return true
}

// same says whether there is nothing else either, except for what the API server
// fills in within.
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

// isZero says whether a value is what a field that is left out means.
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

// number makes numbers comparable, whichever decoder they come from.
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
