package depcheck

// Allowance lets a type exceed the limits.
type Allowance struct {
	Size

	// Reason is the reason for the exception.
	Reason string
}

const divide = "has more than one responsibility"

// Allowances returns the types that may exceed the limits.
func Allowances() map[string]Allowance {
	return map[string]Allowance{
	}
}
