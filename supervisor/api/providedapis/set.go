package providedapis

import (
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Set is a set of APIs.
type Set map[schema.GroupVersionKind]struct{}

// Of returns the APIs that a ClusterServiceVersion owns: those of its custom resources and those that it serves
// itself. It omits invalid entries, which have no kind or version, or whose name is not that of a custom
// resource. They could not be claimed either.
func Of(csv *operatorsv1alpha1.ClusterServiceVersion) Set {
	set := Set{}
	for i := range csv.Spec.CustomResourceDefinitions.Owned {
		d := &csv.Spec.CustomResourceDefinitions.Owned[i]
		if _, group, ok := strings.Cut(d.Name, "."); ok {
			set.put(schema.GroupVersionKind{Group: group, Version: d.Version, Kind: d.Kind})
		}
	}
	for i := range csv.Spec.APIServiceDefinitions.Owned {
		d := &csv.Spec.APIServiceDefinitions.Owned[i]
		set.put(schema.GroupVersionKind{Group: d.Group, Version: d.Version, Kind: d.Kind})
	}
	return set
}

// put adds an API if its text can be parsed again.
func (s Set) put(api schema.GroupVersionKind) {
	if read := Parse(name(api)); len(read) == 1 && read.Has(api) {
		s[api] = struct{}{}
	}
}

// Parse parses the text of the annotation olm.providedAPIs. It omits invalid parts, such as spaces.
func Parse(annotation string) Set {
	set := Set{}
	for entry := range strings.SplitSeq(annotation, ",") {
		parts := strings.SplitN(strings.TrimSpace(entry), ".", 3)
		if len(parts) == 3 && parts[0] != "" && parts[1] != "" {
			set[schema.GroupVersionKind{Kind: parts[0], Version: parts[1], Group: parts[2]}] = struct{}{}
		}
	}
	return set
}

// String returns the text of the annotation olm.providedAPIs: Kind.version.group, sorted, separated by commas.
func (s Set) String() string {
	return strings.Join(s.names(), ",")
}

// Sorted returns the APIs in the order of String.
func (s Set) Sorted() []schema.GroupVersionKind {
	return slices.SortedFunc(maps.Keys(s), func(a, b schema.GroupVersionKind) int { return strings.Compare(name(a), name(b)) })
}

// Has reports whether the set has an API.
func (s Set) Has(api schema.GroupVersionKind) bool {
	_, ok := s[api]
	return ok
}

// Add puts the APIs of others into the set.
func (s Set) Add(others Set) {
	maps.Copy(s, others)
}

// Without returns the APIs of the set that are not in others.
func (s Set) Without(others Set) Set {
	rest := maps.Clone(s)
	maps.DeleteFunc(rest, func(api schema.GroupVersionKind, _ struct{}) bool { return others.Has(api) })
	return rest
}

// Both returns the APIs that are in the set and in others.
func (s Set) Both(others Set) Set {
	both := maps.Clone(s)
	maps.DeleteFunc(both, func(api schema.GroupVersionKind, _ struct{}) bool { return !others.Has(api) })
	return both
}

// Hash returns the short name of an API in labels. Existing clusters have it in olm.api.<hash> and
// olm.opgroup.permissions/aggregate-to-<hash>-<role>.
func Hash(api schema.GroupVersionKind) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name(api))) // A hash accepts any bytes.
	return strconv.FormatUint(h.Sum64(), 16)
}

// Index returns the hashes of the APIs that a ClusterServiceVersion provides; none for a copy, which runs
// nothing. Controllers index their caches by it, to find the providers of an API without reading all versions.
func Index(csv *operatorsv1alpha1.ClusterServiceVersion) []string {
	if _, copied := csv.Labels[operatorsv1alpha1.CopiedLabelKey]; copied {
		return nil
	}
	return Of(csv).Hashes()
}

// Hashes returns the hashes of the APIs of the set, in the order of String.
func (s Set) Hashes() []string {
	hashes := make([]string, 0, len(s))
	for _, api := range s.Sorted() {
		hashes = append(hashes, Hash(api))
	}
	return hashes
}

func (s Set) names() []string {
	var names []string
	for api := range s {
		names = append(names, name(api))
	}
	slices.Sort(names)
	return names
}

func name(api schema.GroupVersionKind) string {
	return api.Kind + "." + api.Version + "." + api.Group
}
