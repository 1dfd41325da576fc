// Package versions finds the relations of the ClusterServiceVersions of a namespace: which of them
// replace each other, and which own the same CustomResourceDefinitions.
package versions

import (
	"cmp"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// List is a list of ClusterServiceVersions without copies, in the order of their names.
type List []*operatorsv1alpha1.ClusterServiceVersion

// Originals drops copied ClusterServiceVersions and orders the rest by name.
func Originals(items []operatorsv1alpha1.ClusterServiceVersion) List {
	var out List
	for i := range items {
		if !IsCopied(&items[i]) {
			out = append(out, &items[i])
		}
	}
	slices.SortFunc(out, func(a, b *operatorsv1alpha1.ClusterServiceVersion) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// IsCopied reports whether a ClusterServiceVersion has the label of a copy. It ignores the
// annotations of copies, which the controller rewrites.
func IsCopied(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	_, copied := csv.Labels[operatorsv1alpha1.CopiedLabelKey]
	return copied
}

// Named returns the version with a name, or nil.
func (c List) Named(name string) *operatorsv1alpha1.ClusterServiceVersion {
	for _, csv := range c {
		if csv.Name == name {
			return csv
		}
	}
	return nil
}

// In returns the versions of one namespace.
func (c List) In(namespace string) List {
	var out List
	for _, csv := range c {
		if csv.Namespace == namespace {
			out = append(out, csv)
		}
	}
	return out
}

// Predecessor returns the version that csv replaces, or nil. A version that names itself replaces
// nothing. In a cycle, a version does not replace a younger one.
func (c List) Predecessor(csv *operatorsv1alpha1.ClusterServiceVersion) *operatorsv1alpha1.ClusterServiceVersion {
	other := c.declared(csv)
	if other == nil || (IsOlder(csv, other) && len(c.Cycle(csv)) > 0) {
		return nil
	}
	return other
}

// declared returns the version that spec.replaces of csv names, or nil.
func (c List) declared(csv *operatorsv1alpha1.ClusterServiceVersion) *operatorsv1alpha1.ClusterServiceVersion {
	if csv.Spec.Replaces == "" || csv.Spec.Replaces == csv.Name {
		return nil
	}
	return c.Named(csv.Spec.Replaces)
}

// Cycle returns the versions that csv replaces, directly or not, when the last of them replaces
// csv; nil without such a cycle. A cycle arises when an older version is installed in place of a
// newer one. An older object then names a deleted one with the name of a younger.
func (c List) Cycle(csv *operatorsv1alpha1.ClusterServiceVersion) List {
	path := walk(csv, c.declared)
	if len(path) == 0 || c.declared(path[len(path)-1]) == nil || c.declared(path[len(path)-1]).Name != csv.Name {
		return nil
	}
	return path
}

// Successor returns the version that replaces csv, or nil. A version that is being deleted does not
// count. Of several, those that have not failed come first, and then the first by name counts.
func (c List) Successor(csv *operatorsv1alpha1.ClusterServiceVersion) *operatorsv1alpha1.ClusterServiceVersion {
	var found *operatorsv1alpha1.ClusterServiceVersion
	for _, other := range c {
		if other.Spec.Replaces != csv.Name || !other.DeletionTimestamp.IsZero() || c.Predecessor(other) == nil {
			continue
		}
		if found == nil || (hasFailed(found) && !hasFailed(other)) {
			found = other
		}
	}
	return found
}

func hasFailed(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	return csv.Status.Phase == operatorsv1alpha1.CSVPhaseFailed
}

// walk follows step from csv, without csv, and ends before a repetition.
func walk(csv *operatorsv1alpha1.ClusterServiceVersion,
	step func(*operatorsv1alpha1.ClusterServiceVersion) *operatorsv1alpha1.ClusterServiceVersion,
) List {
	seen := map[string]bool{csv.Name: true}
	var path List
	for next := step(csv); next != nil && !seen[next.Name]; next = step(next) {
		seen[next.Name] = true
		path = append(path, next)
	}
	return path
}

// Successors returns the version that replaces csv, the one that replaces that, and so on.
func (c List) Successors(csv *operatorsv1alpha1.ClusterServiceVersion) List {
	return walk(csv, c.Successor)
}

// Chain returns all versions that csv replaces and all that replace it, directly or not.
func (c List) Chain(csv *operatorsv1alpha1.ClusterServiceVersion) List {
	return append(walk(csv, c.Predecessor), walk(csv, c.Successor)...)
}

// Adoptable returns the versions whose objects csv may take over. These are its chain, and versions being
// deleted that were to replace one of it. Their objects must be taken back before they are deleted.
func (c List) Adoptable(csv *operatorsv1alpha1.ClusterServiceVersion) List {
	chain := c.Chain(csv)
	found := slices.Clone(chain)
	for _, other := range c {
		if other.DeletionTimestamp.IsZero() || other.Name == csv.Name || slices.Contains(chain, other) {
			continue
		}
		if slices.ContainsFunc(walk(other, c.declared), func(older *operatorsv1alpha1.ClusterServiceVersion) bool {
			return older.Name == csv.Name || slices.Contains(chain, older)
		}) {
			found = append(found, other)
		}
	}
	return found
}

// Affected returns the versions that a change of csv concerns: those on its chain, and those that
// own one of the same CRDs. A deleted version still has its place, as other versions may wait for
// its deletion.
func (c List) Affected(csv *operatorsv1alpha1.ClusterServiceVersion) List {
	all := c
	if c.Named(csv.Name) == nil {
		all = append(slices.Clone(c), csv)
	}
	chain := all.Chain(csv)
	var out List
	for _, other := range c {
		shares := slices.ContainsFunc(csv.Spec.CustomResourceDefinitions.Owned,
			func(d operatorsv1alpha1.CRDDescription) bool { return other.OwnsCRD(d.Name) })
		if other.Name != csv.Name && (shares || slices.Contains(chain, other)) {
			out = append(out, other)
		}
	}
	return out
}

// IsOlder reports whether a was created before b. The names decide for the same second.
func IsOlder(a, b *operatorsv1alpha1.ClusterServiceVersion) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.Name < b.Name
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}
