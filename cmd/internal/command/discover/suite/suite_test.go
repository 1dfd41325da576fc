package suite_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/cmd/internal/command/discover"
	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/testenv"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

func TestMain(m *testing.M) {
	os.Exit(testenv.Main(m, controlplane.Options{Nodes: -1}, testenv.InstallCRDs, prepare))
}

// prepare creates the Lease of a running supervisor.
func prepare(ctx context.Context, cp *controlplane.ControlPlane) error {
	c, err := client.New(cp.Config(), client.Options{})
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	holder, duration := "supervisor-0", int32(15)
	for _, obj := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "harbour"}},
		// A Deployment with OLM's labels need not be OLM.
		deployment("shop-catalog", "shop"),
		&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "harbour", Name: api.LeaseName},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &holder, LeaseDurationSeconds: &duration,
				// The Lease must not become stale while the tests run.
				RenewTime: &metav1.MicroTime{Time: time.Now().Add(time.Hour)},
			},
		},
		&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "stale"},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &duration, RenewTime: &metav1.MicroTime{Time: time.Now().Add(-time.Hour)}},
		},
	} {
		if err := c.Create(ctx, obj); err != nil {
			return fmt.Errorf("creating %s: %w", obj.GetName(), err)
		}
	}
	return nil
}

// deployment returns a Deployment with OLM's labels that runs a program.
func deployment(name, program string) *appsv1.Deployment {
	labels := map[string]string{"app": "catalog-operator"}
	d := fixtures.Deployment("default", name, "main")
	d.Labels, d.Spec.Selector.MatchLabels, d.Spec.Template.Labels = labels, labels, labels
	d.Spec.Template.Spec.Containers[0].Command = []string{"/bin/" + program}
	return d
}

// adminRights returns a binding that grants all permissions to the service account of a Deployment,
// as OLM has them.
func adminRights(d *appsv1.Deployment) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: d.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: d.Namespace, Name: "default"}},
	}
}

// run runs the command as a program would, and returns its output and its exit code.
func run(t *testing.T, args ...string) (stdout, stderr string, code console.Code) {
	t.Helper()
	var out, errOut bytes.Buffer
	root := &cobra.Command{Use: "supervisor", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(discover.New("supervisor", "test"))
	root.SetOut(&out)
	root.SetErr(&errOut)
	root.SetArgs(append([]string{"discover"}, args...))
	code = console.Report(&errOut, "supervisor", root.ExecuteContext(t.Context()))
	if testing.Verbose() {
		t.Logf("discover %s\n%s%sexit code %d", strings.Join(args, " "), &out, &errOut, code)
	}
	return out.String(), errOut.String(), code
}

// unreachable returns a kubeconfig of an API server that does not exist.
func unreachable(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	content := `{"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c"}}],
		"clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}]}`
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOLMReconcilesItsKinds(t *testing.T) {
	w := testenv.New(t)
	olm := deployment("catalog-operator", "catalog")
	w.Create(olm, adminRights(olm))
	out, _, code := run(t, "subscriptions", "--kubeconfig", controlplane.Get(t).Kubeconfig())
	if code != console.Degraded || !strings.Contains(unwrapped(out), "its operator does not run: Deployment default/catalog-operator") {
		t.Errorf("an OLM without pods: exit code %d, want %d, and that it is named:\n%s", code, console.Degraded, out)
	}
}

// unwrapped returns a text without line breaks and indentation.
func unwrapped(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestDiscover(t *testing.T) {
	admin := controlplane.Get(t).Kubeconfig()
	for name, tc := range map[string]struct {
		reason string
		args   []string
		code   console.Code
		out    []string
	}{
		"Everything": {
			"what the supervisor can do without is not missed",
			[]string{},
			console.Fine,
			[]string{
				"CatalogSource.operators.coreos.com", "Lease harbour/chandlery-supervisor (holder supervisor-0)",
				"Not installed, and optional: Proxy.v1.config.openshift.io",
			},
		},
		"WideAll": {
			"where there is room, reasons are given",
			[]string{"-o", "wide"},
			console.Fine,
			[]string{
				"Proxy.v1.config.openshift.io is not installed: the API server does not serve",
				"It is optional: bundles may contain ServiceMonitors",
			},
		},
		"Elsewhere": {
			"a supervisor is looked for where one says; what is the same for all is said once",
			[]string{"--supervisor-namespace", "default"},
			console.Degraded,
			[]string{"Each is installed, but no operator reconciles it: Lease\n  default/chandlery-supervisor does not exist"},
		},
		"Core":       {"core kinds have no group", []string{"pods"}, console.Fine, []string{"Pod.v1", "Installed"}},
		"Named":      {"what is named is missed", []string{"ServiceMonitor"}, console.Negative, []string{"NotInstalled", "To do: install the operator"}},
		"Lookup":     {"the version is looked up", []string{"deployments.apps"}, console.Fine, []string{"Deployment.apps", "v1"}},
		"OtherOne":   {"other versions are named", []string{"subscriptions.v1.operators.coreos.com"}, console.Negative, []string{"subscriptions.v1.operators.coreos.com  NotInstalled", "the kind only at v1alpha1"}},
		"Forbidden":  {"the rights are told of", []string{"subscriptions", "-n", "shop", "--as", "alice"}, console.Forbidden, []string{"you lack permission to list", "--role"}},
		"Wide":       {"and shown", []string{"subscriptions", "--as", "alice", "-o", "wide"}, console.Forbidden, []string{"    kind: ClusterRole\n", "      name: alice\n"}},
		"Stale":      {"the Lease of an operator", []string{"configmaps", "--lease", "default/stale"}, console.Degraded, []string{"Degraded", "does not renew", "check the pods"}},
		"Nobody":     {"and Deployments", []string{"configmaps", "--selector", "app=none"}, console.Degraded, []string{"no operator reconciles it", "there are no Deployments"}},
		"Worst":      {"the worst counts", []string{"pods", "widgets.example.com", "secrets", "--as", "alice"}, console.Forbidden, []string{"NotInstalled", "Forbidden"}},
		"Syntax":     {"a path is no API", []string{"a/b"}, console.Failed, nil},
		"Loose":      {"the operator of no API", []string{"--owned"}, console.Failed, nil},
		"HalfName":   {"a Lease has a namespace", []string{"pods", "--lease", "x"}, console.Failed, nil},
		"NoSuchForm": {"forms are listed", []string{"-o", "xml"}, console.Failed, nil},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, code := run(t, append(tc.args, "--kubeconfig", admin)...)
			if code != tc.code {
				t.Errorf("%s: exit code %d, want %d\n%s%s", tc.reason, code, tc.code, out, errOut)
			}
			for _, want := range tc.out {
				if !strings.Contains(out, want) && !strings.Contains(unwrapped(out), want) {
					t.Errorf("%s: it lacks %q:\n%s", tc.reason, want, out)
				}
			}
			if tc.code == console.Failed && !strings.HasPrefix(errOut, "supervisor: ") {
				t.Errorf("%s: it says %q", tc.reason, errOut)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	out, _, code := run(t, "pods", "--kubeconfig", unreachable(t))
	if code != console.Unreachable || !strings.Contains(out, "there is no connection to the API") {
		t.Errorf("exit code %d\n%s\nwant %d", code, out, console.Unreachable)
	}
}

// TestDocument parses the machine-readable output.
func TestDocument(t *testing.T) {
	out, _, code := run(t, "subscriptions", "widgets.example.com", "-o", "json", "--kubeconfig", controlplane.Get(t).Kubeconfig())
	var document struct {
		APIs []struct {
			API, Result, Reason, Version string
			Operator                     *struct{ Name string }
		}
	}
	if err := json.Unmarshal([]byte(out), &document); err != nil || code != console.Negative || len(document.APIs) != 2 {
		t.Fatalf("exit code %d, %v:\n%s", code, err, out)
	}
	first, second := document.APIs[0], document.APIs[1]
	if first.Result != "Installed" || first.Version != "v1alpha1" || first.Operator == nil || second.Reason != "NoSuchGroup" {
		t.Errorf("the document is\n%s", out)
	}
}

// TestRole applies what --role prints, as the manual describes.
func TestRole(t *testing.T) {
	cp := controlplane.Get(t)
	args := []string{"subscriptions", "-n", "default", "--as", "bob", "--kubeconfig", cp.Kubeconfig()}
	role, _, code := run(t, append(args, "--role")...)
	if code != console.Forbidden {
		t.Fatalf("exit code %d, want %d", code, console.Forbidden)
	}
	cmd := exec.CommandContext(t.Context(), cp.Kubectl(), "--kubeconfig", cp.Kubeconfig(), "apply", "-f", "-")
	cmd.Stdin = strings.NewReader(role)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("applying\n%s\n%v: %s", role, err, out)
	}
	deadline := time.Now().Add(time.Minute)
	for code != console.Fine {
		if time.Now().After(deadline) {
			t.Fatalf("exit code %d a minute after the rights were given", code)
		}
		_, _, code = run(t, args...)
	}
}
