package olmtext

import (
	"fmt"
	"strings"
)

// CopyingDisabled is the note of the Event DisabledCopiedCSVs of a version, as namespace/name.
func CopyingDisabled(csv string) string { return "CSV copying disabled for " + csv }

// AppliedWithWarnings is the note of the Event of the same name. The warnings are those that are listed, and count is the
// number of all. The version may be empty.
func AppliedWithWarnings(version, kind, name string, warnings []string, count int) string {
	during := "operator installation"
	if version != "" {
		during = fmt.Sprintf("installation of operator %q", version)
	}
	return fmt.Sprintf("%d warning(s) generated during %s (%s %q): %s", count, during, kind, name, strings.Join(warnings, ", "))
}

// ConversionTrusted is the note of the Event CRDValidation, about objects that only a conversion webhook can make valid.
func ConversionTrusted(crd, problem string) string {
	return fmt.Sprintf("Validation of existing CRs against the new CRD's schema failed, but a webhook conversion strategy was specified in the new CRD.\n"+
		"CRD: %q\nValidation Error: %s\n", crd, problem)
}
