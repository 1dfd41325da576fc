package diagnosis

// CodeInfo says what a code of a finding means.
type CodeInfo struct {
	// Code is that of findings.
	Code string
	// Meaning says what is the matter.
	Meaning string
	// Remedy says what to do.
	Remedy string
}

// Codes lists the codes of all findings, in the order in which causes are looked for.
func Codes() []CodeInfo { return nil }
