package suite_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/controllers/copiedcsv"
	"github.com/chandlery/chandlery/test/controlplane"
)

func TestCopiesFollowTheTargets(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	pantry, cellar, garden := controlplane.Namespace(t), controlplane.Namespace(t), controlplane.Namespace(t)
	group, csv := w.installs(w.Namespace, pantry, cellar)
	for _, namespace := range []string{pantry, cellar} {
		w.granted(namespace, w.copied(csv, namespace), rules("get", "list"))
	}
	w.Expect(w.absent(bare(garden))).To(gomega.BeTrue(), "there is a copy where none is wanted")

	w.targets(group, csv, w.Namespace, pantry, garden)
	w.granted(garden, w.copied(csv, garden), rules("get", "list"))
	w.EventuallyGone(bindingIn(cellar))
	w.EventuallyGone(roleIn(cellar))
	w.EventuallyGone(bare(cellar))
}

func TestCopiesFollowTheVersion(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	pantry := controlplane.Namespace(t)
	_, csv := w.installs(pantry)
	w.copied(csv, pantry)

	w.phase(csv, operatorsv1alpha1.CSVPhaseFailed)
	w.copied(csv, pantry)
	change(w, csv, func(c *operatorsv1alpha1.ClusterServiceVersion) {
		c.Spec.Description = "Boils more water."
		c.Spec.Icon = nil
		c.Annotations["alm-examples"] = "[{}]"
		c.Spec.InstallStrategy.StrategySpec.Permissions[0].Rules = rules("get", "list", "watch")
	})
	change(w, roleIn(w.Namespace), func(r *rbacv1.Role) { r.Rules = rules("get", "list", "watch") })
	found := w.copied(csv, pantry)
	w.Expect(found.Annotations).To(gomega.HaveKeyWithValue("alm-examples", "[{}]"))
	w.granted(pantry, found, rules("get", "list", "watch"))
}

func TestCopiesAreRepaired(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	pantry := controlplane.Namespace(t)
	_, csv := w.installs(pantry)
	found := w.copied(csv, pantry)
	w.granted(pantry, found, rules("get", "list"))

	change(w, found, func(c *operatorsv1alpha1.ClusterServiceVersion) {
		c.Spec.DisplayName = "Pot"
		delete(c.Labels, "olm.api.abc")
	})
	w.copied(csv, pantry)
	changeStatus(w, found, func(c *operatorsv1alpha1.ClusterServiceVersion) { c.Status.Phase = operatorsv1alpha1.CSVPhaseUnknown })
	w.copied(csv, pantry)
	change(w, roleIn(pantry), func(r *rbacv1.Role) { r.Rules = rules("*") })
	w.granted(pantry, found, rules("get", "list"))
	w.Expect(w.Delete(t.Context(), bindingIn(pantry))).To(gomega.Succeed())
	w.granted(pantry, found, rules("get", "list"))

	before := found.UID
	w.Expect(w.Delete(t.Context(), found)).To(gomega.Succeed())
	w.EventuallySucceeds(func(g gomega.Gomega) {
		g.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(found), found)).To(gomega.Succeed())
		g.Expect(found.UID).NotTo(gomega.Equal(before))
	})
	w.granted(pantry, w.copied(csv, pantry), rules("get", "list"))
}

func TestDanglingCopiesGo(t *testing.T) {
	w := newWorld(t)
	stop := w.supervise()
	pantry, cellar := controlplane.Namespace(t), controlplane.Namespace(t)
	_, csv := w.installs(pantry, cellar)
	w.granted(pantry, w.copied(csv, pantry), rules("get", "list"))
	w.granted(cellar, w.copied(csv, cellar), rules("get", "list"))

	stop()
	w.Expect(w.Delete(t.Context(), csv)).To(gomega.Succeed())
	w.EventuallyGone(csv)
	w.supervise()
	for _, namespace := range []string{pantry, cellar} {
		w.EventuallyGone(bindingIn(namespace))
		w.EventuallyGone(roleIn(namespace))
		w.EventuallyGone(bare(namespace))
	}
}

func TestCopiesStayWhileTheirVersionIsCleanedUpAfter(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	pantry := controlplane.Namespace(t)
	_, csv := w.installs(pantry)
	change(w, csv, func(c *operatorsv1alpha1.ClusterServiceVersion) { c.Finalizers = []string{"example.com/hold"} })
	w.granted(pantry, w.copied(csv, pantry), rules("get", "list"))

	w.Expect(w.Delete(t.Context(), csv)).To(gomega.Succeed())
	w.Consistently(func() bool { return w.absent(bare(pantry)) || w.absent(bindingIn(pantry)) }).Should(gomega.BeFalse(), "the operator lost its rights before its work was done")
	change(w, csv, func(c *operatorsv1alpha1.ClusterServiceVersion) { c.Finalizers = nil })
	w.EventuallyGone(bindingIn(pantry))
	w.EventuallyGone(bare(pantry))
}

func TestNothingOfOthersIsTouched(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	pantry, cellar := controlplane.Namespace(t), controlplane.Namespace(t)
	installed := w.kettle()
	installed.Namespace, installed.Spec.DisplayName = pantry, "Theirs"
	theirs := roleIn(cellar)
	theirs.Rules = rules("delete")
	w.Create(installed, theirs)

	_, csv := w.installs(pantry, cellar)
	w.copied(csv, cellar)
	w.EventuallySucceeds(func(g gomega.Gomega) {
		g.Expect(w.notes("CopyBlocked")).To(gomega.And(
			gomega.ContainElement(gomega.ContainSubstring("namespace "+pantry+": a ClusterServiceVersion with this name is installed there")),
			gomega.ContainElement(gomega.ContainSubstring("Role "+cellar+"/"+right+": it has another owner"))))
	})
	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(installed), installed)).To(gomega.Succeed())
	w.Expect(installed.Spec.DisplayName).To(gomega.Equal("Theirs"))
	w.Expect(installed.Labels).NotTo(gomega.HaveKey("olm.copiedFrom"))
	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs)).To(gomega.Succeed())
	w.Expect(theirs.Rules).To(gomega.Equal(rules("delete")))

	w.Expect(w.Delete(t.Context(), installed)).To(gomega.Succeed())
	w.copied(csv, pantry)
}

// TestForeignRolesBlockNothing has large roles with the labels of copied roles, in a namespace that the
// version does not serve.
func TestForeignRolesBlockNothing(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	pantry, elsewhere := controlplane.Namespace(t), controlplane.Namespace(t)
	var foreign []*rbacv1.Role
	for i := range 33 {
		role := roleIn(elsewhere)
		role.Name, role.Rules = fmt.Sprintf("foreign-%02d", i), large("pods")
		role.Labels = map[string]string{
			"olm.owner": name, "olm.owner.namespace": elsewhere, "olm.owner.kind": "ClusterServiceVersion", "olm.copiedFrom": w.Namespace,
		}
		w.Create(role)
		foreign = append(foreign, role)
	}
	group, csv := w.installs(pantry)
	w.granted(pantry, w.copied(csv, pantry), rules("get", "list"))
	change(w, csv, func(c *operatorsv1alpha1.ClusterServiceVersion) { c.Spec.Description = "Boils more water." })
	w.copied(csv, pantry)
	w.targets(group, csv, w.Namespace)
	w.EventuallyGone(roleIn(pantry))
	w.EventuallyGone(bare(pantry))
	w.quiet()
	for _, role := range foreign {
		version := role.ResourceVersion
		w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(role), role)).To(gomega.Succeed())
		w.Expect(role.ResourceVersion).To(gomega.Equal(version), "a foreign role has changed")
	}
}

// TestLargeRolesAreCopied has a version whose role is too large for the cache.
func TestLargeRolesAreCopied(t *testing.T) {
	w := newWorld(t)
	stop := w.supervise()
	pantry := controlplane.Namespace(t)
	_, csv := w.installs(pantry)
	change(w, csv, func(c *operatorsv1alpha1.ClusterServiceVersion) {
		c.Spec.InstallStrategy.StrategySpec.Permissions[0].Rules = large("configmaps")
	})
	change(w, roleIn(w.Namespace), func(r *rbacv1.Role) { r.Rules = large("configmaps") })
	found := w.copied(csv, pantry)
	w.granted(pantry, found, large("configmaps"))
	before := w.quiet()
	stop()
	w.supervise()
	if got := w.quiet(); got != before {
		t.Errorf("%d writes after a start that changed nothing", got-before)
	}
	change(w, roleIn(pantry), func(r *rbacv1.Role) { r.Rules = large("pods") })
	w.granted(pantry, found, large("configmaps"))
}

// large returns rules of more than 16 KiB.
func large(resource string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"get"},
		ResourceNames: strings.Split(strings.Repeat("x", 2<<10), ""),
	}}
}

func TestRolesThatAreNotDeclaredStayAtHome(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	pantry := controlplane.Namespace(t)
	_, csv := w.installs(pantry)
	w.granted(pantry, w.copied(csv, pantry), rules("get", "list"))

	_, role, binding := w.permissions()
	role.Name, role.Rules = "mallory", []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}
	binding.Name, binding.RoleRef.Name = "mallory", "mallory"
	w.Create(role, binding)
	stranger := binding.DeepCopy()
	stranger.ObjectMeta = metav1.ObjectMeta{Namespace: w.Namespace, Name: "stranger", Labels: binding.Labels}
	stranger.RoleRef.Name, stranger.Subjects = right, []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "mallory"}}
	w.Create(stranger)

	w.Consistently(func() []string {
		var roles rbacv1.RoleList
		var bindings rbacv1.RoleBindingList
		w.Expect(w.List(t.Context(), &roles, client.InNamespace(pantry))).To(gomega.Succeed())
		w.Expect(w.List(t.Context(), &bindings, client.InNamespace(pantry))).To(gomega.Succeed())
		var names []string
		for i := range roles.Items {
			names = append(names, roles.Items[i].Name)
		}
		for i := range bindings.Items {
			names = append(names, bindings.Items[i].Name)
		}
		return names
	}).Should(gomega.Equal([]string{right, right}))
}

func TestWritesArePaced(t *testing.T) {
	w := newWorld(t)
	const each, perSecond = 2, 4.0
	w.supervise(func(o *copiedcsv.Options) { o.Rate, o.Burst = perSecond, 1 })
	var targets []string
	for range 5 {
		targets = append(targets, controlplane.Namespace(t))
	}
	begin := time.Now()
	_, csv := w.installs(targets...)
	for _, namespace := range targets {
		w.copied(csv, namespace)
	}
	if took, least := time.Since(begin), time.Duration(float64(each*len(targets)-1)/perSecond*float64(time.Second)); took < least {
		t.Errorf("%d copies were there after %s, though their writes take %s at the least", len(targets), took, least)
	}
}
