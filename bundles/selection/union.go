package selection

import (
	"cmp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
)

// bound is one end of an interval of versions.
type bound struct {
	version semver.Version
	// open excludes the version itself.
	open bool
	// none means that the interval has no end on this side.
	none bool
}

// interval is a range of versions without a gap.
type interval struct {
	low, high bound
	// text is the original text; empty for a computed interval.
	text string
}

// union returns a short range that covers what any of the ranges covers. A range that is not a
// plain interval is repeated unchanged.
func union(ranges []string) string {
	var plain []*interval
	var others []string
	for _, text := range ranges {
		for alternative := range strings.SplitSeq(text, "||") {
			alternative = strings.TrimSpace(alternative)
			if one, ok := parseInterval(alternative); ok {
				plain = append(plain, &one)
			} else if !slices.Contains(others, alternative) {
				others = append(others, alternative)
			}
		}
	}
	slices.SortFunc(plain, func(a, b *interval) int {
		return cmp.Or(compareLow(a.low, b.low), compareHigh(b.high, a.high), cmp.Compare(a.text, b.text))
	})
	var merged []interval
	for _, one := range plain {
		if last := len(merged) - 1; last >= 0 && merged[last].meets(*one) {
			merged[last] = merged[last].with(*one)
			continue
		}
		merged = append(merged, *one)
	}
	texts := make([]string, 0, len(merged)+len(others))
	for _, one := range merged {
		texts = append(texts, one.String())
	}
	return strings.Join(append(texts, others...), " || ")
}

// parseInterval parses comparisons that must all hold, such as ">=1.0.0 <2.0.0". It reports whether
// they describe a nonempty interval.
func parseInterval(text string) (interval, bool) {
	out := interval{low: bound{none: true}, high: bound{none: true}, text: text}
	fields := strings.Fields(text)
	for _, field := range fields {
		version := strings.TrimLeft(field, "<>=!")
		operator := field[:len(field)-len(version)]
		v, err := semver.Parse(version)
		if err != nil {
			return interval{}, false
		}
		low, high := bound{none: true}, bound{none: true}
		switch operator {
		case ">", ">=":
			low = bound{version: v, open: operator == ">"}
		case "<", "<=":
			high = bound{version: v, open: operator == "<"}
		case "", "=", "==":
			low, high = bound{version: v}, bound{version: v}
		default:
			return interval{}, false
		}
		if compareLow(low, out.low) > 0 {
			out.low = low
		}
		if compareHigh(high, out.high) < 0 {
			out.high = high
		}
	}
	return out, len(fields) > 0 && !out.empty()
}

// compareLow orders lower ends, the lowest first.
func compareLow(a, b bound) int {
	if a.none || b.none {
		return truth(b.none) - truth(a.none)
	}
	return cmp.Or(a.version.Compare(b.version), truth(a.open)-truth(b.open))
}

// compareHigh orders upper ends, the lowest first.
func compareHigh(a, b bound) int {
	if a.none || b.none {
		return truth(a.none) - truth(b.none)
	}
	return cmp.Or(a.version.Compare(b.version), truth(b.open)-truth(a.open))
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// empty reports whether the interval contains no version.
func (i interval) empty() bool {
	if i.low.none || i.high.none {
		return false
	}
	order := i.low.version.Compare(i.high.version)
	return order > 0 || order == 0 && (i.low.open || i.high.open)
}

// meets reports whether there is no gap between the interval and one that does not begin before it.
func (i interval) meets(next interval) bool {
	if i.high.none || next.low.none {
		return true
	}
	order := next.low.version.Compare(i.high.version)
	return order < 0 || order == 0 && (!next.low.open || !i.high.open)
}

// with returns the union of the interval and one that meets it.
func (i interval) with(next interval) interval {
	if compareHigh(next.high, i.high) <= 0 {
		return i
	}
	if compareLow(i.low, next.low) == 0 {
		return next
	}
	return interval{low: i.low, high: next.high}
}

// String returns the interval in the grammar of github.com/blang/semver.
func (i interval) String() string {
	if i.text != "" {
		return i.text
	}
	var parts []string
	if !i.low.none {
		parts = append(parts, map[bool]string{true: ">", false: ">="}[i.low.open]+i.low.version.String())
	}
	if !i.high.none {
		parts = append(parts, map[bool]string{true: "<", false: "<="}[i.high.open]+i.high.version.String())
	}
	if len(parts) == 0 {
		return ">=0.0.0-0" // every version
	}
	return strings.Join(parts, " ")
}
