package selection

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/chandlery/chandlery/bundles"
)

// facts are the properties and requirements of a bundle.
type facts struct {
	pkg      string
	version  semver.Version
	gvks     []bundles.GVK
	labels   []string
	requires []requirement
}

// requirement is something that a bundle requires of another one.
type requirement struct {
	constraint *bundles.Constraint
	// label is the required label if constraint is nil.
	label string
}

// label is the value of an olm.label or olm.label.required property.
type label struct {
	Label string `json:"label"`
}

// readFacts reads the properties of a bundle of a valid package.
func readFacts(b *bundles.Bundle, version semver.Version) (*facts, error) {
	out := &facts{pkg: b.Package, version: version}
	for i, p := range b.Properties {
		if err := out.add(p); err != nil {
			return nil, bundles.Problems{{
				File: b.Origin.String(), Package: b.Package, Bundle: b.Name,
				Message: fmt.Sprintf("properties[%d] of type %s: %v", i, bundles.Quote(p.Type), err), Remedy: "correct the property",
			}}
		}
	}
	return out, nil
}

func (f *facts) add(p bundles.Property) error {
	switch p.Type {
	case bundles.TypeGVK:
		var gvk bundles.GVK
		err := json.Unmarshal(p.Value, &gvk)
		f.gvks = append(f.gvks, gvk)
		return describe(err)
	case bundles.TypeLabel:
		var l label
		err := json.Unmarshal(p.Value, &l)
		f.labels = append(f.labels, l.Label)
		return describe(err)
	case bundles.TypeLabelRequired:
		var l label
		err := json.Unmarshal(p.Value, &l)
		f.requires = append(f.requires, requirement{label: l.Label})
		return describe(err)
	case bundles.TypeGVKRequired:
		c := &bundles.Constraint{GVK: &bundles.GVK{}}
		err := json.Unmarshal(p.Value, c.GVK)
		f.requires = append(f.requires, requirement{constraint: c})
		return describe(err)
	case bundles.TypePackageRequired:
		c := &bundles.Constraint{Package: &bundles.PackageRequired{}}
		err := json.Unmarshal(p.Value, c.Package)
		f.requires = append(f.requires, requirement{constraint: c})
		return describe(err)
	case bundles.TypeConstraint:
		c, err := bundles.DecodeConstraint(p.Value)
		f.requires = append(f.requires, requirement{constraint: c})
		return err
	}
	return nil
}

func describe(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("decoding value: %w", bundles.DescribeJSON(err))
}

// verdict is the result of checking whether a bundle meets a requirement.
type verdict int

// The verdicts. Their order permits combining the verdicts of several constraints with min and max.
const (
	unmet verdict = iota
	// undecided means that the result depends on an expression, which selections do not evaluate.
	undecided
	met
)

// by reports whether the bundle meets the requirement alone.
func (r requirement) by(f *facts) verdict {
	if r.constraint == nil {
		return verdictOf(slices.Contains(f.labels, r.label))
	}
	return constraintMet(r.constraint, f)
}

func constraintMet(c *bundles.Constraint, f *facts) verdict {
	switch {
	case c.GVK != nil:
		return verdictOf(slices.Contains(f.gvks, *c.GVK))
	case c.Package != nil:
		return verdictOf(f.pkg == c.Package.PackageName && inRange(f.version, c.Package.VersionRange))
	case c.All != nil:
		out := met
		for i := range c.All.Constraints {
			out = min(out, constraintMet(&c.All.Constraints[i], f))
		}
		return out
	case c.Any != nil:
		return anyMet(c.Any, f)
	case c.Not != nil:
		return met - anyMet(c.Not, f)
	case c.CEL != nil:
		return undecided
	default:
		return unmet
	}
}

// inRange reports whether a version is in a range. An invalid range contains no version.
func inRange(version semver.Version, text string) bool {
	covers, err := bundles.ParseRange(text)
	return err == nil && covers(version)
}

func anyMet(list *bundles.ConstraintList, f *facts) verdict {
	out := unmet
	for i := range list.Constraints {
		out = max(out, constraintMet(&list.Constraints[i], f))
	}
	return out
}

func verdictOf(is bool) verdict {
	if is {
		return met
	}
	return unmet
}

// wanting reports whether the requirement requires a bundle to exist.
func (r requirement) wanting() bool { return r.constraint == nil || constraintWants(r.constraint) }

func constraintWants(c *bundles.Constraint) bool {
	switch {
	case c.All != nil:
		return slices.ContainsFunc(c.All.Constraints, func(c bundles.Constraint) bool { return constraintWants(&c) })
	case c.Any != nil:
		return !slices.ContainsFunc(c.Any.Constraints, func(c bundles.Constraint) bool { return !constraintWants(&c) })
	default:
		return c.GVK != nil || c.Package != nil
	}
}

// parts returns the members of an "all" that require a bundle to exist. Together they are
// equivalent to the requirement if several bundles may meet it.
func (r requirement) parts() []requirement {
	if r.constraint == nil || r.constraint.All == nil {
		return nil
	}
	var out []requirement
	for i := range r.constraint.All.Constraints {
		if part := (requirement{constraint: &r.constraint.All.Constraints[i]}); part.wanting() {
			out = append(out, part)
		}
	}
	return out
}

// packageName returns the package of every bundle that can meet the requirement; empty if bundles
// of several packages can.
func (r requirement) packageName() string {
	if r.constraint == nil || r.constraint.Package == nil {
		return ""
	}
	return r.constraint.Package.PackageName
}

// String returns a description of the requirement.
func (r requirement) String() string {
	if r.constraint == nil {
		return "a bundle with the label " + bundles.Quote(r.label)
	}
	return bundles.Clip(constraintText(r.constraint), maxText)
}

// maxText bounds a requirement in messages, in bytes.
const maxText = 500

func constraintText(c *bundles.Constraint) string {
	switch {
	case c.GVK != nil:
		return "the API " + c.GVK.String()
	case c.Package != nil:
		return fmt.Sprintf("package %s in the range %s", bundles.Quote(c.Package.PackageName), bundles.Quote(c.Package.VersionRange))
	case c.All != nil:
		return "all of (" + listText(c.All) + ")"
	case c.Any != nil:
		return "one of (" + listText(c.Any) + ")"
	case c.Not != nil:
		return "none of (" + listText(c.Not) + ")"
	case c.CEL != nil:
		return "the rule " + bundles.Quote(c.CEL.Rule)
	default:
		return "a constraint without content"
	}
}

func listText(list *bundles.ConstraintList) string {
	texts := make([]string, len(list.Constraints))
	for i := range list.Constraints {
		texts[i] = constraintText(&list.Constraints[i])
	}
	return strings.Join(texts, "; ")
}
