package clusterserviceversion

import (
	"testing"

	"github.com/chandlery/chandlery/supervisor/api"
)

// TestWithdrawnLeavesResources checks that no custom resources are listed or deleted where another
// version continues with them.
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
