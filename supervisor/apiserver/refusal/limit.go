package refusal

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// These are the sentences of the API server about a LimitRange, which do not name it. A limit that a
// LimitRange sets by default may be below what a container requests. The API server then names the limit
// alone, which may also be the container's own.
var (
	boundWords   = regexp.MustCompile(`\b(minimum|maximum) (\S+) usage per (\w+) is ([0-9A-Za-z.]+?)(?:\. |, but )`)
	ratioWords   = regexp.MustCompile(`(\S+) max limit to request ratio per (\w+) is ([0-9A-Za-z.]+?), but `)
	defaultWords = regexp.MustCompile(`must be less than or equal to (\S+) limit of ([0-9A-Za-z.]+)`)
)

// Limit is a limit of a LimitRange that a refusal names.
type Limit struct {
	// Field is the field of the item: min, max, maxLimitRequestRatio or default.
	Field string
	// Type is Container or Pod.
	Type corev1.LimitType
	// Resource is the resource that is limited, and Value the limit as the LimitRange prints it.
	Resource corev1.ResourceName
	Value    string
}

// LimitOf returns the first limit that the text of a refusal names.
func LimitOf(text string) (limit Limit, found bool) {
	text = strings.Join(strings.Fields(text), " ")
	if m := boundWords.FindStringSubmatch(text); m != nil {
		field := map[string]string{"minimum": "min", "maximum": "max"}[m[1]]
		return Limit{Field: field, Resource: corev1.ResourceName(m[2]), Type: corev1.LimitType(m[3]), Value: m[4]}, true
	}
	if m := ratioWords.FindStringSubmatch(text); m != nil {
		return Limit{Field: "maxLimitRequestRatio", Resource: corev1.ResourceName(m[1]), Type: corev1.LimitType(m[2]), Value: m[3]}, true
	}
	if m := defaultWords.FindStringSubmatch(text); m != nil {
		return Limit{Field: "default", Resource: corev1.ResourceName(m[1]), Type: corev1.LimitTypeContainer, Value: m[2]}, true
	}
	return Limit{}, false
}

// exceedsLimit reports whether a text is certainly about a LimitRange.
func exceedsLimit(text string) bool {
	limit, found := LimitOf(text)
	return found && limit.Field != "default"
}

// FieldIn returns the field of a LimitRange that sets the limit, such as spec.limits[0].max.memory; empty
// when none does.
func (l Limit) FieldIn(limits *corev1.LimitRange) string {
	for i := range limits.Spec.Limits {
		item := &limits.Spec.Limits[i]
		values := map[string]corev1.ResourceList{
			"min": item.Min, "max": item.Max, "maxLimitRequestRatio": item.MaxLimitRequestRatio, "default": item.Default,
		}[l.Field]
		if value, set := values[l.Resource]; set && item.Type == l.Type && value.String() == l.Value {
			return fmt.Sprintf("spec.limits[%d].%s.%s", i, l.Field, l.Resource)
		}
	}
	return ""
}
