package compat_test

import (
	"fmt"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/pause"
)

// continueTime returns how long a version may stay Failed after the change that lets it be installed, and how long an
// InstallPlan may wait. OLM is slower.
func continueTime() time.Duration { return compattest.Limit(2*time.Second, compattest.Patience) }

// accountCase is a case whose OperatorGroup names an account, at first without permissions.
type accountCase struct {
	*compattest.Cluster

	t     *testing.T
	group *operatorsv1.OperatorGroup
	csv   *operatorsv1alpha1.ClusterServiceVersion
}

func newAccountCase(t *testing.T, c *compattest.Cluster) *accountCase {
	t.Helper()
	a := &accountCase{
		Cluster: c, t: t, csv: c.CSV("lamp.v1"),
		group: &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "group"}},
	}
	c.Make(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "installer"}})
	a.names("installer")
	return a
}

// set sets the account of the OperatorGroup. An empty name removes the account.
func (a *accountCase) set(account string) {
	a.t.Helper()
	value := "null"
	if account != "" {
		value = fmt.Sprintf("%q", account)
	}
	mergePatch(a.t, a.Cluster, a.group, `{"spec":{"serviceAccountName":`+value+`}}`)
}

// names sets the account of the OperatorGroup, and waits for its status.
func (a *accountCase) names(account string) {
	a.t.Helper()
	a.set(account)
	a.Eventually(compattest.Patience, func() string {
		if left := a.Read(a.group); left != "" {
			return left
		}
		if ref := a.group.Status.ServiceAccountRef; account == "" && ref == nil || ref != nil && ref.Name == account {
			return ""
		}
		return "the status names another account"
	})
}

// fails creates the version, and waits until it fails.
func (a *accountCase) fails() {
	a.t.Helper()
	a.Make(a.csv)
	reaches(a.Cluster, a.csv, operatorsv1alpha1.CSVPhaseFailed, "")
	pause.For(a.t.Context(), time.Second)
}

// continues waits until the version is no longer Failed, and then until it succeeds.
func (a *accountCase) continues() {
	a.t.Helper()
	a.Eventually(continueTime(), func() string {
		if left := a.Read(a.csv); left != "" {
			return left
		}
		if a.csv.Status.Phase == operatorsv1alpha1.CSVPhaseFailed {
			return "the phase is Failed"
		}
		return ""
	})
	reaches(a.Cluster, a.csv, operatorsv1alpha1.CSVPhaseSucceeded, "")
	for _, condition := range a.csv.Status.Conditions {
		if condition.Reason == operatorsv1alpha1.CSVReasonDetectedClusterChange && condition.Message == "Cluster resources changed state" {
			return
		}
	}
	a.t.Errorf("no condition has the reason DetectedClusterChange: %v", a.csv.Status.Conditions)
}

// everything are the rules of an account that may do anything.
func everything() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}
}

func (a *accountCase) subjects(account string) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: a.Namespace, Name: account}}
}

// allows binds an account of the namespace to a Role with all permissions.
func (a *accountCase) allows(account string) {
	a.t.Helper()
	meta := metav1.ObjectMeta{Namespace: a.Namespace, Name: account + "-installs"}
	a.Make(&rbacv1.Role{ObjectMeta: meta, Rules: everything()})
	a.Make(&rbacv1.RoleBinding{
		ObjectMeta: meta, Subjects: a.subjects(account), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
	})
}

// allowsEverywhere binds the account to a ClusterRole.
func (a *accountCase) allowsEverywhere(rules []rbacv1.PolicyRule) {
	a.t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: a.Namespace + "-installs"}, Rules: rules}
	a.Make(role)
	a.Make(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, Subjects: a.subjects("installer"),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
	})
}

// TestGroupAccounts checks how versions and InstallPlans react to changes of the account and its permissions.
func TestGroupAccounts(t *testing.T) {
	t.Parallel()
	// The last write of a change lets the version be installed.
	failed := func(id string, prepare, change func(*accountCase)) {
		compattest.Check(t, id, func(t *testing.T, c *compattest.Cluster) {
			a := newAccountCase(t, c)
			prepare(a)
			a.fails()
			change(a)
			a.continues()
		})
	}
	failed("R1", func(*accountCase) {}, func(a *accountCase) { a.set("") })
	failed("R2", func(a *accountCase) {
		a.Make(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: "other"}})
		a.allows("other")
	}, func(a *accountCase) { a.set("other") })
	failed("R3-Role", func(*accountCase) {}, func(a *accountCase) { a.allows("installer") })
	failed("R3-Binding", func(*accountCase) {}, func(a *accountCase) { a.allowsEverywhere(everything()) })
	failed("R3-ClusterRole", func(a *accountCase) { a.allowsEverywhere(nil) }, func(a *accountCase) {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: a.Namespace + "-installs"}}
		mergePatch(a.t, a.Cluster, role, `{"rules":`+a.Manifest(everything())+`}`)
	})
	compattest.Check(t, "R4", func(t *testing.T, c *compattest.Cluster) {
		a := newAccountCase(t, c)
		a.fails()
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "installer"}}
		if err := c.Delete(t.Context(), account); err != nil {
			t.Fatal(err)
		}
		account = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "installer"}}
		c.Make(account)
		c.Eventually(continueTime(), func() string {
			if left := c.Read(a.csv); left != "" {
				return left
			}
			for _, condition := range a.csv.Status.Conditions {
				if condition.Reason == operatorsv1alpha1.CSVReasonDetectedClusterChange {
					return ""
				}
			}
			return fmt.Sprintf("conditions %v", a.csv.Status.Conditions)
		})
	})
}

// TestAccountsOfPlans checks plans whose account may not write an object.
func TestAccountsOfPlans(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "R6", func(t *testing.T, c *compattest.Cluster) {
		a := newAccountCase(t, c)
		role := rbacv1.Role{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"}, ObjectMeta: metav1.ObjectMeta{Name: "shade"},
			Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}},
		}
		entry := lampEntry(c, a.csv, "1.0.0")
		entry.Objects = append(entry.Objects, c.Manifest(role))
		c.Catalog("shelf", fakecatalog.Simple("lamp", entry))
		sub := c.Subscribe("shelf", "lamp", func(s *operatorsv1alpha1.Subscription) { s.Spec.Channel = "stable" })
		plan := &operatorsv1alpha1.InstallPlan{}
		c.Eventually(compattest.Patience, func() string {
			if left := c.Read(sub); left != "" || sub.Status.InstallPlanRef == nil {
				return "no InstallPlan " + left
			}
			plan.Namespace, plan.Name = c.Namespace, sub.Status.InstallPlanRef.Name
			if left := c.Read(plan); left != "" {
				return left
			}
			if plan.Status.Phase != operatorsv1alpha1.InstallPlanPhaseInstalling || plan.Status.Message == "" || plan.Status.AttenuatedServiceAccountRef == nil {
				return fmt.Sprintf("phase %s, message %q, account %v", plan.Status.Phase, plan.Status.Message, plan.Status.AttenuatedServiceAccountRef)
			}
			return ""
		})
		a.set("")
		c.Eventually(continueTime(), func() string {
			if left := c.Read(plan); left != "" {
				return left
			}
			if plan.Status.Phase != operatorsv1alpha1.InstallPlanPhaseComplete || plan.Status.AttenuatedServiceAccountRef != nil {
				return fmt.Sprintf("phase %s, message %q, account %v", plan.Status.Phase, plan.Status.Message, plan.Status.AttenuatedServiceAccountRef)
			}
			return ""
		})
	})
}

// TestFormerAccounts checks that the former account of an OperatorGroup is not used.
func TestFormerAccounts(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "R5", func(t *testing.T, c *compattest.Cluster) {
		a := newAccountCase(t, c)
		a.allows("installer")
		c.Make(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "other"}})
		end := refuse(t, c, requests{"operators.coreos.com", "operatorgroups/status", admissionregistrationv1.Update, ""})
		mergePatch(t, c, a.group, `{"spec":{"serviceAccountName":"other"}}`)
		pause.For(t.Context(), 5*time.Second)
		end()
		a.names("other")
		c.Make(a.csv)
		reaches(c, a.csv, operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVReasonComponentFailedNoRetry)
		if left := lacks(a.csv.Status.Message, "system:serviceaccount:"+c.Namespace+":other"); left != "" {
			t.Error(left)
		}
		if left := c.Read(deploymentOf(a.csv)); left == "" {
			t.Error("the Deployment exists")
		}
	})
}

// versionsOf creates versions.
func versionsOf(c *compattest.Cluster, name string, n int) []*operatorsv1alpha1.ClusterServiceVersion {
	var all []*operatorsv1alpha1.ClusterServiceVersion
	for i := range n {
		csv := c.CSV(fmt.Sprintf("%s-%d.v1", name, i))
		c.Make(csv)
		all = append(all, csv)
	}
	return all
}

// TestUnconcernedVersions checks what a change of the account does not write.
func TestUnconcernedVersions(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "R7", func(t *testing.T, c *compattest.Cluster) {
		a := newAccountCase(t, c)
		a.allows("installer")
		running := versionsOf(c, "running", 10)
		for _, csv := range running {
			reaches(c, csv, operatorsv1alpha1.CSVPhaseSucceeded, "")
		}
		binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "installer-installs"}}
		if err := c.Delete(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
		// The authorizer notices the deletion later.
		pause.For(t.Context(), restTime)
		failed := versionsOf(c, "failed", 40)
		for _, csv := range failed {
			reaches(c, csv, operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVReasonComponentFailedNoRetry)
		}
		statuses := func() map[string]string {
			all := map[string]string{}
			for _, csv := range running {
				if left := c.Read(csv); left != "" {
					t.Fatal(left)
				}
				all[csv.GetName()] = c.Manifest(csv.Status)
			}
			return all
		}
		pause.For(t.Context(), restTime)
		before := statuses()
		a.names("")
		for _, csv := range failed {
			reaches(c, csv, operatorsv1alpha1.CSVPhaseSucceeded, "")
		}
		pause.For(t.Context(), restTime)
		for name, status := range statuses() {
			if status != before[name] {
				t.Errorf("the status of %s was %s, is %s", name, before[name], status)
			}
		}
	})
	compattest.Check(t, "R8", func(t *testing.T, c *compattest.Cluster) {
		a := newAccountCase(t, c)
		a.fails()
		mergePatch(t, c, a.group, `{"metadata":{"annotations":{"compat.example/seen":"yes"}}}`)
		c.Make(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: a.Namespace + "-unrelated"}})
		c.AtRest(restTime, a.csv)
	})
	compattest.Check(t, "R9", func(t *testing.T, c *compattest.Cluster) {
		a := newAccountCase(t, c)
		onlyAllNamespaces(a.csv)
		c.Make(a.csv)
		reaches(c, a.csv, operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVReasonUnsupportedOperatorGroup)
		// The cause is written after the phase.
		pause.For(t.Context(), restTime)
		a.names("")
		c.AtRest(restTime, a.csv)
	})
}
