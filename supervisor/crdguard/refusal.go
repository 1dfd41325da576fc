package crdguard

import "fmt"

// Reason is why a plan may not write a definition.
type Reason string

const (
	// ProtectedGroup is for kinds of an API group on which the supervisor depends.
	ProtectedGroup Reason = "ProtectedGroup"
	// ConversionURL is for a conversion webhook at a URL.
	ConversionURL Reason = "ConversionURL"
	// ConversionService is for a conversion webhook behind a Service outside the plan's
	// namespace.
	ConversionService Reason = "ConversionService"
	// ForeignManager is for a definition that no lifecycle manager made.
	ForeignManager Reason = "ForeignManager"
	// OtherPackage is for a definition that was installed with another package.
	OtherPackage Reason = "OtherPackage"
)

// RefusalError is the error for a definition that a plan may not write.
type RefusalError struct {
	// Reason is what code decides by.
	Reason Reason
	// CRD is the name of the definition.
	CRD string
	// Problem and Remedy are for people.
	Problem, Remedy string
}

// Error returns the reason, the problem and the remedy.
func (r *RefusalError) Error() string {
	return fmt.Sprintf("CustomResourceDefinition %s is refused (%s): %s; %s", r.CRD, r.Reason, r.Problem, r.Remedy)
}

// Permanent reports whether the refusal depends on the bundle alone, so that the same plan
// never succeeds. Other refusals depend on the OperatorGroup or on the cluster.
func (r *RefusalError) Permanent() bool {
	return r.Reason == ProtectedGroup || r.Reason == ConversionURL
}

func (r Request) refusal(reason Reason, problem, remedy string) *RefusalError {
	return &RefusalError{Reason: reason, CRD: r.Name, Problem: problem, Remedy: remedy}
}
