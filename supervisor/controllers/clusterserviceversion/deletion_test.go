package clusterserviceversion

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/cleanup"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// TestLeavesWhatAnotherOfTheNameOwns cleans up after a version that only the cache still has. A new
// version of its name exists, or is being deleted in turn, or there is none.
func TestLeavesWhatAnotherOfTheNameOwns(t *testing.T) {
	scheme := fixtures.Scheme(t)
	gone := kettle()
	gone.UID, gone.Finalizers, gone.DeletionTimestamp = "gone", []string{api.FinalizerCleanup}, &metav1.Time{Time: noon()}
	installed, leaving := gone.DeepCopy(), gone.DeepCopy()
	installed.UID, installed.DeletionTimestamp = "installed", nil
	leaving.UID = "leaving"
	for name, there := range map[string][]client.Object{"Installed": {installed}, "Leaving": {leaving}, "None": nil} {
		t.Run(name, func(t *testing.T) {
			role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "kettle", Labels: ownership.Labels(gone)}}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(there, role)...).Build()
			r := &reconciler{cleaner: cleanup.New(cleanup.Options{Client: c, Live: c})}
			if _, err := r.finalize(t.Context(), gone.DeepCopy()); err != nil {
				t.Error(err)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(role), role); err != nil {
				t.Error(err)
			}
		})
	}
}
