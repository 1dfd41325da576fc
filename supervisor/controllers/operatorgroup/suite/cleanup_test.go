package suite_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// cleanup returns a context for cleanups, which run after the test's own context has ended.
func cleanup(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(context.WithoutCancel(t.Context()), patience)
}

func TestRolesGoWithTheGroup(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	og := group(w.namespace, w.namespace)
	w.create(og)
	w.becomes(func(g gomega.Gomega) { g.Expect(w.rolesOf(g, w.namespace)).To(gomega.HaveLen(3)) })
	w.remove(og)
	w.becomes(func(g gomega.Gomega) { g.Expect(w.rolesOf(g, w.namespace)).To(gomega.BeEmpty()) })
}

// TestGroupGoneWhileNoSupervisorRan disconnects a supervisor after a number of writes. The next
// supervisor must complete the cleanup. Roles of other owners must stay.
func TestGroupGoneWhileNoSupervisorRan(t *testing.T) {
	for limit := range int64(5) {
		t.Run(fmt.Sprintf("CutOffAfter%d", limit), func(t *testing.T) {
			w := newWorld(t)
			first := w.supervise()
			og := group(w.namespace, w.namespace)
			w.create(og)
			w.becomes(func(g gomega.Gomega) { g.Expect(w.rolesOf(g, w.namespace)).To(gomega.HaveLen(3)) })
			first.stop()
			bystander := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
				Name:   "bystander-" + w.namespace,
				Labels: map[string]string{"olm.owner": "group", "olm.owner.kind": "OperatorGroup", "olm.owner.namespace": w.namespace},
			}}
			w.create(bystander)
			t.Cleanup(func() {
				ctx, cancel := cleanup(t)
				defer cancel()
				if err := w.Delete(ctx, bystander); err != nil {
					t.Errorf("the role of another owner: %v", err)
				}
			})
			w.remove(og)

			crashed := w.superviseFor(limit)
			w.becomes(func(g gomega.Gomega) {
				if crashed.writes.Load() <= limit {
					g.Expect(w.rolesOf(g, w.namespace)).To(gomega.BeEmpty())
				}
			})
			crashed.stop()
			w.supervise()
			w.becomes(func(g gomega.Gomega) { g.Expect(w.rolesOf(g, w.namespace)).To(gomega.BeEmpty()) })
		})
	}
}
