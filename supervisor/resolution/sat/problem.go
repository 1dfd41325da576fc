package sat

import (
	"fmt"
	"slices"
)

// ID identifies a variable; IDs count from zero.
type ID int

// Kind is the type of a Constraint.
type Kind int

// The kinds of constraints.
const (
	// Mandatory: Variable is taken.
	Mandatory Kind = iota + 1
	// Prohibited: Variable is not taken.
	Prohibited
	// Dependency: if Variable is taken, at least one of Others is. The first one is preferred to the second, and so
	// on. Without Others it cannot be met. With Variable among them it demands nothing.
	Dependency
	// Conflict: Variable and every one of Others exclude each other. Variable among Others has no effect: no variable
	// excludes itself.
	Conflict
	// AtMost: at most Limit of Others are taken; one named twice counts once. Variable is ignored.
	AtMost
)

// String returns the name of the kind.
func (k Kind) String() string {
	names := []string{"", "Mandatory", "Prohibited", "Dependency", "Conflict", "AtMost"}
	if k < Mandatory || k > AtMost {
		return fmt.Sprintf("Kind(%d)", int(k))
	}
	return names[k]
}

// Constraint is one demand.
type Constraint struct {
	Kind     Kind
	Variable ID
	Others   []ID
	Limit    int
}

// Problem is a number of variables and the constraints on them.
type Problem struct {
	Variables   int
	Constraints []Constraint
}

// validate returns an error for a problem without a meaning.
func (p Problem) validate() error {
	if p.Variables < 0 {
		return fmt.Errorf("a problem of %d variables: the number must not be negative", p.Variables)
	}
	for i, c := range p.Constraints {
		if err := p.validateOne(c); err != nil {
			return fmt.Errorf("constraint %d: %w", i, err)
		}
	}
	return nil
}

func (p Problem) validateOne(c Constraint) error {
	if c.Kind < Mandatory || c.Kind > AtMost {
		return fmt.Errorf("kind %d is none of Mandatory, Prohibited, Dependency, Conflict and AtMost", int(c.Kind))
	}
	if c.Kind == AtMost && c.Limit < 0 {
		return fmt.Errorf("AtMost with the limit %d: it must not be negative", c.Limit)
	}
	if c.Kind != AtMost && !p.has(c.Variable) {
		return fmt.Errorf("%s names variable %d, of %d that count from 0", c.Kind, c.Variable, p.Variables)
	}
	if c.Kind < Dependency {
		return nil
	}
	for _, other := range c.Others {
		if !p.has(other) {
			return fmt.Errorf("%s names variable %d among its others, of %d that count from 0",
				c.Kind, other, p.Variables)
		}
	}
	return nil
}

func (p Problem) has(id ID) bool { return id >= 0 && int(id) < p.Variables }

// demands reports whether a Dependency demands anything.
func (c Constraint) demands() bool {
	return c.Kind == Dependency && !slices.Contains(c.Others, c.Variable)
}
