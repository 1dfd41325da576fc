package cleanup

import (
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/api"
)

// TestCleanUpLeavesResources checks that no custom resources are listed or deleted where another version continues
// with them, or where no user requests their deletion.
func TestCleanUpLeavesResources(t *testing.T) {
	annotated := func(key, value string) func(*operatorsv1alpha1.ClusterServiceVersion) {
		return func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.Annotations[key] = value }
	}
	for name, tc := range map[string]struct {
		reason string
		change func(*operatorsv1alpha1.ClusterServiceVersion)
	}{
		"Unasked":   {"the version does not request it", func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.Spec.Cleanup.Enabled = false }},
		"Skipped":   {"a user has decided that they stay", annotated(api.AnnotationSkipCleanup, "true")},
		"ToReturn":  {"the operator returns to an older version", annotated(api.AnnotationWithdrawn, api.WithdrawnToReturn)},
		"ToInstall": {"an older version is installed instead", annotated(api.AnnotationWithdrawn, api.WithdrawnToInstall)},
		"Replaced": {"a newer version has replaced it, and may not own the kind", func(csv *operatorsv1alpha1.ClusterServiceVersion) {
			csv.Status.Phase = operatorsv1alpha1.CSVPhaseDeleting
		}},
	} {
		t.Run(name, func(t *testing.T) {
			csv := cupOwner("a", "a")
			csv.Spec.Cleanup.Enabled = true
			tc.change(csv)
			left, err := (resourceCleaner{}).clean(t.Context(), &cleanup{csv: csv})
			if err != nil || !left.isDone() {
				t.Errorf("%s: left %+v, error %v", tc.reason, left, err)
			}
		})
	}
}
