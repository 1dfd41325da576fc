package sources

import (
	"slices"
	"strings"

	"go.podman.io/image/v5/pkg/sysregistriesv2"
)

// MirrorRule is the mirrors of one source in an object of OpenShift.
type MirrorRule struct {
	// Object is the kind and the name of the object.
	Object string
	// Source is the registry or repository, and Mirrors are asked before it.
	Source  string
	Mirrors []string
	// ForTags is whether the mirrors are for tags; otherwise they are for digests.
	ForTags bool
	// NeverContactSource excludes the source itself.
	NeverContactSource bool
}

// FromMirrorRules returns the rules that nodes of OpenShift have. The mirrors of several objects for one source
// keep the order of each object.
func FromMirrorRules(rules []MirrorRule) (*Table, error) {
	table := &Table{}
	var (
		sources  []string
		problems []error
	)
	for i := range rules {
		if source := rules[i].Source; hasMirror(&rules[i]) && !slices.Contains(sources, source) {
			sources = append(sources, source)
		}
	}
	for _, source := range sources {
		merged := mergeRules(source, rules)
		if problem := normalize(&merged.Registry); problem != "" {
			problems = append(problems, &InvalidError{File: merged.origin, Problem: problem, Remedy: "correct the object"})
		}
		table.registries = append(table.registries, merged)
	}
	if err := invalid(problems); err != nil {
		return nil, err
	}
	return table, nil
}

// hasMirror reports whether a rule has a mirror besides the source. Others do not count, nor do their policies.
func hasMirror(r *MirrorRule) bool {
	return slices.ContainsFunc(r.Mirrors, func(mirror string) bool { return mirror != r.Source })
}

// mergeRules returns one table for a source.
func mergeRules(source string, rules []MirrorRule) registry {
	merged := registry{}
	merged.Prefix = source
	if !strings.HasPrefix(source, "*.") {
		merged.Location = source
	}
	var (
		objects []string
		lists   = map[bool][][]string{}
	)
	for i := range rules {
		r := &rules[i]
		if r.Source != source || !hasMirror(r) {
			continue
		}
		merged.Blocked = merged.Blocked || r.NeverContactSource
		lists[r.ForTags] = append(lists[r.ForTags], r.Mirrors)
		if !slices.Contains(objects, r.Object) {
			objects = append(objects, r.Object)
		}
	}
	merged.origin = strings.Join(objects, " and ")
	for _, forTags := range []bool{false, true} {
		pull := map[bool]string{false: sysregistriesv2.MirrorByDigestOnly, true: sysregistriesv2.MirrorByTagOnly}[forTags]
		for _, mirror := range mergeOrders(source, lists[forTags]) {
			merged.Mirrors = append(merged.Mirrors, sysregistriesv2.Endpoint{Location: mirror, PullFromMirror: pull})
		}
	}
	return merged
}

// mergeOrders returns the entries of several lists, each once, in an order that agrees with all lists if there is
// one. The source comes last unless a list has it before another entry. It is left out at the end, where it is
// asked anyway.
func mergeOrders(source string, lists [][]string) []string {
	var complete [][]string
	for _, list := range lists {
		if !slices.Contains(list, source) {
			list = append(slices.Clone(list), source)
		}
		complete = append(complete, list)
	}
	var merged []string
	for {
		left := remaining(complete, merged)
		if len(left) == 0 {
			break
		}
		next := slices.IndexFunc(left, func(entry string) bool { return !comesLater(entry, complete, merged) })
		// In a cycle, the first entry comes first.
		merged = append(merged, left[max(next, 0)])
	}
	if len(merged) > 0 && merged[len(merged)-1] == source {
		merged = merged[:len(merged)-1]
	}
	return merged
}

// remaining returns the entries of lists that are not done, in the order of the lists.
func remaining(lists [][]string, done []string) []string {
	var left []string
	for _, entry := range slices.Concat(lists...) {
		if !slices.Contains(done, entry) && !slices.Contains(left, entry) {
			left = append(left, entry)
		}
	}
	return left
}

// comesLater reports whether a list has an entry that is not done before another one.
func comesLater(entry string, lists [][]string, done []string) bool {
	return slices.ContainsFunc(lists, func(list []string) bool {
		at := slices.Index(list, entry)
		return at > 0 && slices.ContainsFunc(list[:at], func(before string) bool { return before != entry && !slices.Contains(done, before) })
	})
}
