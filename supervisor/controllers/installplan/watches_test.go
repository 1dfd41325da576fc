package installplan

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
)

// TestGrantsRequeueNoPlan has a temporary grant of the supervisor, which grants the account of
// a plan nothing.
func TestGrantsRequeueNoPlan(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "chandlery-check-lamps.example", Labels: map[string]string{api.LabelGrant: "true"}}
	for _, o := range []client.Object{&rbacv1.ClusterRole{ObjectMeta: meta}, &rbacv1.ClusterRoleBinding{ObjectMeta: meta}} {
		// Without a client it cannot list plans.
		if got := (&planMapper{}).withRights(t.Context(), o); got != nil {
			t.Errorf("%T requeues %v", o, got)
		}
	}
}
