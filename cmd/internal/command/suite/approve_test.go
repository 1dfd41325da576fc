package suite_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// waits makes the InstallPlan of the world wait for approval, with steps to apply.
func (w *world) waits() {
	w.T.Helper()
	p := w.plan()
	p.Status.Phase, p.Status.CatalogSources = operatorsv1alpha1.InstallPlanPhaseRequiresApproval, []string{"wares"}
	p.Status.Plan = []*operatorsv1alpha1.Step{
		{Resolving: "lamp.v1", Status: operatorsv1alpha1.StepStatusUnknown, Resource: operatorsv1alpha1.StepResource{
			Kind: "ClusterServiceVersion", Name: "lamp.v1", Manifest: `{"kind":"ClusterServiceVersion","spec":{"version":"1.0.0"}}`,
		}},
		{Resolving: "lamp.v1", Status: operatorsv1alpha1.StepStatusUnknown, Resource: operatorsv1alpha1.StepResource{
			Kind: "ClusterRole", Name: "lamp", Manifest: `{"kind":"ClusterRole","rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}`,
		}},
	}
	w.status(p)
}

// TestApprove approves a plan, twice.
func TestApprove(t *testing.T) {
	w := newWorld(t)
	w.waits()
	for _, program := range callers() {
		got := program.call(t, w.kubeconfig, "approve", "my-lamp", "-n", w.Namespace, "--dry-run")
		contains(t, got.out, "installs lamp.v1 (1.0.0)", "new cluster-wide permissions:", "get secrets", "2 objects in total", "would be approved (dry run)")
		if got.code != 0 || w.plan().Spec.Approved {
			t.Fatalf("%s: %+v", program.name, got)
		}
		contains(t, program.call(t, w.kubeconfig, "status", "-n", w.Namespace).out, "> "+program.name+" approve install-aaa -n "+w.Namespace)
	}
	for _, want := range []string{"InstallPlan " + w.Namespace + "/install-aaa is approved\n", "is approved already, and in phase RequiresApproval"} {
		got := kubectl(t).call(t, w.kubeconfig, "approve", "installplan/install-aaa", "-n", w.Namespace)
		contains(t, got.out, want)
		if got.code != 0 || !w.plan().Spec.Approved {
			t.Fatalf("%+v", got)
		}
	}
	got := callers()[0].call(t, w.kubeconfig, "approve", "--all", "-n", w.Namespace)
	contains(t, got.out, "No InstallPlan of namespace "+w.Namespace+" waits for approval.")
}

// TestApproveTellsWhatIsDropped checks that the command shows fields that the cluster does not
// know, and objects that it could not check. It creates nothing.
func TestApproveTellsWhatIsDropped(t *testing.T) {
	w := newWorld(t)
	w.waits()
	p := w.plan()
	resource := operatorsv1alpha1.StepResource{
		Version: "v1", Kind: "Service", Name: "lamp",
		Manifest: `{"apiVersion":"v1","kind":"Service","metadata":{"name":"lamp"},"spec":{"bogus":1,"ports":[{"port":80,"colour":"red"}]}}`,
	}
	p.Status.Plan = []*operatorsv1alpha1.Step{{Resolving: "lamp.v1", Status: operatorsv1alpha1.StepStatusUnknown, Resource: resource}}
	w.status(p)
	args := []string{"approve", "my-lamp", "-n", w.Namespace, "--dry-run"}
	got := kubectl(t).call(t, w.kubeconfig, args...)
	contains(t, strings.Join(strings.Fields(got.out), " "), "the API server warns:", `Service lamp: unknown field "spec.bogus", unknown field "spec.ports[0].colour"`, "1 object in total")
	if got.code != 0 || got.log != "" {
		t.Errorf("%+v", got)
	}
	got = callers()[0].call(t, w.kubeconfig, append(args, "-o", "json")...)
	contains(t, got.out, `"warnings": [`, `"unknown field \"spec.bogus\""`)
	plans := rbacv1.PolicyRule{APIGroups: []string{operatorsv1alpha1.GroupName}, Resources: []string{"installplans", "subscriptions"}, Verbs: []string{"list", "patch"}}
	got = callers()[0].call(t, w.in(t).as(plans).kubeconfig, args...)
	contains(t, strings.Join(strings.Fields(got.out), " "), "1 of them not checked for unknown fields: the API server refused the dry run")
	services := &corev1.ServiceList{}
	if err := w.List(t.Context(), services, client.InNamespace(w.Namespace)); err != nil || len(services.Items) > 0 {
		t.Errorf("%d Services, error %v", len(services.Items), err)
	}
}

// TestApproveTellsWhatIsRefused checks that a dry run shows a kind that bundles cannot contain, and the argument that
// allows it.
func TestApproveTellsWhatIsRefused(t *testing.T) {
	w := newWorld(t)
	w.waits()
	p := w.plan()
	p.Status.Plan = []*operatorsv1alpha1.Step{{Resolving: "lamp.v1", Status: operatorsv1alpha1.StepStatusUnsupportedResource, Resource: operatorsv1alpha1.StepResource{
		Group: "apps", Version: "v1", Kind: "DaemonSet", Name: "lamp", Manifest: `{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"lamp"}}`,
	}}}
	w.status(p)
	const refusal, argument = "bundles cannot contain", "--bundle-kind=apps/DaemonSet"
	args := []string{"approve", "my-lamp", "-n", w.Namespace, "--dry-run"}
	got := callers()[0].call(t, w.kubeconfig, args...)
	contains(t, strings.Join(strings.Fields(got.out), " "), refusal, "DaemonSet lamp; allowed if the supervisor runs with "+argument)
	got = callers()[0].call(t, w.kubeconfig, append(args, "-o", "json")...)
	contains(t, got.out, `"refused": [`, `"argument": "`+argument+`"`)
	got = callers()[0].call(t, w.kubeconfig, append(args, argument)...)
	if got.code != 0 || strings.Contains(got.out, refusal) {
		t.Errorf("with %s: %+v", argument, got)
	}
}

// TestApproveRights checks that the command names the missing rule, and that users who have the rule may approve.
func TestApproveRights(t *testing.T) {
	w := newWorld(t)
	w.waits()
	plans := func(verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{operatorsv1alpha1.GroupName}, Resources: []string{"installplans"}, Verbs: verbs}
	}
	t.Run("Reader", func(t *testing.T) {
		reader := w.in(t).as(plans("list"))
		for _, flags := range [][]string{{"--dry-run"}, {}} {
			got := kubectl(t).call(t, reader.kubeconfig, append([]string{"approve", "install-aaa", "-n", w.Namespace}, flags...)...)
			contains(t, got.log, "the missing rule: {apiGroups: [operators.coreos.com], resources: [installplans], verbs: [patch]}")
			if got.code != 3 || w.plan().Spec.Approved {
				t.Errorf("%+v", got)
			}
		}
	})
	t.Run("Approver", func(t *testing.T) {
		approver := w.in(t).as(plans("list", "patch"))
		got := kubectl(t).call(t, approver.kubeconfig, "approve", "install-aaa", "-n", w.Namespace)
		if got.code != 0 || !w.plan().Spec.Approved {
			t.Errorf("%+v", got)
		}
	})
}

// TestApproveWaits follows InstallPlans to their ends.
func TestApproveWaits(t *testing.T) {
	for phase, want := range map[operatorsv1alpha1.InstallPlanPhase]struct {
		code int
		says string
	}{
		operatorsv1alpha1.InstallPlanPhaseComplete: {code: 0, says: "ClusterServiceVersion lamp.v1 is in phase Succeeded"},
		operatorsv1alpha1.InstallPlanPhaseFailed:   {code: 2, says: "InstallPlan install-aaa is in phase Failed"},
	} {
		t.Run(string(phase), func(t *testing.T) {
			w := newWorld(t)
			w.waits()
			r := approveAndWait(t, w)
			if phase == operatorsv1alpha1.InstallPlanPhaseComplete {
				w.well()
			} else {
				w.phase(phase)
			}
			var exit *exec.ExitError
			if err := r.cmd.Wait(); err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			contains(t, r.text(), want.says)
			if got := r.cmd.ProcessState.ExitCode(); got != want.code {
				t.Errorf("exit code %d, want %d: %s", got, want.code, r.text())
			}
		})
	}
	w := newWorld(t)
	w.waits()
	got := callers()[0].call(t, w.kubeconfig, "approve", "my-lamp", "--wait", "--timeout", "1s", "-n", w.Namespace)
	contains(t, got.log, "timed out after 1s (--timeout) waiting for the installation: InstallPlan install-aaa is in phase RequiresApproval")
	if got.code != 2 {
		t.Errorf("%+v", got)
	}
}

// approveAndWait starts a command that approves the InstallPlan of a Subscription and waits.
func approveAndWait(t *testing.T, w *world) *running {
	t.Helper()
	r := &running{cmd: exec.CommandContext(t.Context(), supervisorPath, "approve", "my-lamp", "--wait", "-n", w.Namespace, "--kubeconfig", w.kubeconfig)}
	r.cmd.Stdout, r.cmd.Stderr = r, r
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.await(t, "InstallPlan install-aaa is in phase RequiresApproval")
	return r
}

// TestApproveWaitEnds checks the exit code of a wait that the user ends.
func TestApproveWaitEnds(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		w := newWorld(t)
		w.waits()
		r := approveAndWait(t, w)
		if err := r.cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		_ = r.cmd.Wait()
		if got := r.cmd.ProcessState.ExitCode(); got != 130 || !w.plan().Spec.Approved {
			t.Errorf("%v: exit code %d, want 130: %s", signal, got, r.text())
		}
	}
}

// TestSupportBundle checks that a support bundle holds no secrets.
func TestSupportBundle(t *testing.T) {
	const hush = "hushhush4711"
	w := newWorld(t)
	w.well()
	w.Create(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "keys"}, StringData: map[string]string{"a": hush}},
		&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "lamp", Annotations: map[string]string{"example.com/url": "https://me:" + hush + "@example.com"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "lamp", Image: "lamp", Args: []string{"--token", hush},
				Env: []corev1.EnvVar{{Name: "COLOUR", Value: "green"}, {Name: "PASSWORD", Value: hush}},
			}}},
		},
	)
	for flags, want := range map[string]string{"": "value: '[redacted]'", "--show-env": "value: green"} {
		path := filepath.Join(t.TempDir(), "bundle.tar.gz")
		args := strings.Fields("support-bundle -n " + w.Namespace + " -o " + path + " " + flags)
		got := kubectl(t).call(t, w.kubeconfig, args...)
		if got.code != 0 || got.out != path+"\n" {
			t.Fatalf("%+v", got)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		left, err := os.ReadDir(filepath.Dir(path))
		if err != nil || len(left) != 1 {
			t.Errorf("there is more than the bundle: %v, %v", left, err)
		}
		files := unpacked(t, path)
		for name, content := range files {
			if strings.Contains(content, hush) {
				t.Errorf("%s is not redacted:\n%s", name, content)
			}
		}
		contains(t, files["objects/"+w.Namespace+"/pod/lamp.yaml"], want, "https://[redacted]@example.com", "name: PASSWORD")
		contains(t, files["status.txt"], "my-lamp")
		contains(t, files["explain.txt"], "The only Subscription in namespace")
		contains(t, files["versions.txt"], "api server: v1.")
		for _, name := range []string{"status.json", "objects/" + w.Namespace + "/subscription/my-lamp.yaml", "objects/" + global + "/catalogsource/wares.yaml"} {
			if files[name] == "" {
				t.Errorf("%s is not there; there are %d files", name, len(files))
			}
		}
	}
	got := kubectl(t).call(t, w.kubeconfig, "support-bundle", "-n", w.Namespace, "--max-bytes", "2Ki", "-o", "small.tar.gz")
	contains(t, got.log, "missing.txt in the bundle lists it")
	if got.code != 3 {
		t.Errorf("%+v", got)
	}
}

// unpacked returns the files of a bundle by their paths below its folder.
func unpacked(t *testing.T, path string) map[string]string {
	t.Helper()
	packed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	zipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(zipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(header.Name, "/")
		files[name] = string(content)
	}
}
