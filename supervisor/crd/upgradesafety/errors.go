package upgradesafety

import "fmt"

// Reason is the reason why a plan may not write a definition.
type Reason string

const (
	// ProtectedGroup means that the kind is in an API group on which the supervisor depends.
	ProtectedGroup Reason = "ProtectedGroup"
	// ConversionURL means that the conversion webhook has a URL.
	ConversionURL Reason = "ConversionURL"
	// ConversionService means that the conversion webhook has a Service outside the plan's namespace.
	ConversionService Reason = "ConversionService"
	// ForeignManager means that no lifecycle manager created the definition.
	ForeignManager Reason = "ForeignManager"
	// OtherPackage means that the definition was installed with another package.
	OtherPackage Reason = "OtherPackage"
)

// RefusalError is the error for a definition that a plan may not write.
type RefusalError struct {
	// Reason is the reason for programs.
	Reason Reason
	// CRD is the name of the definition.
	CRD string
	// Problem and Remedy are texts for users.
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
