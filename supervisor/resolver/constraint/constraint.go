package constraint

import (
	"slices"

	"github.com/blang/semver/v4"

	"github.com/chandlery/chandlery/bundles"
)

// Constraint is something that another operator has to meet. Exactly one of its
// fields after FailureMessage is set.
type Constraint struct {
	// FailureMessage says in the author's words why it is there; mostly empty.
	FailureMessage string

	// GVK asks for an operator that brings an API.
	GVK *bundles.GVK
	// Package asks for a version of a package.
	Package *PackageRange
	// Label asks for an operator that bears a label.
	Label string
	// All, Any and Not combine others: every one, at least one, none of them.
	All, Any, Not []Constraint
	// Rule is an expression in CEL over an operator's properties.
	Rule *Rule

	// owner is whose it is; nil for a member of another constraint.
	owner *Owner
}

// PackageRange is a package and the versions of it that will do.
type PackageRange struct {
	Name string
	// Range is as it was written, in the grammar of github.com/blang/semver.
	Range  string
	covers semver.Range
}

// compound says whether the constraint takes more than a look at a list.
func (c *Constraint) compound() bool {
	return c.GVK == nil && c.Package == nil && c.Label == ""
}

// alone gives the verdict on a constraint that is not compound.
func (c *Constraint) alone(s *Subject) Verdict {
	met := false
	switch {
	case c.GVK != nil:
		met = slices.Contains(s.GVKs, *c.GVK)
	case c.Package != nil:
		met = c.Package.metBy(s)
	case c.Label != "":
		met = slices.Contains(s.Labels, c.Label)
	}
	if met {
		return Met
	}
	return Unmet
}

// metBy says whether an operator is of the package and its version in the range,
// which nobody knows of one that does not say its version.
func (p *PackageRange) metBy(s *Subject) bool {
	return s.Package == p.Name && !s.Version.Equals(semver.Version{}) && p.covers(s.Version)
}

// wanting says whether the constraint asks for something to be there, an API, a
// package or a label, rather than saying what will do.
func (c *Constraint) wanting() bool {
	switch {
	case c.All != nil:
		return slices.ContainsFunc(c.All, func(c Constraint) bool { return c.wanting() })
	case c.Any != nil:
		return !slices.ContainsFunc(c.Any, func(c Constraint) bool { return !c.wanting() })
	default:
		return c.Not == nil && c.Rule == nil
	}
}

// maxParts bounds into how many parts a constraint is split.
const maxParts = 16

// Split gives constraints that several operators may meet in place of one that
// meets this one by itself: for an All that asks for several things to be
// there, one for each of them, joined with what All says besides. It gives nil
// for others, and where there are very many. Which operators may share is
// described in decision 18.
func (c *Constraint) Split() []Constraint {
	if c.All == nil {
		return nil
	}
	var wanted, filters []Constraint
	for _, member := range flatten(nil, c.All) {
		if member.wanting() {
			wanted = append(wanted, member)
		} else {
			filters = append(filters, member)
		}
	}
	if len(wanted) < 2 || len(wanted) > maxParts {
		return nil
	}
	if len(filters) > 1 {
		// All parts have them in common, so that they are there once.
		filters = []Constraint{{All: filters}}
	}
	parts := make([]Constraint, len(wanted))
	for i := range wanted {
		parts[i] = Constraint{FailureMessage: c.FailureMessage, All: slices.Concat(wanted[i:i+1], filters), owner: c.owner}
	}
	return parts
}

// flatten puts the members of an All within an All in its place.
func flatten(to, all []Constraint) []Constraint {
	for i := range all {
		if all[i].All != nil {
			to = flatten(to, all[i].All)
		} else {
			to = append(to, all[i])
		}
	}
	return to
}
