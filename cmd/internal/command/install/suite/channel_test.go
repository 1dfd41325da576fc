package suite_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/testenv"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// slow is a channel of the package compass that leads from version 2.0.0 to another one than the channel stable.
const slow = `---
schema: olm.channel
package: compass
name: slow
entries:
- name: compass.v2.0.0
- name: compass.v2.1.0
  replaces: compass.v2.0.0
`

// catalogDir returns a copy of the example catalog with the channel slow.
func catalogDir(t *testing.T, c *cluster) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(c.root, "examples", "catalog"))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "compass", "slow.yaml"), []byte(slow), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// testChannelChange changes the channel while an InstallPlan of the old channel waits for approval.
func testChannelChange(t *testing.T, c *cluster) {
	t.Helper()
	patience := testenv.Patience.String()
	out, _ := c.run(t, 0, "install", "compass", "-n", "bridge", "--version", "2.0.0", "--approval", "Manual", "--yes")
	contains(t, out, "Approve its InstallPlan: kubectl chandlery approve compass -n bridge --wait")
	out, _ = c.run(t, 0, "approve", "compass", "-n", "bridge", "--wait", "--yes", "--timeout", patience)
	contains(t, out, "installs compass.v2.0.0", "is approved")
	c.run(t, 0, "wait", "compass", "-n", "bridge", "--for", "approval", "--timeout", patience)
	out, _ = c.run(t, 2, "upgrade", "compass", "-n", "bridge", "--version", "9.9.9", "-o", "json")
	contains(t, out, `"outcome": "blocked"`, `has no upgrade to version \"9.9.9\"`)
	testForbiddenChannel(t, c)
	testUpgradeFromManifests(t, c)
	out, _ = c.run(t, 0, "upgrade", "compass", "-n", "bridge", "--channel", "slow", "--timeout", patience)
	contains(t, out, "Upgrade of Subscription bridge/compass from compass.v2.0.0 to compass.v2.1.0", "Subscription bridge/compass has compass.v2.1.0 installed.")
	var plans operatorsv1alpha1.InstallPlanList
	if err := c.List(t.Context(), &plans, client.InNamespace("bridge")); err != nil {
		t.Fatal(err)
	}
	for i := range plans.Items {
		if p := &plans.Items[i]; p.Spec.ClusterServiceVersionNames[0] == "compass.v2.2.0" {
			t.Errorf("InstallPlan %s of the old channel exists; it has approved %t", p.Name, p.Spec.Approved)
		}
	}
	c.run(t, 0, "remove", "compass", "-n", "bridge", "--crds", "--yes")
}

// testForbiddenChannel changes the channel as a user who may change Subscriptions, but not approve InstallPlans.
func testForbiddenChannel(t *testing.T, c *cluster) {
	t.Helper()
	const user = "bridge-editor"
	kubeconfig, err := c.cp.NewKubeconfig(user)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range fixtures.ClusterRole(user, fixtures.User(user),
		rbacv1.PolicyRule{APIGroups: []string{operatorsv1alpha1.GroupName, apiextensionsv1.GroupName}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{operatorsv1alpha1.GroupName}, Resources: []string{"subscriptions"}, Verbs: []string{"patch"}},
	) {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	as := func(code int, args ...string) (out, log string) {
		return c.exec(t, code, exec.CommandContext(t.Context(), program("kubectl-chandlery"), append(args, "-n", "bridge", "--kubeconfig", kubeconfig)...))
	}
	const rule = "the missing rule: {apiGroups: [operators.coreos.com], resources: [installplans], verbs: [patch]}"
	out, log := as(3, "upgrade", "compass", "--channel", "slow", "-o", "json")
	contains(t, log, "nothing was changed: you lack permission to approve the InstallPlans of namespace bridge; "+rule)
	contains(t, out, `"outcome": "blocked"`, `"problem": "nothing was changed`)
	sub := &operatorsv1alpha1.Subscription{}
	if !c.exists(t, sub, "bridge", "compass") || sub.Spec.Channel != "stable" {
		t.Errorf("the Subscription has channel %s", sub.Spec.Channel)
	}
	_, log = as(3, "upgrade", "compass", "--yes")
	contains(t, log, "approving InstallPlan bridge/", rule)
	_, log = as(3, "catalog", "add", "more", "--address", "localhost:1")
	contains(t, log, "the missing rule: {apiGroups: [operators.coreos.com], resources: [catalogsources], verbs: [create]}")
}

// testUpgradeFromManifests plans an upgrade as a user with permissions in one namespace only.
func testUpgradeFromManifests(t *testing.T, c *cluster) {
	t.Helper()
	const namespace, user = "bridge", "bridge-viewer"
	kubeconfig, err := c.cp.NewKubeconfig(user)
	if err != nil {
		t.Fatal(err)
	}
	entry := func(version string) any { return map[string]any{"name": "compass.v" + version, "version": version} }
	objects := append(fixtures.Role(namespace, user, fixtures.User(user), rbacv1.PolicyRule{
		APIGroups: []string{operatorsv1alpha1.GroupName, manifestGroup}, Resources: []string{"*"}, Verbs: []string{"get", "list"},
	}), packageManifest(namespace, "sample", "compass", map[string]any{
		"name": "stable", "currentCSV": "compass.v2.2.0", "currentCSVDesc": map[string]any{"displayName": "Compass", "version": "2.2.0"},
		"entries": []any{entry("2.2.0"), entry("2.0.0")},
	}))
	for _, o := range objects {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	as := func(code int, args ...string) (out, log string) {
		args = append([]string{"upgrade", "compass", "-n", namespace, "--kubeconfig", kubeconfig}, args...)
		return c.exec(t, code, exec.CommandContext(t.Context(), program("kubectl-chandlery"), args...))
	}
	out, _ := as(0, "--dry-run")
	contains(t, out, "Upgrade of Subscription bridge/compass from compass.v2.0.0 to compass.v2.2.0",
		"the plan is from PackageManifests, without dependencies and upgrade paths", "permission to list catalogsources.operators.coreos.com in namespace olm is missing")
	out, _ = as(2, "--channel", "nosuch")
	contains(t, out, "set --channel to one of stable")
}
