package suite_test

import (
	"testing"

	"github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/controllers/operatorgroup"
)

func apiRoles() []string { return []string{"-v1-admin", "-v1-edit", "-v1-view", "-v1-crdview"} }

// TestRolesOfAGroupGatherThoseOfItsAPIs installs an operator, checks the rules that Kubernetes
// aggregates in the roles of its group, and removes the operator.
func TestRolesOfAGroupGatherThoseOfItsAPIs(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	crd, og, csv := w.lamps(), group(w.Namespace, w.Namespace), w.operator(w.Namespace, "Lamp")
	w.Create(og, csv)
	w.succeed(csv)
	w.EventuallySucceeds(func(g gomega.Gomega) {
		for _, suffix := range apiRoles() {
			role := w.role(crd.Name + suffix)
			g.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(role), role)).To(gomega.Succeed())
			g.Expect(role.OwnerReferences).To(gomega.HaveLen(1))
			g.Expect(role.OwnerReferences[0].UID).To(gomega.Equal(crd.UID))
		}
		roles := w.rolesOf(g, w.Namespace)
		g.Expect(roles).To(gomega.HaveLen(3))
		g.Expect(roles["admin"].Rules).To(gomega.HaveLen(1))
		g.Expect(roles["admin"].Rules[0].Verbs).To(gomega.Equal([]string{"*"}))
		g.Expect(roles["view"].Rules).To(gomega.HaveLen(2))
	})
	w.staysQuiet()

	w.remove(csv)
	w.EventuallySucceeds(func(g gomega.Gomega) {
		for level, role := range w.rolesOf(g, w.Namespace) {
			g.Expect(role.Rules).To(gomega.BeEmpty(), "the role %s still allows something", level)
		}
	})
	// Users of custom resources keep their access until the definition is deleted.
	admin := w.role(crd.Name + "-v1-admin")
	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(admin), admin)).To(gomega.Succeed())
	w.remove(crd)
	w.EventuallyGone(admin)
	w.staysQuiet()
}

func TestRolesAreKeptAsTheyShouldBe(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	crd, og, csv := w.lamps(), group(w.Namespace, w.Namespace), w.operator(w.Namespace, "Lamp")
	w.Create(og, csv)
	w.succeed(csv)
	admin, edit := w.role(crd.Name+"-v1-admin"), w.role(crd.Name+"-v1-edit")
	w.EventuallySucceeds(func(g gomega.Gomega) {
		g.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(admin), admin)).To(gomega.Succeed())
		g.Expect(w.rolesOf(g, w.Namespace)).To(gomega.HaveLen(3))
	})

	w.Modify(admin, func() { admin.Rules, admin.Labels["team"] = nil, "kitchen" })
	w.remove(edit)
	for _, role := range w.rolesOf(w.WithT, w.Namespace) {
		w.remove(role)
	}
	w.EventuallySucceeds(func(g gomega.Gomega) {
		g.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(admin), admin)).To(gomega.Succeed())
		g.Expect(admin.Rules).To(gomega.HaveLen(1))
		g.Expect(admin.Labels).To(gomega.HaveKeyWithValue("team", "kitchen"))
		g.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(edit), edit)).To(gomega.Succeed())
		g.Expect(w.rolesOf(g, w.Namespace)).To(gomega.HaveLen(3))
	})
}

func TestNoRolesBeforeTheAPIIsThere(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	w.Create(group(w.Namespace, w.Namespace))
	lying := w.operator(w.Namespace, "Lamp")
	lying.Spec.CustomResourceDefinitions.Owned[0].Kind = "Secret"
	w.Create(lying)
	crd := w.lamps()
	w.succeed(lying)
	w.staysQuiet()
	for _, suffix := range apiRoles() {
		w.EventuallyGone(w.role(crd.Name + suffix))
	}
}

func TestForeignRoleIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	crd, og, csv := w.lamps(), group(w.Namespace, w.Namespace), w.operator(w.Namespace, "Lamp")
	foreign := w.role(crd.Name + "-v1-admin")
	foreign.Rules = []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}
	w.Create(foreign, og, csv)
	t.Cleanup(func() { w.stillExists(foreign) })
	version := foreign.ResourceVersion
	w.succeed(csv)
	w.EventuallySucceeds(func(g gomega.Gomega) {
		var list eventsv1.EventList
		g.Expect(w.List(t.Context(), &list, client.InNamespace(w.Namespace))).To(gomega.Succeed())
		var reasons []string
		for i := range list.Items {
			reasons = append(reasons, list.Items[i].Reason)
		}
		g.Expect(reasons).To(gomega.ContainElement(operatorgroup.ForeignRoleReason))
		edit := w.role(crd.Name + "-v1-edit")
		g.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(edit), edit)).To(gomega.Succeed())
	})
	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign)).To(gomega.Succeed())
	w.Expect(foreign.ResourceVersion).To(gomega.Equal(version))
}

// TestTakesOverWhatOLMMade starts with roles as OLM leaves them: aggregated rules of a removed
// operator, and an owner reference that the garbage collector does not resolve.
func TestTakesOverWhatOLMMade(t *testing.T) {
	w := newWorld(t)
	stop := w.supervise()
	crd, og, csv := w.lamps(), group(w.Namespace, w.Namespace), w.operator(w.Namespace, "Lamp")
	w.Create(og)
	var made map[string]*rbacv1.ClusterRole
	w.EventuallySucceeds(func(g gomega.Gomega) {
		made = w.rolesOf(g, w.Namespace)
		g.Expect(made).To(gomega.HaveLen(3))
	})
	stop()
	old := map[string]*rbacv1.ClusterRole{}
	asOLM := client.FieldOwner("olm")
	for level, role := range made {
		w.remove(role)
		old[level] = &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name, Labels: role.Labels},
			Rules:      []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"gone.example.com"}, Resources: []string{"stale"}}},
		}
		w.Expect(w.Client.Create(t.Context(), old[level], asOLM)).To(gomega.Succeed())
	}
	admin := w.role(crd.Name + "-v1-admin")
	admin.Labels = map[string]string{"olm.managed": "true", "rbac.authorization.k8s.io/aggregate-to-admin": "true"}
	admin.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apiextensions.k8s.io/v1", Kind: "customresourcedefinition", Name: crd.Name, UID: crd.UID,
	}}
	w.Expect(w.Client.Create(t.Context(), admin, asOLM)).To(gomega.Succeed())
	uid := admin.UID
	w.Create(csv)
	w.succeed(csv)

	w.supervise()
	w.EventuallySucceeds(func(g gomega.Gomega) {
		for level, role := range w.rolesOf(g, w.Namespace) {
			g.Expect(role.UID).To(gomega.Equal(old[level].UID))
			g.Expect(role.AggregationRule).NotTo(gomega.BeNil())
			for _, rule := range role.Rules {
				g.Expect(rule.APIGroups).NotTo(gomega.ContainElement("gone.example.com"))
			}
		}
		g.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(admin), admin)).To(gomega.Succeed())
		g.Expect(admin.UID).To(gomega.Equal(uid))
		g.Expect(admin.Rules).To(gomega.HaveLen(1))
		g.Expect(admin.OwnerReferences).To(gomega.HaveLen(1))
		g.Expect(admin.OwnerReferences[0].Kind).To(gomega.Equal("CustomResourceDefinition"))
	})
	w.staysQuiet()
}
