package bundles

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// The property types by which a bundle is labelled and requires others, besides
// those that [Facts] has.
const (
	TypeLabel         = "olm.label"
	TypeLabelRequired = "olm.label.required"
	TypeConstraint    = "olm.constraint"
)

// Constraint is the value of an olm.constraint property as it is written. In a
// valid one exactly one of the fields after FailureMessage is set.
type Constraint struct {
	// FailureMessage is the author's reason for the constraint; mostly empty.
	FailureMessage string `json:"failureMessage"`
	// GVK asks for a bundle that provides an API.
	GVK *GVK `json:"gvk"`
	// Package asks for a version of a package.
	Package *PackageRequired `json:"package"`
	// All, Any and Not combine others: every one, at least one, none of them.
	All *ConstraintList `json:"all"`
	Any *ConstraintList `json:"any"`
	Not *ConstraintList `json:"not"`
	// CEL is an expression over the properties of a bundle.
	CEL *CELConstraint `json:"cel"`
}

// ConstraintList is what All, Any and Not of a [Constraint] combine.
type ConstraintList struct {
	Constraints []Constraint `json:"constraints"`
}

// CELConstraint is a rule in the Common Expression Language.
type CELConstraint struct {
	Rule string `json:"rule"`
}

// ErrTextBehind says that a value goes on after its end.
var ErrTextBehind = errors.New("there is more text behind the JSON")

// DecodeConstraint decodes the value of an olm.constraint property. Unknown fields
// are errors. It does not judge what the constraint asks for.
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

// Alternatives returns how many of the fields are set that exclude each other.
func (c *Constraint) Alternatives() int {
	n := 0
	for _, set := range []bool{c.GVK != nil, c.Package != nil, c.All != nil, c.Any != nil, c.Not != nil, c.CEL != nil} {
		if set {
			n++
		}
	}
	return n
}
