package plansteps

import "fmt"

// CopiedVersionError means that a copied ClusterServiceVersion has the name of the version that a plan installs. A
// copy owns nothing and is deleted with its original. The plan must not replace it: the permissions of an operator in
// another namespace depend on it.
type CopiedVersionError struct {
	// Namespace is the namespace of the copy, and Name is the name of the copy and of the original.
	Namespace, Name string
	// From is the namespace of the original.
	From string
}

// Error returns the reason and the remedy.
func (e *CopiedVersionError) Error() string { return e.Reason() + "; " + e.Remedy() }

// Reason returns which namespace has the original.
func (e *CopiedVersionError) Reason() string {
	return fmt.Sprintf("ClusterServiceVersion %s/%s is a copy: the operator is installed in namespace %s and also serves this namespace", e.Namespace, e.Name, e.From)
}

// Remedy returns how the plan continues.
func (e *CopiedVersionError) Remedy() string {
	return "remove it there, remove this namespace from the targets of its OperatorGroup, or delete the Subscription here"
}
