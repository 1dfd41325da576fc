package api

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
)

// maxOperatorPullSecrets is the maximum number of Secrets that a CatalogSource names for its operators. Every pod of
// every operator has all of them.
const maxOperatorPullSecrets = 16

// OperatorPullSecrets returns the Secrets that the annotations of a CatalogSource name for the pods of its operators,
// each once. The error names the annotation and the remedy.
func OperatorPullSecrets(annotations map[string]string) ([]string, error) {
	var names []string
	for name := range strings.SplitSeq(annotations[AnnotationOperatorPullSecrets], ",") {
		if name = strings.TrimSpace(name); name == "" || slices.Contains(names, name) {
			continue
		}
		if len(validation.NameIsDNSSubdomain(name, false)) > 0 {
			return nil, fmt.Errorf("the annotation %s has %q, which is no name of a Secret; write names of Secrets, separated by commas",
				AnnotationOperatorPullSecrets, name)
		}
		if names = append(names, name); len(names) > maxOperatorPullSecrets {
			return nil, fmt.Errorf("the annotation %s names more than %d Secrets; put credentials for several registries into one Secret",
				AnnotationOperatorPullSecrets, maxOperatorPullSecrets)
		}
	}
	return names, nil
}
