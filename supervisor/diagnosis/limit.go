package diagnosis

import (
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
)

// limitWords is how the API server says that something is beyond a limit of a LimitRange,
// which it does not name.
var (
	limitWords = regexp.MustCompile(`\b(minimum|maximum) (\S+) usage per (\w+) is ([0-9A-Za-z.]+?)(?:\. |, but )`)
	ratioWords = regexp.MustCompile(`(\S+) max limit to request ratio per (\w+) is ([0-9A-Za-z.]+?), but `)
)

// limit is one limit of a LimitRange.
type limit struct {
	// field is that of an item: min, max or maxLimitRequestRatio.
	field string
	// kind is what it holds for: Container or Pod.
	kind corev1.LimitType
	// resource is what is limited, and value to how much.
	resource corev1.ResourceName
	value    string
}

// Limited says whether something was refused because of a LimitRange.
func Limited(message string) bool {
	_, is := limitIn(message)
	return is
}

// limitIn gives the first limit that a refusal names.
func limitIn(message string) (limit, bool) {
	message = oneLine(message)
	if m := limitWords.FindStringSubmatch(message); m != nil {
		field := map[string]string{"minimum": "min", "maximum": "max"}[m[1]]
		return limit{field: field, resource: corev1.ResourceName(m[2]), kind: corev1.LimitType(m[3]), value: m[4]}, true
	}
	if m := ratioWords.FindStringSubmatch(message); m != nil {
		return limit{field: "maxLimitRequestRatio", resource: corev1.ResourceName(m[1]), kind: corev1.LimitType(m[2]), value: m[3]}, true
	}
	return limit{}, false
}

// of gives the field of a LimitRange that sets the limit; empty for none.
func (l limit) of(limits *corev1.LimitRange) string {
	for i := range limits.Spec.Limits {
		item := &limits.Spec.Limits[i]
		values := map[string]corev1.ResourceList{"min": item.Min, "max": item.Max, "maxLimitRequestRatio": item.MaxLimitRequestRatio}[l.field]
		if value, set := values[l.resource]; set && item.Type == l.kind && value.String() == l.value {
			return fmt.Sprintf("spec.limits[%d].%s.%s", i, l.field, l.resource)
		}
	}
	return ""
}

// limited names the LimitRange in a finding about what one refuses.
func (s *story) limited(f *Finding) *Finding {
	namespace := s.at().Namespace
	l, _ := limitIn(f.Cause)
	for i := range s.LimitRanges {
		field := l.of(&s.LimitRanges[i])
		if field == "" || s.LimitRanges[i].Namespace != namespace {
			continue
		}
		at := refTo(KindLimitRange, &s.LimitRanges[i])
		remedy := fmt.Sprintf("change %s of %s", field, at)
		if s.at().Kind != KindCatalogSource {
			remedy = "have the pods ask for what it allows: spec.config.resources of the Subscription; or " + remedy
		}
		return f.causing(fmt.Sprintf("%s (%s of %s)", f.Cause, field, at)).advising(remedy).with(kubectl("describe", at, ""))
	}
	s.miss("limitranges", namespace)
	return f.with("kubectl -n " + namespace + " describe limitranges")
}
