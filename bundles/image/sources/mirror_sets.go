package sources

import (
	"cmp"
	"maps"
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
// keep the order of each object, if that is possible.
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
		if problem := normalize(&merged.Registry); problem.text != "" {
			remedy := "correct the object: " + cmp.Or(problem.remedy, registriesRemedy)
			problems = append(problems, &InvalidError{File: merged.origin, Problem: problem.text, Remedy: remedy})
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

// mergeOrders returns the entries of several lists, each once, in the order that nodes of OpenShift have. It agrees with all
// lists if an order can. Entries that can come next are sorted by name as soon as the entries before them are done. In a
// cycle, the first name comes first. The source comes last unless a list has it before another entry. It is left out
// at the end, where it is asked anyway.
func mergeOrders(source string, lists [][]string) []string {
	before, after := neighbors(source, lists)
	names := slices.Sorted(maps.Keys(before))
	var queue, merged []string
	for _, name := range names {
		if len(before[name]) == 0 {
			queue = append(queue, name)
		}
	}
	for len(merged) < len(names) {
		if len(queue) == 0 {
			left := slices.IndexFunc(names, func(name string) bool { return !slices.Contains(merged, name) })
			queue = append(queue, names[left])
		}
		next := queue[0]
		queue, merged = queue[1:], append(merged, next)
		for _, follower := range slices.Sorted(maps.Keys(after[next])) {
			delete(before[follower], next)
			if len(before[follower]) == 0 && !slices.Contains(merged, follower) {
				queue = append(queue, follower)
			}
		}
	}
	if len(merged) > 0 && merged[len(merged)-1] == source {
		merged = merged[:len(merged)-1]
	}
	return merged
}

// neighbors returns the entries that come directly before and after each entry in any list. The source follows the last
// entry of a list without it.
func neighbors(source string, lists [][]string) (before, after map[string]map[string]bool) {
	before, after = map[string]map[string]bool{}, map[string]map[string]bool{}
	for _, list := range lists {
		if !slices.Contains(list, source) {
			list = append(slices.Clone(list), source)
		}
		for i, entry := range list {
			if before[entry] == nil {
				before[entry], after[entry] = map[string]bool{}, map[string]bool{}
			}
			if i > 0 {
				before[entry][list[i-1]], after[list[i-1]][entry] = true, true
			}
		}
	}
	return before, after
}
