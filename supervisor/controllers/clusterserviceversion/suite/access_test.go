package suite_test

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/delayedwatch"
	"github.com/chandlery/chandlery/test/testenv"
)

// soon bounds the time until a version is retried after a change of its permissions. Without a change it
// is retried after a minute.
const soon = 20 * time.Second

// refusedInstall is a version that failed because the account of its group may not create its
// Deployment.
type refusedInstall struct {
	*world

	group  *operatorsv1.OperatorGroup
	before *operatorsv1alpha1.ClusterServiceVersion
}

func newRefusedInstall(t *testing.T) *refusedInstall {
	t.Helper()
	r := &refusedInstall{world: newWorld(t)}
	r.group = r.world.group("own", r.Namespace)
	r.group.Spec.ServiceAccountName = "weak"
	r.Create(r.group, r.serviceAccount("weak"), r.kettle("kettle.v1"))
	r.reaches("kettle.v1", operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVReasonComponentFailedNoRetry)
	// A moment later, no more writes of the version follow.
	r.Eventually(func() bool {
		last := r.before
		r.before = r.csv("kettle.v1")
		return last != nil && last.ResourceVersion == r.before.ResourceVersion
	}).WithPolling(2 * time.Second).Should(gomega.BeTrue())
	if got := phases(r.before); got[len(got)-1] != operatorsv1alpha1.CSVPhaseFailed || slices.Index(got, operatorsv1alpha1.CSVPhaseFailed) != len(got)-1 {
		t.Fatalf("phases %v, want one failure at the end", got)
	}
	accountRefused(r.world, r.before)
	return r
}

func (r *refusedInstall) serviceAccount(name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: name}}
}

// role returns a role that allows its holders to create Deployments.
func (r *refusedInstall) role() *rbacv1.Role {
	return &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: "deploys"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"create", "patch", "update", "get"}}},
	}
}

func (r *refusedInstall) binding(kind, account string) *rbacv1.RoleBinding {
	name := "deploys"
	if kind == "ClusterRole" {
		name = "edit"
	}
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: r.Namespace, Name: account}},
	}
}

// names sets the account that the group names; empty for none.
func (r *refusedInstall) names(account string) {
	r.change(r.group, func() { r.group.Spec.ServiceAccountName = account })
}

// goesOn waits until the version has left Failed because of a change in the cluster.
func (r *refusedInstall) goesOn() {
	r.T.Helper()
	r.Eventually(func(g gomega.Gomega) {
		csv := r.csv("kettle.v1")
		g.Expect(csv.Status.Conditions).To(gomega.ContainElement(gomega.And(
			gomega.HaveField("Phase", operatorsv1alpha1.CSVPhasePending),
			gomega.HaveField("Reason", operatorsv1alpha1.CSVReasonDetectedClusterChange),
			gomega.HaveField("Message", "Cluster resources changed state"))))
	}).WithTimeout(soon).Should(gomega.Succeed())
}

// stays checks that the status of the version is not written.
func (r *refusedInstall) stays() {
	r.T.Helper()
	r.Consistently(func() operatorsv1alpha1.ClusterServiceVersionStatus { return r.csv("kettle.v1").Status }).
		WithTimeout(3 * time.Second).Should(gomega.BeComparableTo(r.before.Status))
}

// TestAccessOfTheGroup runs group R of the compatibility scenarios.
func TestAccessOfTheGroup(t *testing.T) {
	newWorld(t).supervise()
	for name, scenario := range testenv.Sample(t, map[string]func(*refusedInstall){
		"R1 the account is removed from the group": func(r *refusedInstall) {
			r.names("")
			r.goesOn()
			r.succeeds("kettle.v1")
			r.uncaused()
		},
		"R2 another account is named": func(r *refusedInstall) {
			r.Create(r.serviceAccount("strong"), r.role(), r.binding("Role", "strong"))
			r.stays()
			r.names("strong")
			r.goesOn()
			r.succeeds("kettle.v1")
			r.uncaused()
		},
		"R3 the right is given by a Role": func(r *refusedInstall) {
			r.Create(r.binding("Role", "weak"))
			r.stays()
			r.Create(r.role())
			r.goesOn()
			r.succeeds("kettle.v1")
			r.uncaused()
		},
		"R3 the right is given by a binding of a ClusterRole": func(r *refusedInstall) {
			r.Create(r.binding("ClusterRole", "weak"))
			r.goesOn()
			r.succeeds("kettle.v1")
			r.uncaused()
		},
		"R4 the account is deleted and made again": func(r *refusedInstall) {
			r.Expect(r.Delete(r.T.Context(), r.serviceAccount("weak"))).To(gomega.Succeed())
			r.Create(r.serviceAccount("weak"))
			r.goesOn()
		},
		"R8 an unrelated field of the group changes": func(r *refusedInstall) {
			r.change(r.group, func() { r.group.Spec.UpgradeStrategy = operatorsv1.UpgradeStrategyUnsafeFailForward })
			r.stays()
		},
	}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario(newRefusedInstall(t))
		})
	}
	t.Run("R7 R9 versions that wait or failed for something else are not written", func(t *testing.T) {
		t.Parallel()
		r := newRefusedInstall(t)
		const many = 50
		names := []string{"failed.v1"}
		invalid := r.kettle("failed.v1")
		invalid.Spec.InstallStrategy.StrategyName = "helm"
		r.Create(invalid)
		for i := range many - 2 {
			names = append(names, fmt.Sprintf("waits%d.v1", i))
			r.Create(r.kettle(names[i+1], owns(fmt.Sprintf("gone.w%d.%s.example.com", i, r.Namespace)), deploys(i)))
		}
		versions := func() map[string]string {
			list := &operatorsv1alpha1.ClusterServiceVersionList{}
			r.Expect(r.List(t.Context(), list, client.InNamespace(r.Namespace))).To(gomega.Succeed())
			out := map[string]string{}
			for i := range list.Items {
				if csv := &list.Items[i]; csv.Name != "kettle.v1" {
					out[csv.Name] = string(csv.Status.Phase) + " " + csv.ResourceVersion
				}
			}
			return out
		}
		var before map[string]string
		r.Eventually(func() bool {
			last := before
			before = versions()
			return len(before) == many-1 && fmt.Sprint(last) == fmt.Sprint(before)
		}).WithPolling(3 * time.Second).Should(gomega.BeTrue())
		r.names("")
		r.goesOn()
		r.succeeds("kettle.v1")
		r.Expect(versions()).To(gomega.Equal(before))
	})
}

// asNamed records the reads of groups by name, and the accounts that writes impersonate.
type asNamed struct {
	mu       sync.Mutex
	reads    int
	accounts []string
}

func (n *asNamed) wrap(next http.RoundTripper) http.RoundTripper {
	return noting(func(r *http.Request) (*http.Response, error) {
		n.mu.Lock()
		if r.Method == http.MethodGet && path.Base(path.Dir(r.URL.Path)) == "operatorgroups" {
			n.reads++
		}
		if user := r.Header.Get("Impersonate-User"); user != "" && r.Method != http.MethodGet {
			n.accounts = append(n.accounts, user)
		}
		n.mu.Unlock()
		return next.RoundTrip(r)
	})
}

type noting func(*http.Request) (*http.Response, error)

func (f noting) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (n *asNamed) seen() (reads int, accounts []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.reads, slices.Clone(n.accounts)
}

// TestNothingIsDoneWithAFormerAccount changes the account of a group, in its status too, while the
// cache of the controller lags behind (R5).
func TestNothingIsDoneWithAFormerAccount(t *testing.T) {
	r := &refusedInstall{world: newWorld(t)}
	noted, gate := &asNamed{}, delayedwatch.New("operatorgroups")
	r.Config.Wrap(noted.wrap)
	r.Config.Wrap(gate.Wrap)
	r.superviseWith(nil)
	r.group = r.world.group("own", r.Namespace)
	r.group.Spec.ServiceAccountName = "strong"
	r.Create(r.serviceAccount("strong"), r.serviceAccount("weak"), r.role(), r.binding("Role", "strong"), r.group)
	r.targets("strong")
	r.Create(r.kettle("kettle.v1", asks))
	r.reaches("kettle.v1", operatorsv1alpha1.CSVPhasePending, operatorsv1alpha1.CSVReasonRequirementsNotMet)

	release := gate.Hold()
	t.Cleanup(release)
	before, _ := noted.seen()
	r.names("weak")
	r.targets("weak")
	sa, role, binding := r.permissions("kettle.v1-role")
	r.Create(sa, role, binding)
	// The controller starts to install, and reads that the group names another account.
	r.Eventually(func() bool {
		reads, accounts := noted.seen()
		return reads > before || len(accounts) > 0
	}).Should(gomega.BeTrue())
	release()
	csv := r.reaches("kettle.v1", operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVReasonComponentFailedNoRetry)
	accountRefused(r.world, csv)
	_, accounts := noted.seen()
	// Versions of other tests may still exist.
	own := "system:serviceaccount:" + r.Namespace + ":"
	accounts = slices.DeleteFunc(accounts, func(account string) bool { return !strings.HasPrefix(account, own) })
	r.Expect(accounts).NotTo(gomega.BeEmpty())
	r.Expect(accounts).To(gomega.HaveEach(own + "weak"))
}

// targets writes the status of the group, in place of its controller.
func (r *refusedInstall) targets(account string) {
	r.T.Helper()
	r.Eventually(func() error {
		if err := r.Get(r.T.Context(), client.ObjectKeyFromObject(r.group), r.group); err != nil {
			return err
		}
		r.group.Status.Namespaces, r.group.Status.LastUpdated = []string{r.Namespace}, new(metav1.Now())
		r.group.Status.ServiceAccountRef = &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: r.Namespace, Name: account}
		return r.Status().Update(r.T.Context(), r.group)
	}).Should(gomega.Succeed())
}

// deploys returns a change that renames the Deployment.
func deploys(i int) func(*operatorsv1alpha1.ClusterServiceVersion) {
	return func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name = fmt.Sprint("waits", i)
	}
}
