package constraint

import (
	"slices"

	"github.com/blang/semver/v4"

	"github.com/chandlery/chandlery/bundles"
)

// Constraint is a requirement on another operator. Exactly one of its fields after FailureMessage is set.
type Constraint struct {
	// FailureMessage is the author's reason for the constraint; often empty.
	FailureMessage string

	// GVK requires an operator that provides an API.
	GVK *bundles.GVK
	// Package requires a version of a package.
	Package *PackageRange
	// Label requires an operator with a label.
	Label string
	// All, Any and Not combine others: every one, at least one, none of them.
	All, Any, Not []Constraint
	// Rule is an expression in CEL over an operator's properties.
	Rule *Rule

	// owner is the owner of the constraint; nil for a member of another constraint.
	owner *Owner
}

// PackageRange is a package with a range of its versions.
type PackageRange struct {
	Name string
	// Range is the original text, in the grammar of github.com/blang/semver.
	Range  string
	covers semver.Range
}

// compound reports whether the constraint requires more than a lookup in a list.
func (c *Constraint) compound() bool {
	return c.GVK == nil && c.Package == nil && c.Label == ""
}

// evaluateSimple returns the verdict on a constraint that is not compound.
func (c *Constraint) evaluateSimple(s *Subject) Verdict {
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

// metBy reports whether an operator belongs to the package and its version is in the range. An operator without
// a version is not in the range.
func (p *PackageRange) metBy(s *Subject) bool {
	return s.Package == p.Name && !s.Version.Equals(semver.Version{}) && p.covers(s.Version)
}

// requiresPresence reports whether the constraint requires something to exist, an API, a package or a label,
// rather than excluding or filtering.
func (c *Constraint) requiresPresence() bool {
	switch {
	case c.All != nil:
		return slices.ContainsFunc(c.All, func(c Constraint) bool { return c.requiresPresence() })
	case c.Any != nil:
		return !slices.ContainsFunc(c.Any, func(c Constraint) bool { return !c.requiresPresence() })
	default:
		return c.Not == nil && c.Rule == nil
	}
}

// maxParts is the maximum number of parts of a split constraint.
const maxParts = 16

// Split returns constraints that several operators may meet together, in place of one that a single operator
// meets. For an All that requires several things, it returns one constraint for each of them, joined with the
// other members of All. It returns nil for others, and if there are very many. Decision 18 describes which
// operators may share.
func (c *Constraint) Split() []Constraint {
	if c.All == nil {
		return nil
	}
	var wanted, filters []Constraint
	for _, member := range flatten(nil, c.All) {
		if member.requiresPresence() {
			wanted = append(wanted, member)
		} else {
			filters = append(filters, member)
		}
	}
	if len(wanted) < 2 || len(wanted) > maxParts {
		return nil
	}
	if len(filters) > 1 {
		// All parts share the filters, so that they exist once.
		filters = []Constraint{{All: filters}}
	}
	parts := make([]Constraint, len(wanted))
	for i := range wanted {
		parts[i] = Constraint{FailureMessage: c.FailureMessage, All: slices.Concat(wanted[i:i+1], filters), owner: c.owner}
	}
	return parts
}

// flatten replaces a nested All by its members.
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
