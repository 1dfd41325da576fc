package clusterserviceversion

import (
	"cmp"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// csvs are the ClusterServiceVersions of one namespace, copies left out.
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

// isCopied goes by the label alone: the annotations that would also tell are
// rewritten by this package.
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

// predecessor returns the one that csv replaces, or nil. A
// ClusterServiceVersion that says it replaces itself replaces nothing, nor does
// one replace a younger one that it is replaced by in turn.
func (c csvs) predecessor(csv *operatorsv1alpha1.ClusterServiceVersion) *operatorsv1alpha1.ClusterServiceVersion {
	other := c.declared(csv)
	if other == nil || (isOlder(csv, other) && len(c.circle(csv)) > 0) {
		return nil
	}
	return other
}

// declared returns the one whose name csv says it replaces, or nil.
func (c csvs) declared(csv *operatorsv1alpha1.ClusterServiceVersion) *operatorsv1alpha1.ClusterServiceVersion {
	if csv.Spec.Replaces == "" || csv.Spec.Replaces == csv.Name {
		return nil
	}
	return c.named(csv.Spec.Replaces)
}

// circle returns those that csv replaces one after the other when the last of
// them replaces csv; nothing when there is no such circle. One comes about when
// an older version is installed again in the place of a newer: what an older
// object says of a younger was said of another one of its name.
func (c csvs) circle(csv *operatorsv1alpha1.ClusterServiceVersion) csvs {
	path := walk(csv, c.declared)
	if len(path) == 0 || c.declared(path[len(path)-1]) == nil || c.declared(path[len(path)-1]).Name != csv.Name {
		return nil
	}
	return path
}

// successor returns the one that replaces csv, or nil. One that is on its way out
// replaces nobody any more. Of several, one that has failed comes last, and then
// the first by name counts.
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

// walk follows step from csv, csv left out, and ends before it would repeat
// itself, so a cycle of replaces does not trap it.
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

// chain returns all that csv replaces and all that replace it, directly or not.
func (c csvs) chain(csv *operatorsv1alpha1.ClusterServiceVersion) csvs {
	return append(walk(csv, c.predecessor), walk(csv, c.successor)...)
}

// kin returns those whose objects csv may take over: its chain, and those on their way
// out that were to replace one of it. What such a one took over is wanted back before it
// takes it along.
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

// neighbours returns those that a change of csv concerns: those on its chain, and those
// that own one of the same CRDs. One that is gone still has the place that it had: who
// waits for it to go is to hear of it.
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

// replacementOf returns csv's place among the others.
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

// crdConflict says which other ClusterServiceVersion, not on the same chain,
// owns one of csv's CRDs; empty when none does. The one that was there first
// keeps it, so that a newcomer cannot bring an operator that works down.
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
