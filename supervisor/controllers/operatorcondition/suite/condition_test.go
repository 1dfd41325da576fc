package suite_test

import (
	"testing"

	"github.com/onsi/gomega"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestOperatorReports reports Upgradeable=False with the operator's own permissions. An
// administrator then overrides it.
func TestOperatorReports(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	w.Create(version(own), version("lid.v1"))
	condition := &operatorsv2.OperatorCondition{}
	w.appears(condition, func(g gomega.Gomega) {
		g.Expect(condition.Spec.Deployments).To(gomega.Equal([]string{"kettle"}))
		g.Expect(condition.Spec.ServiceAccounts).To(gomega.Equal([]string{account}))
		g.Expect(condition.OwnerReferences).To(gomega.HaveLen(1))
	})
	shows := func(status metav1.ConditionStatus) {
		t.Helper()
		w.appears(condition, func(g gomega.Gomega) {
			shown := apimeta.FindStatusCondition(condition.Status.Conditions, operatorsv2.Upgradeable)
			g.Expect(shown).NotTo(gomega.BeNil())
			g.Expect(shown.Status).To(gomega.Equal(status))
			g.Expect(shown.ObservedGeneration).To(gomega.Equal(condition.Generation))
		})
	}
	change := func(by client.Client, with func(*operatorsv2.OperatorConditionSpec)) error {
		changed := condition.DeepCopy()
		with(&changed.Spec)
		return by.Patch(t.Context(), changed, client.MergeFrom(condition))
	}
	reports := func(spec *operatorsv2.OperatorConditionSpec) { spec.Conditions = upgradeable(metav1.ConditionFalse) }

	operator := w.operator()
	w.Eventually(func() error { return change(operator, reports) }).Should(gomega.Succeed())
	shows(metav1.ConditionFalse)
	// A user omits lastTransitionTime.
	override := `{"spec":{"overrides":[{"type":"Upgradeable","status":"True","reason":"Known","message":"it is safe"}]}}`
	w.Expect(w.Patch(t.Context(), condition.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(override)))).To(gomega.Succeed())
	shows(metav1.ConditionTrue)
	w.Expect(w.Patch(t.Context(), condition.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"overrides":null}}`)))).To(gomega.Succeed())
	shows(metav1.ConditionFalse)
	w.Expect(change(operator, func(spec *operatorsv2.OperatorConditionSpec) { spec.Conditions = nil })).To(gomega.Succeed())
	w.appears(condition, func(g gomega.Gomega) { g.Expect(condition.Status.Conditions).To(gomega.BeEmpty()) })

	// The operator has no permissions on other OperatorConditions in its namespace.
	other := &operatorsv2.OperatorCondition{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "spout.v1"}}
	w.Create(other)
	condition = other
	if err := change(operator, reports); !apierrors.IsForbidden(err) {
		t.Errorf("an operator wrote to the OperatorCondition of another one: %v", err)
	}
}

// TestGoesWithItsVersion deletes a version and waits for the deletion of its objects.
func TestGoesWithItsVersion(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	csv := version(own)
	w.Create(csv)
	w.appears(&rbacv1.RoleBinding{})
	w.Expect(w.Delete(t.Context(), csv)).To(gomega.Succeed())
	w.absent(&operatorsv2.OperatorCondition{})
	w.absent(&rbacv1.RoleBinding{})
	w.absent(&rbacv1.Role{})
}

// TestSpecStaysWhileAnUpgradeWaits edits a version while another version replaces it. The
// generation, which reports are compared with, must not change until the other version is gone.
func TestSpecStaysWhileAnUpgradeWaits(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	running, next := version(own), version("kettle.v2")
	next.Spec.Replaces = own
	w.Create(running, next)
	condition, binding := &operatorsv2.OperatorCondition{}, &rbacv1.RoleBinding{}
	w.appears(binding)
	w.appears(condition)
	before := condition.DeepCopy()

	patch := client.MergeFrom(running.DeepCopy())
	running.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.ServiceAccountName = "other"
	w.Expect(w.Patch(t.Context(), running, patch)).To(gomega.Succeed())
	w.appears(binding, func(g gomega.Gomega) {
		g.Expect(binding.Subjects).To(gomega.ConsistOf(gomega.HaveField("Name", "other")))
	})
	w.appears(condition, func(g gomega.Gomega) {
		g.Expect(condition.Spec).To(gomega.Equal(before.Spec))
		g.Expect(condition.Generation).To(gomega.Equal(before.Generation))
	})

	w.Expect(w.Delete(t.Context(), next)).To(gomega.Succeed())
	w.appears(condition, func(g gomega.Gomega) { g.Expect(condition.Spec.ServiceAccounts).To(gomega.Equal([]string{"other"})) })
}

// TestRepairs damages each object in each way and waits for the repair.
func TestRepairs(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	w.Create(version(own))
	meta := metav1.ObjectMeta{Namespace: w.Namespace, Name: own}
	role, binding := &rbacv1.Role{}, &rbacv1.RoleBinding{}
	for name, damage := range map[string]func() error{
		"no condition": func() error { return w.Delete(t.Context(), &operatorsv2.OperatorCondition{ObjectMeta: meta}) },
		"no role":      func() error { return w.Delete(t.Context(), &rbacv1.Role{ObjectMeta: meta}) },
		"no binding":   func() error { return w.Delete(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta}) },
		"other rules": func() error {
			role.Rules = nil
			return w.Update(t.Context(), role)
		},
		"other subjects": func() error {
			binding.Subjects[0].Name = "thief"
			return w.Update(t.Context(), binding)
		},
		"another role": func() error {
			other := binding.DeepCopy()
			other.ResourceVersion, other.UID, other.RoleRef.Name = "", "", "admin"
			if err := w.Delete(t.Context(), binding); err != nil {
				return err
			}
			return client.IgnoreAlreadyExists(w.Client.Create(t.Context(), other))
		},
	} {
		whole := func() {
			condition := &operatorsv2.OperatorCondition{}
			w.appears(condition)
			w.appears(role, func(g gomega.Gomega) {
				g.Expect(role.Rules).To(gomega.HaveLen(1))
				g.Expect(role.OwnerReferences).To(gomega.ContainElement(gomega.HaveField("UID", condition.UID)))
			})
			w.appears(binding, func(g gomega.Gomega) {
				g.Expect(binding.RoleRef.Name).To(gomega.Equal(own))
				g.Expect(binding.Subjects).To(gomega.HaveLen(1))
				g.Expect(binding.Subjects[0].Name).To(gomega.Equal(account))
			})
		}
		whole()
		// Garbage collection may delete the objects in between. The damage requires that they
		// exist.
		w.Eventually(func() error {
			w.appears(role)
			w.appears(binding)
			return damage()
		}).Should(gomega.Succeed(), name)
		whole()
	}
}

// TestForeignRoleIsLeftAlone has a role of another owner with the needed name.
func TestForeignRoleIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	foreign := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: own}}
	w.Create(foreign)
	w.supervise()
	w.Create(version(own))
	w.appears(&rbacv1.RoleBinding{})
	told := &eventsv1.EventList{}
	w.Eventually(func(g gomega.Gomega) {
		g.Expect(w.List(t.Context(), told, client.InNamespace(w.Namespace))).To(gomega.Succeed())
		g.Expect(told.Items).To(gomega.ContainElement(gomega.HaveField("Reason", "OperatorConditionRoleTaken")))
	}).Should(gomega.Succeed())
	now := &rbacv1.Role{}
	w.appears(now, func(g gomega.Gomega) { g.Expect(now.ResourceVersion).To(gomega.Equal(foreign.ResourceVersion)) })

	w.Expect(w.Delete(t.Context(), foreign)).To(gomega.Succeed())
	w.appears(now, func(g gomega.Gomega) { g.Expect(now.Rules).NotTo(gomega.BeEmpty()) })
}

// TestRest checks that an idle cluster causes no writes, and that a second supervisor finds nothing
// to change. A copy of a version has no OperatorCondition.
func TestRest(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	copied := version("copied.v1")
	copied.Labels = map[string]string{"olm.copiedFrom": "elsewhere"}
	w.Create(copied, version(own))
	w.appears(&rbacv1.RoleBinding{})
	condition := &operatorsv2.OperatorCondition{}
	w.appears(condition)
	changed := condition.DeepCopy()
	changed.Spec.Conditions = upgradeable(metav1.ConditionTrue)
	w.Expect(w.Patch(t.Context(), changed, client.MergeFrom(condition))).To(gomega.Succeed())
	w.appears(condition, func(g gomega.Gomega) { g.Expect(condition.Status.Conditions).To(gomega.HaveLen(1)) })

	before := w.EventuallyIdle(w.written)
	w.Consistently(func() []string { return w.written()[before:] }).Should(gomega.BeEmpty())
	w.supervise()
	w.Consistently(func() []string { return w.written()[before:] }).Should(gomega.BeEmpty())
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(copied), &operatorsv2.OperatorCondition{}); !apierrors.IsNotFound(err) {
		t.Errorf("the OperatorCondition of a copy: %v", err)
	}
}
