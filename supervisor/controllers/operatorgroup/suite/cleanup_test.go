package suite_test

import (
	"fmt"
	"testing"

	"github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRolesGoWithTheGroup(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	og := group(w.Namespace, w.Namespace)
	w.Create(og)
	w.EventuallySucceeds(func(g gomega.Gomega) { g.Expect(w.rolesOf(g, w.Namespace)).To(gomega.HaveLen(3)) })
	w.remove(og)
	w.EventuallySucceeds(func(g gomega.Gomega) { g.Expect(w.rolesOf(g, w.Namespace)).To(gomega.BeEmpty()) })
}

// TestGroupGoneWhileNoSupervisorRan disconnects a supervisor after a number of writes. The next
// supervisor must complete the cleanup. Roles of other owners must stay.
func TestGroupGoneWhileNoSupervisorRan(t *testing.T) {
	for limit := range int64(5) {
		t.Run(fmt.Sprintf("CutOffAfter%d", limit), func(t *testing.T) {
			w := newWorld(t)
			stop := w.supervise()
			og := group(w.Namespace, w.Namespace)
			w.Create(og)
			w.EventuallySucceeds(func(g gomega.Gomega) { g.Expect(w.rolesOf(g, w.Namespace)).To(gomega.HaveLen(3)) })
			stop()
			bystander := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
				Name:   "bystander-" + w.Namespace,
				Labels: map[string]string{"olm.owner": "group", "olm.owner.kind": "OperatorGroup", "olm.owner.namespace": w.Namespace},
			}}
			w.Create(bystander)
			t.Cleanup(func() { w.stillExists(bystander) })
			w.remove(og)

			cut, crash := w.superviseFor(limit)
			w.EventuallySucceeds(func(g gomega.Gomega) {
				if !cut() {
					g.Expect(w.rolesOf(g, w.Namespace)).To(gomega.BeEmpty())
				}
			})
			crash()
			w.supervise()
			w.EventuallySucceeds(func(g gomega.Gomega) { g.Expect(w.rolesOf(g, w.Namespace)).To(gomega.BeEmpty()) })
		})
	}
}
