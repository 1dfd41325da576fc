package bundles

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// The types of properties that label a bundle or state its requirements, besides those in [Facts].
const (
	TypeLabel         = "olm.label"
	TypeLabelRequired = "olm.label.required"
	TypeConstraint    = "olm.constraint"
)

// Constraint is the value of an olm.constraint property as it is written. In a
// valid one exactly one of the fields after FailureMessage is set.
type Constraint struct {
	// FailureMessage is the author's reason for the constraint; usually empty.
	FailureMessage string `json:"failureMessage"`
	// GVK requires a bundle that provides an API.
	GVK *GVK `json:"gvk"`
	// Package requires a version of a package.
	Package *PackageRequired `json:"package"`
	// All, Any and Not combine constraints: every one, at least one, none of them.
	All *ConstraintList `json:"all"`
	Any *ConstraintList `json:"any"`
	Not *ConstraintList `json:"not"`
	// CEL is an expression over the properties of a bundle.
	CEL *CELConstraint `json:"cel"`
}

// ConstraintList is the operand of All, Any and Not in a [Constraint].
type ConstraintList struct {
	Constraints []Constraint `json:"constraints"`
}

// CELConstraint is a rule in the Common Expression Language.
type CELConstraint struct {
	Rule string `json:"rule"`
}

// ErrTextBehind means that text follows the end of a value.
var ErrTextBehind = errors.New("there is more text behind the JSON")

// DecodeConstraint decodes the value of an olm.constraint property. Unknown fields are errors. It
// does not evaluate the constraint.
func DecodeConstraint(value []byte) (*Constraint, error) {
	var c Constraint
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return nil, fmt.Errorf("decoding value: %w", DescribeJSON(err))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("decoding value: %w", ErrTextBehind)
	}
	return &c, nil
}

// Alternatives returns the number of the mutually exclusive fields that are set.
func (c *Constraint) Alternatives() int {
	n := 0
	for _, set := range []bool{c.GVK != nil, c.Package != nil, c.All != nil, c.Any != nil, c.Not != nil, c.CEL != nil} {
		if set {
			n++
		}
	}
	return n
}
