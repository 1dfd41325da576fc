package clusterserviceversion

import (
	"cmp"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// csvs is a list of ClusterServiceVersions without copies, in the order of their names.
type csvs []*operatorsv1alpha1.ClusterServiceVersion

// originals drops copied ClusterServiceVersions and orders the rest by name.
func originals(items []operatorsv1alpha1.ClusterServiceVersion) csvs {
	var out csvs
	for i := range items {
		if !isCopied(&items[i]) {
			out = append(out, &items[i])
		}
	}
	slices.SortFunc(out, func(a, b *operatorsv1alpha1.ClusterServiceVersion) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// isCopied reports whether a ClusterServiceVersion has the label of a copy. It ignores the
// annotations of copies, which this package rewrites.
func isCopied(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	_, copied := csv.Labels[operatorsv1alpha1.CopiedLabelKey]
	return copied
}

func (c csvs) named(name string) *operatorsv1alpha1.ClusterServiceVersion {
	for _, csv := range c {
		if csv.Name == name {
			return csv
		}
	}
	return nil
}

// in returns the versions of one namespace.
func (c csvs) in(namespace string) csvs {
	var out csvs
	for _, csv := range c {
		if csv.Namespace == namespace {
			out = append(out, csv)
		}
	}
	return out
}

// predecessor returns the version that csv replaces, or nil. A version that names itself replaces
// nothing. In a cycle, a version does not replace a younger one.
func (c csvs) predecessor(csv *operatorsv1alpha1.ClusterServiceVersion) *operatorsv1alpha1.ClusterServiceVersion {
	other := c.declared(csv)
	if other == nil || (isOlder(csv, other) && len(c.circle(csv)) > 0) {
		return nil
	}
	return other
}

// declared returns the version that spec.replaces of csv names, or nil.
func (c csvs) declared(csv *operatorsv1alpha1.ClusterServiceVersion) *operatorsv1alpha1.ClusterServiceVersion {
	if csv.Spec.Replaces == "" || csv.Spec.Replaces == csv.Name {
		return nil
	}
	return c.named(csv.Spec.Replaces)
}

// circle returns the versions that csv replaces, directly or not, when the last of them replaces
// csv; nil without such a cycle. A cycle arises when an older version is installed in place of a
// newer one. An older object then names a deleted one with the name of a younger.
func (c csvs) circle(csv *operatorsv1alpha1.ClusterServiceVersion) csvs {
	path := walk(csv, c.declared)
	if len(path) == 0 || c.declared(path[len(path)-1]) == nil || c.declared(path[len(path)-1]).Name != csv.Name {
		return nil
	}
	return path
}

// successor returns the version that replaces csv, or nil. A version that is being deleted does not
// count. Of several, those that have not failed come first, and then the first by name counts.
func (c csvs) successor(csv *operatorsv1alpha1.ClusterServiceVersion) *operatorsv1alpha1.ClusterServiceVersion {
	var found *operatorsv1alpha1.ClusterServiceVersion
	for _, other := range c {
		if other.Spec.Replaces != csv.Name || !other.DeletionTimestamp.IsZero() || c.predecessor(other) == nil {
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
) csvs {
	seen := map[string]bool{csv.Name: true}
	var path csvs
	for next := step(csv); next != nil && !seen[next.Name]; next = step(next) {
		seen[next.Name] = true
		path = append(path, next)
	}
	return path
}

// chain returns all versions that csv replaces and all that replace it, directly or not.
func (c csvs) chain(csv *operatorsv1alpha1.ClusterServiceVersion) csvs {
	return append(walk(csv, c.predecessor), walk(csv, c.successor)...)
}

// kin returns the versions whose objects csv may take over. These are its chain, and versions being
// deleted that were to replace one of it. Their objects must be taken back before they are deleted.
func (c csvs) kin(csv *operatorsv1alpha1.ClusterServiceVersion) csvs {
	chain := c.chain(csv)
	kin := slices.Clone(chain)
	for _, other := range c {
		if other.DeletionTimestamp.IsZero() || other.Name == csv.Name || slices.Contains(chain, other) {
			continue
		}
		if slices.ContainsFunc(walk(other, c.declared), func(older *operatorsv1alpha1.ClusterServiceVersion) bool {
			return older.Name == csv.Name || slices.Contains(chain, older)
		}) {
			kin = append(kin, other)
		}
	}
	return kin
}

// neighbours returns the versions that a change of csv concerns: those on its chain, and those that
// own one of the same CRDs. A deleted version still has its place, as other versions may wait for
// its deletion.
func (c csvs) neighbours(csv *operatorsv1alpha1.ClusterServiceVersion) csvs {
	all := c
	if c.named(csv.Name) == nil {
		all = append(slices.Clone(c), csv)
	}
	chain := all.chain(csv)
	var out csvs
	for _, other := range c {
		shares := slices.ContainsFunc(csv.Spec.CustomResourceDefinitions.Owned,
			func(d operatorsv1alpha1.CRDDescription) bool { return other.OwnsCRD(d.Name) })
		if other.Name != csv.Name && (shares || slices.Contains(chain, other)) {
			out = append(out, other)
		}
	}
	return out
}

// replacementOf returns the place of csv among the others.
func replacementOf(csv *operatorsv1alpha1.ClusterServiceVersion, others csvs) Replacement {
	var r Replacement
	if p := others.predecessor(csv); p != nil {
		r.Predecessor = neighbour(p)
	}
	if replaces := csv.Spec.Replaces; replaces != "" && replaces != csv.Name && others.named(replaces) == nil {
		r.Vanished = replaces
	}
	for _, other := range others.circle(csv) {
		r.Circle = append(r.Circle, other.Name)
	}
	if len(r.Circle) > 0 {
		r.Circle = append([]string{csv.Name}, r.Circle...)
	}
	successors := walk(csv, others.successor)
	if len(successors) > 0 {
		r.Successor = neighbour(successors[0])
		r.Last = neighbour(successors[len(successors)-1])
	}
	return r
}

func neighbour(csv *operatorsv1alpha1.ClusterServiceVersion) *Neighbour {
	return &Neighbour{
		Name: csv.Name, Phase: csv.Status.Phase, Reason: csv.Status.Reason, Leaving: !csv.DeletionTimestamp.IsZero(),
	}
}

// crdConflict returns a message about another ClusterServiceVersion, not on the same chain, that
// owns one of csv's CRDs; empty when there is none. The older one keeps the CRD, so that a newer
// operator cannot break it.
func crdConflict(csv *operatorsv1alpha1.ClusterServiceVersion, others csvs) string {
	chain := others.chain(csv)
	for _, other := range others {
		if other.UID == csv.UID || slices.Contains(chain, other) || !isOlder(other, csv) {
			continue
		}
		for _, owned := range csv.Spec.CustomResourceDefinitions.Owned {
			if other.OwnsCRD(owned.Name) {
				return fmt.Sprintf("spec.customresourcedefinitions.owned names %s, which csv %s owns already; uninstall one of the two operators",
					owned.Name, other.Name)
			}
		}
	}
	return ""
}

func isOlder(a, b *operatorsv1alpha1.ClusterServiceVersion) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.Name < b.Name
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}
