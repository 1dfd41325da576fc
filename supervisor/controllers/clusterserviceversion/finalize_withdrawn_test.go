package clusterserviceversion

import (
	"testing"

	"github.com/chandlery/chandlery/supervisor/api"
)

// TestWithdrawnLeavesResources shows that nothing is looked for, let alone deleted, where
// another version goes on with it.
func TestWithdrawnLeavesResources(t *testing.T) {
	for _, way := range []string{api.WithdrawnToReturn, api.WithdrawnToInstall} {
		csv := cupOwner("a", "a")
		csv.Spec.Cleanup.Enabled = true
		csv.Annotations[api.AnnotationWithdrawn] = way
		left, err := (&reconciler{}).cleanResources(t.Context(), &cleanup{csv: csv})
		if err != nil || !left.none() {
			t.Errorf("%s: left %+v, error %v", way, left, err)
		}
	}
}
