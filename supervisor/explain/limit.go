package explain

import (
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
)

// These are how the API server says that something is beyond a limit of a LimitRange, which
// it does not name. A limit that a LimitRange gives those that have none may be below what
// they request: then it speaks of a limit alone, which may be the pod's own, too.
var (
	limitWords = regexp.MustCompile(`\b(minimum|maximum) (\S+) usage per (\w+) is ([0-9A-Za-z.]+?)(?:\. |, but )`)
	ratioWords = regexp.MustCompile(`(\S+) max limit to request ratio per (\w+) is ([0-9A-Za-z.]+?), but `)
	givenWords = regexp.MustCompile(`must be less than or equal to (\S+) limit of ([0-9A-Za-z.]+)`)
)

// limit is one limit of a LimitRange.
type limit struct {
	// field is that of an item: min, max, maxLimitRequestRatio or default.
	field string
	// kind is what it holds for: Container or Pod.
	kind corev1.LimitType
	// resource is what is limited, and value to how much.
	resource corev1.ResourceName
	value    string
}

// Limited says whether something was refused because of a LimitRange, or may have been.
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
	if m := givenWords.FindStringSubmatch(message); m != nil {
		return limit{field: "default", resource: corev1.ResourceName(m[1]), kind: corev1.LimitTypeContainer, value: m[2]}, true
	}
	return limit{}, false
}

// of gives the field of a LimitRange that sets the limit; empty for none.
func (l limit) of(limits *corev1.LimitRange) string {
	for i := range limits.Spec.Limits {
		item := &limits.Spec.Limits[i]
		values := map[string]corev1.ResourceList{
			"min": item.Min, "max": item.Max, "maxLimitRequestRatio": item.MaxLimitRequestRatio, "default": item.Default,
		}[l.field]
		if value, set := values[l.resource]; set && item.Type == l.kind && value.String() == l.value {
			return fmt.Sprintf("spec.limits[%d].%s.%s", i, l.field, l.resource)
		}
	}
	return ""
}

// surelyLimited says whether the words leave no doubt that it was a LimitRange.
func surelyLimited(message string) bool {
	l, is := limitIn(message)
	return is && l.field != "default"
}

// limited is for what a LimitRange refuses, which it names where it can be seen.
func (s *story) limited(f *Finding) *Finding {
	if !s.nameLimit(f) {
		s.miss("limitranges", s.at().Namespace)
		f = f.with("kubectl -n " + s.at().Namespace + " describe limitranges")
	}
	return f
}

// nameLimit names the LimitRange that a finding speaks of. It says whether there is one.
func (s *story) nameLimit(f *Finding) bool {
	l, is := limitIn(f.Cause)
	for i := range s.LimitRanges {
		field := l.of(&s.LimitRanges[i])
		if !is || field == "" || s.LimitRanges[i].Namespace != s.at().Namespace {
			continue
		}
		at := refTo(KindLimitRange, &s.LimitRanges[i])
		remedy := fmt.Sprintf("change %s of %s", field, at)
		if s.at().Kind != KindCatalogSource {
			remedy = fmt.Sprintf("have the pods ask for what %s allows: spec.config.resources of the Subscription; or change %s of it", at, field)
		}
		f.causing(fmt.Sprintf("%s (%s of %s)", f.Cause, field, at)).advising(remedy).with(kubectl("describe", at, ""))
		return true
	}
	return false
}
