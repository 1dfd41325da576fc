package copiedcsv

import (
	"fmt"
	"strconv"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// TestPassServesAllNamespaces has more roles to delete in one namespace than a pass has steps, and a copy
// to delete in another.
func TestPassServesAllNamespaces(t *testing.T) {
	s := fixtures.Scheme(t)
	o := seen([]string{"pantry"}, []string{"pantry", "cellar"})
	builder := fake.NewClientBuilder().WithScheme(s).WithObjects(&operatorsv1alpha1.ClusterServiceVersion{
		ObjectMeta: metav1.ObjectMeta{Namespace: "cellar", Name: "kettle.v1", UID: "uid-cellar"},
	})
	var granted rbac
	for i := range 2 * stepsPerPass {
		role := rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "pantry", Name: fmt.Sprintf("role-%03d", i), UID: types.UID(strconv.Itoa(i))}}
		builder.WithObjects(role.DeepCopy())
		granted.roles = append(granted.roles, role)
	}
	o.granted["pantry"] = granted
	counts, err := newCounts(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	c, now := builder.Build(), testclock.NewFakePassiveClock(noon())
	r := &reconciler{writer: writer{client: c, live: c, clock: now, limits: newLimits(1000, 1000), counts: counts}, clock: now, counts: counts}
	fp := fingerprint{content: digest{1}}
	h := knowing(fp, "pantry", "cellar")
	result := r.executeSteps(t.Context(), o, h, copyTemplate{key: o.key}, decide(o, h, fp))

	var versions operatorsv1alpha1.ClusterServiceVersionList
	var roles rbacv1.RoleList
	if err := c.List(t.Context(), &versions); err != nil || len(versions.Items) > 0 {
		t.Errorf("the copy in the other namespace stays: %d copies, error %v", len(versions.Items), err)
	}
	if err := c.List(t.Context(), &roles); err != nil || len(roles.Items) != 2*stepsPerPass-stepsPerNamespace {
		t.Errorf("%d roles are left, want %d; error %v", len(roles.Items), 2*stepsPerPass-stepsPerNamespace, err)
	}
	if result.RequeueAfter != continueDelay {
		t.Errorf("the next pass is after %s, want %s", result.RequeueAfter, continueDelay)
	}
}
