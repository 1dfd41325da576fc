package suite_test

import (
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/apiserver/refusal"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// grant grants the ServiceAccount installer permissions in the namespace.
func (w *world) grant(name string, rules ...rbacv1.PolicyRule) {
	w.T.Helper()
	w.Create(fixtures.Role(w.Namespace, name, fixtures.ServiceAccount(w.Namespace, "installer"), rules...)...)
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// TestPlanHasTheRightsOfTheGroupsAccount executes a plan whose account lacks permissions, and grants
// them one by one.
func TestPlanHasTheRightsOfTheGroupsAccount(t *testing.T) {
	w := newWorld(t)
	group := w.group("group")
	group.Spec.ServiceAccountName = "installer"
	w.Create(group)
	w.UseDeployedRole()
	w.supervise(time.Second)
	w.plan(w.bundle(w.crd(), settings), true, plansteps.MaxInline)
	w.becomes(func(p *operatorsv1alpha1.InstallPlan) bool {
		c := installed(p)
		return p.Status.Phase == working && c.Reason == operatorsv1alpha1.InstallPlanReasonInstallCheckFailed &&
			c.Message == "please make sure the service account exists. sa=installer operatorgroup="+w.Namespace+"/group"
	})
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "installer"}}
	w.Create(account)
	lacks := func(what string, reason refusal.Reason) *operatorsv1alpha1.InstallPlan {
		return w.becomes(func(p *operatorsv1alpha1.InstallPlan) bool {
			return p.Status.Phase == working && strings.Contains(p.Status.Message, what) &&
				strings.Contains(p.Status.Message, "system:serviceaccount:"+w.Namespace+":installer") &&
				causedBy(p, reason, "grant ServiceAccount "+w.Namespace+"/installer this permission, or remove spec.serviceAccountName from OperatorGroup "+w.Namespace+"/group; the plan then continues automatically")
		})
	}
	p := lacks(`cannot create resource "clusterserviceversions"`, refusal.PermissionDenied)
	if ref := p.Status.AttenuatedServiceAccountRef; ref == nil || ref.Name != "installer" || ref.Namespace != w.Namespace || ref.Kind != "ServiceAccount" || ref.UID != account.UID {
		t.Errorf("the plan names the account %+v", ref)
	}
	w.grant("versions", rule(operatorsv1alpha1.GroupName, "clusterserviceversions", "create"))
	lacks(`cannot create resource "serviceaccounts"`, refusal.PermissionDenied)
	w.grant("accounts", rule("", "serviceaccounts", "create", "update"), rule(rbacv1.GroupName, "roles", "create", "update"), rule(rbacv1.GroupName, "rolebindings", "create", "update"))
	// An account cannot grant permissions that it lacks.
	lacks("is attempting to grant RBAC permissions not currently held", refusal.EscalationDenied)
	w.grant("pods", rule("", "pods", "get"))
	// The retry window is over: the plan waits for permissions without limit.
	lacks(`cannot create resource "configmaps"`, refusal.PermissionDenied)
	w.grant("settings", rule("", "configmaps", "create", "update"))
	p = w.reaches(complete)
	if got := statuses(p); got[1] != "CustomResourceDefinition=Created" {
		t.Errorf("steps %v", got)
	}
}
