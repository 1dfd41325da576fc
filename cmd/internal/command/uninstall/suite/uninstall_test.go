package suite_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/cmd/internal/command/uninstall"
	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/helm"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/testenv"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

const (
	patience = testenv.Patience
	polling  = 200 * time.Millisecond
	home     = "chandlery-system"
)

// cluster is a control plane on which the product is installed and uninstalled.
type cluster struct {
	client.Client
	*gomega.WithT

	t  *testing.T
	cp *controlplane.ControlPlane
	// root is the folder of the repository.
	root string
	// supervisor is the supervisor process. It replaces the pods, because the nodes of the control
	// plane run nothing.
	supervisor *process.Process
}

// way is a documented way to uninstall, with the matching way to install.
type way struct {
	name               string
	install, uninstall func(*cluster)
	// keepsNamespace reports whether the namespace of the supervisors stays.
	keepsNamespace bool
}

func ways() []way {
	manifests := func(c *cluster) { c.kubectl("apply", "-k", c.deploy()) }
	return []way{
		{"kubectl", manifests, func(c *cluster) { c.kubectl("delete", "-k", c.deploy()) }, false},
		{"command", manifests, func(c *cluster) { c.chandlery(0, "uninstall", "--yes") }, false},
		{
			"helm", func(c *cluster) {
				c.helm("install", "chandlery", filepath.Join(c.root, "deploy", "chart"), "--namespace", home, "--create-namespace")
			},
			func(c *cluster) { c.helm("uninstall", "chandlery", "--namespace", home) }, true,
		},
	}
}

// TestUninstallingBesideOperators uninstalls the product in each documented way beside operators, while a supervisor works, and
// installs it again. Finally it removes everything. There are ten operators, or three if $UNINSTALLS is 1.
func TestUninstallingBesideOperators(t *testing.T) {
	c := preparedCluster(t)
	// Helm, which needs an installation of its own, comes first.
	all := ways()
	slices.Reverse(all)
	all[0].install(c)
	c.start()
	c.operate()
	for _, way := range all {
		keepsOperators(c, way)
		if way.keepsNamespace {
			c.end()
			way.uninstall(c)
			c.forgetNamespace()
			ways()[0].install(c)
			c.start()
			c.works("after-installing")
		}
	}
	removesEverything(c)
	leaves(t, namespaces)
}

// keepsOperators uninstalls the product in a way, compares all objects of the cluster and installs the product again.
func keepsOperators(c *cluster, w way) {
	c.t.Helper()
	before := c.atRest()
	c.Expect(c.supervisor.Unexpected()).To(gomega.Succeed())
	w.uninstall(c)
	c.end()
	c.onlyTheProductIsGone(w, before, takeInventory(c.t, c))

	w.install(c)
	c.start()
	c.works("after-" + w.name)
	c.sameDeployments(before)
}

// removesEverything removes all operators and the kinds. Without confirmation, the command refuses.
func removesEverything(c *cluster) {
	t := c.t
	t.Helper()
	before := takeInventory(t, c)
	if out := c.chandlery(1, "uninstall", "--everything"); !strings.Contains(out, "repeat the command with --yes") || !strings.Contains(out, "Operator op-0/lantern.v1.2.0 with its Deployments") {
		t.Errorf("without a terminal it says\n%s", out)
	}
	if diff := cmp.Diff(before.keys(), takeInventory(t, c).keys()); diff != "" {
		t.Errorf("the refusal changed the cluster (-before +after):\n%s", diff)
	}
	c.chandlery(0, "uninstall", "--everything", "--yes")
	after := takeInventory(t, c)
	for _, key := range before.gone(after) {
		if strings.HasPrefix(key, "CustomResourceDefinition") && !strings.HasSuffix(key, ".operators.coreos.com") {
			t.Errorf("%s of an operator is gone", key)
		}
	}
	for key := range after {
		if strings.Contains(key, "operators.coreos.com") || strings.Contains(key, "chandlery") || strings.HasPrefix(key, "Deployment op-") ||
			strings.HasPrefix(key, "ClusterRole lantern.v") || slices.Contains([]string{"Namespace olm", "ClusterRole aggregate-olm-edit"}, key) {
			t.Errorf("%s is still there", key)
		}
	}
	c.chandlery(2, "uninstall", "--everything", "--yes")
}

// TestUninstallingKeepsObjectsOfUsers uninstalls the product from a namespace with objects of users, which stay, and then
// without them.
func TestUninstallingKeepsObjectsOfUsers(t *testing.T) {
	c := preparedCluster(t)
	ways()[0].install(c)
	for _, wrong := range [][]string{{}, {"--everything"}} {
		out := c.chandlery(2, append([]string{"uninstall", "--yes", "--supervisor-namespace=default"}, wrong...)...)
		if !strings.Contains(strings.Join(strings.Fields(out), " "), "set --supervisor-namespace="+home) {
			t.Errorf("it does not name the flag:\n%s", out)
		}
	}
	c.kubectl("create", "serviceaccount", "backup", "-n", home)
	c.kubectl("create", "cronjob", "backup", "-n", home, "--image=example.com/backup:v1", "--schedule=0 0 1 1 *")
	c.kubectl("create", "-f", filepath.Join("testdata", "pod.yaml"))
	want := "Namespace " + home + ", which contains CronJob backup, Pod shell, ServiceAccount backup"
	if out := c.chandlery(0, "uninstall", "--yes"); !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
		t.Errorf("it does not say %q:\n%s", want, out)
	}
	c.kubectl("delete", "pod/shell", "cronjob/backup", "serviceaccount/backup", "-n", home, "--force")
	c.chandlery(0, "uninstall", "--yes")
	if out := c.chandlery(2, "uninstall", "--yes"); !strings.Contains(out, "looked for a supervisor in namespace "+home) {
		t.Errorf("it does not name the namespace:\n%s", out)
	}
	leaves(t, prerequisites)
}

// TestProductIsWhatTheManifestsHold compares the lists of the command with the manifests.
func TestProductIsWhatTheManifestsHold(t *testing.T) {
	c := connect(t)
	for dir, listed := range map[string][]uninstall.Object{
		".":             append(uninstall.Product(home), uninstall.Object{Version: "v1", Kind: "Namespace", Name: home}),
		"prerequisites": uninstall.Prerequisites("olm"),
	} {
		var want, got []string
		manifests := []byte(c.kubectl("kustomize", filepath.Join(c.deploy(), dir)))
		if dir == "prerequisites" {
			for _, file := range []string{"namespace.yaml", "defaults/operators.yaml"} {
				text, err := os.ReadFile(filepath.Join(c.deploy(), dir, filepath.FromSlash(file)))
				if err != nil {
					t.Fatal(err)
				}
				manifests = slices.Concat(manifests, []byte("\n---\n"), text)
			}
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
		for {
			u := &unstructured.Unstructured{}
			err := decoder.Decode(&u.Object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			gvk := u.GroupVersionKind()
			if gvk.Group == "operators.coreos.com" {
				continue // The definition of its kind takes it along.
			}
			want = append(want, uninstall.Object{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}.String())
			if dir == "." && u.GetLabels()["app.kubernetes.io/part-of"] != "chandlery" {
				t.Errorf("%s lacks the label by which the command recognises it", want[len(want)-1])
			}
		}
		for _, object := range listed {
			// Supervisors and optional components create these.
			optional := slices.Contains([]string{"Lease", "ServiceMonitor", "PodMonitor", "PrometheusRule", "ConfigMap"}, object.Kind) ||
				strings.Contains(object.Name, "-metrics") || strings.HasPrefix(object.Name, "chandlery-packageserver")
			if !optional {
				got = append(got, object.String())
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("deploy/%s (-manifests +command):\n%s", dir, diff)
		}
	}
}

// TestPrerequisitesChangeNothingOfOthers applies the prerequisites beside objects of another manager.
func TestPrerequisitesChangeNothingOfOthers(t *testing.T) {
	c := newCluster(t, namespaces)
	foreign := []string{"Namespace olm", "ClusterRole aggregate-olm-edit", "CustomResourceDefinition subscriptions.operators.coreos.com"}
	c.kubectl("create", "-f", "testdata/others.yaml")
	before := takeInventory(t, c)
	out := c.run(1, c.cp.Kubectl(), "--kubeconfig", c.cp.Kubeconfig(), "create", "-f", filepath.Join(c.deploy(), "prerequisites", "namespace.yaml"))
	if !strings.Contains(out, `namespaces "olm" already exists`) {
		t.Errorf("it does not name the namespace:\n%s", out)
	}
	out = c.run(1, c.cp.Kubectl(), "--kubeconfig", c.cp.Kubeconfig(), "apply", "--server-side", "-k", filepath.Join(c.deploy(), "prerequisites"))
	if !strings.Contains(out, `conflict with "kubectl-create"`) {
		t.Errorf("it does not name the other manager:\n%s", out)
	}
	out = c.run(1, program("supervisor"), "install-crds", "--kubeconfig", c.cp.Kubeconfig())
	if !strings.Contains(out, "subscriptions.operators.coreos.com was not changed") {
		t.Errorf("install-crds does not name what it left:\n%s", out)
	}
	c.helm("install", "chandlery", filepath.Join(c.root, "deploy", "chart"), "--namespace", home, "--create-namespace")
	after := takeInventory(t, c)
	for _, key := range foreign {
		if diff := cmp.Diff(before[key], after[key]); diff != "" {
			t.Errorf("%s changed (-before +after):\n%s", key, diff)
		}
		if before[key] == "" {
			t.Errorf("%s was not there", key)
		}
	}
}

// content is what a cluster has.
type content int

const (
	nothing content = iota
	// prerequisites are those of the product.
	prerequisites
	// namespaces are those of removed operators.
	namespaces
	anything
)

// left is what the last test has left.
var left content

// newCluster returns the cluster, which is empty or has what the test accepts.
func newCluster(t *testing.T, accepted ...content) *cluster {
	t.Helper()
	c := connect(t)
	if left != nothing && !slices.Contains(accepted, left) {
		c.clear()
	}
	left = anything
	return c
}

// preparedCluster returns the cluster with only the prerequisites.
func preparedCluster(t *testing.T) *cluster {
	t.Helper()
	isPrepared := left == prerequisites
	c := newCluster(t, prerequisites)
	if !isPrepared {
		c.prepare()
	}
	return c
}

// leaves records what a test leaves if it passes.
func leaves(t *testing.T, what content) {
	t.Helper()
	if !t.Failed() {
		left = what
	}
}

// connect returns the cluster as the last test has left it.
func connect(t *testing.T) *cluster {
	t.Helper()
	root, err := buildcache.SourceDir(".")
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{Client: controlplane.Client(t), WithT: gomega.NewWithT(t), t: t, cp: controlplane.Get(t), root: root}
}

// operators returns the number of operators beside which the product is uninstalled.
func operators(t *testing.T) int {
	t.Helper()
	const sampled, all = 3, 10
	if testenv.Uninstalls(t) == 1 {
		return sampled
	}
	return all
}

// clear removes everything that former tests have left.
func (c *cluster) clear() {
	c.t.Helper()
	admin := func(name string, args ...string) *exec.Cmd {
		return exec.CommandContext(c.t.Context(), name, append(args, "--kubeconfig", c.cp.Kubeconfig())...)
	}
	// Afterwards no supervisor is ready or leads. Both commands fail when the kinds are gone.
	_ = admin(c.cp.Kubectl(), "delete", "deployment,lease", "-n", home, "--all", "--ignore-not-found").Run()
	_ = admin(program("kubectl-chandlery"), "uninstall", "--everything", "--yes").Run()
	for _, args := range [][]string{
		{"delete", "namespace", "-l", "kubernetes.io/metadata.name notin (default,kube-system,kube-public,kube-node-lease)"},
		{"delete", "crd", "--all"},
		{"delete", "clusterrole", "aggregate-olm-edit", "aggregate-olm-view", "--ignore-not-found"},
	} {
		c.kubectl(args...)
	}
}

// prepare applies the prerequisites as the documentation describes.
func (c *cluster) prepare() {
	c.t.Helper()
	c.kubectl("create", "-f", filepath.Join(c.deploy(), "prerequisites", "namespace.yaml"))
	c.kubectl("apply", "--server-side", "-k", filepath.Join(c.deploy(), "prerequisites"))
}

func (c *cluster) deploy() string { return filepath.Join(c.root, "deploy") }

// run runs a program, checks its exit code and returns what it prints.
func (c *cluster) run(code int, name string, args ...string) string {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), name, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.cp.Kubeconfig())
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		c.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (c *cluster) kubectl(args ...string) string {
	c.t.Helper()
	return c.run(0, c.cp.Kubectl(), append([]string{"--kubeconfig", c.cp.Kubeconfig()}, args...)...)
}

func (c *cluster) chandlery(code int, args ...string) string {
	c.t.Helper()
	out := c.run(code, program("kubectl-chandlery"), append(args, "--kubeconfig", c.cp.Kubeconfig(), "--timeout", patience.String())...)
	c.t.Logf("kubectl chandlery %s:\n%s", strings.Join(args, " "), out)
	return out
}

func (c *cluster) helm(args ...string) {
	c.t.Helper()
	path, err := helm.Program()
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Logf("%s", c.run(0, path, append(args, "--kubeconfig", c.cp.Kubeconfig())...))
}

// start runs a supervisor with the permissions of its ServiceAccount.
func (c *cluster) start() {
	c.t.Helper()
	kubeconfig, err := c.cp.NewKubeconfig("system:serviceaccount:"+home+":chandlery-supervisor", "system:serviceaccounts", "system:serviceaccounts:"+home)
	c.Expect(err).NotTo(gomega.HaveOccurred())
	c.supervisor = programs.Start(c.t, "supervisor", program("supervisor"), "run", "--kubeconfig", kubeconfig,
		"--leader-election-namespace="+home, "--metrics-address=0", "--health-address=0", "--catalog-refresh-interval=1s")
}

// end stops the supervisor, as the kubelet does when its pod is deleted. The supervisor may have
// exited with any status if its permissions or its Lease were deleted.
func (c *cluster) end() {
	c.t.Helper()
	if err := c.supervisor.Stop(patience); errors.Is(err, process.ErrKilled) {
		c.t.Error(err)
	}
	c.supervisor = nil
}

// atRest returns the inventory of the cluster after nothing changes any more. An Operator lists its
// components at most every five seconds.
func (c *cluster) atRest() inventory {
	c.t.Helper()
	const quiet = 6 * time.Second
	var (
		last  inventory
		since time.Time
	)
	c.Eventually(func() bool {
		now := takeInventory(c.t, c)
		if !maps.Equal(last, now) {
			last, since = now, time.Now()
		}
		return time.Since(since) > quiet
	}, patience, quiet/2).Should(gomega.BeTrue(), "the cluster never becomes idle")
	return last
}

// operate installs the operators and an object of the kind that they own.
func (c *cluster) operate() {
	c.t.Helper()
	address := programs.Serve(c.t, program("registry"), filepath.Join(c.root, "examples", "catalog"))
	c.Expect(c.Create(c.t.Context(), fixtures.ServedCatalog("olm", "sample", address))).To(gomega.Succeed())
	for i := range operators(c.t) {
		c.subscribe(fmt.Sprintf("op-%d", i))
	}
	for i := range operators(c.t) {
		c.succeeded(fmt.Sprintf("op-%d", i))
	}
	lantern := &unstructured.Unstructured{}
	lantern.SetAPIVersion("ship.example.com/v1alpha1")
	lantern.SetKind("Lantern")
	lantern.SetNamespace("op-0")
	lantern.SetName("quay")
	c.Expect(c.Create(c.t.Context(), lantern)).To(gomega.Succeed())
}

// subscribe installs an operator into its own namespace.
func (c *cluster) subscribe(namespace string) {
	c.t.Helper()
	subscription := fixtures.Subscription(namespace, "lantern", "lantern", "sample")
	subscription.Spec.CatalogSourceNamespace, subscription.Spec.Channel = "olm", "stable"
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		fixtures.OperatorGroup(namespace, "lantern", namespace), subscription,
	} {
		c.Expect(c.Create(c.t.Context(), o)).To(gomega.Succeed())
	}
}

// succeeded waits until the Subscription of a namespace has the newest version.
func (c *cluster) succeeded(namespace string) {
	c.t.Helper()
	c.Eventually(func(g gomega.Gomega) {
		subscription, version := &operatorsv1alpha1.Subscription{}, &operatorsv1alpha1.ClusterServiceVersion{}
		g.Expect(c.Get(c.t.Context(), client.ObjectKey{Namespace: namespace, Name: "lantern"}, subscription)).To(gomega.Succeed())
		g.Expect(string(subscription.Status.State)).To(gomega.Equal(operatorsv1alpha1.SubscriptionStateAtLatest))
		g.Expect(c.Get(c.t.Context(), client.ObjectKey{Namespace: namespace, Name: subscription.Status.InstalledCSV}, version)).To(gomega.Succeed())
		g.Expect(version.Status.Phase).To(gomega.Equal(operatorsv1alpha1.CSVPhaseSucceeded), version.Status.Message)
	}, patience, polling).Should(gomega.Succeed(), namespace)
}

// works waits until the supervisor has installed another operator and all others have succeeded.
func (c *cluster) works(namespace string) {
	c.t.Helper()
	c.subscribe(namespace)
	c.succeeded(namespace)
	for i := range operators(c.t) {
		c.succeeded(fmt.Sprintf("op-%d", i))
	}
}

// forgetNamespace deletes the namespace of the supervisors, which Helm keeps.
func (c *cluster) forgetNamespace() {
	c.t.Helper()
	c.kubectl("delete", "namespace", home, "--ignore-not-found")
}

// onlyTheProductIsGone compares all objects before and after.
func (c *cluster) onlyTheProductIsGone(w way, before, after inventory) {
	c.t.Helper()
	listed := map[string]bool{"Namespace " + home: !w.keepsNamespace}
	for _, object := range uninstall.Product(home) {
		listed[object.String()] = true
	}
	for _, key := range before.gone(after) {
		_, name, _ := strings.Cut(key, " ")
		if !listed[key] && !strings.HasPrefix(name, home+"/") {
			c.t.Errorf("%s: %s is gone, which is not the product's own", w.name, key)
		}
	}
	for key, want := range before {
		if got, is := after[key]; is && got != want && key != "Namespace "+home && !strings.Contains(key, " "+home+"/") {
			c.t.Errorf("%s: %s changed (-before +after):\n%s", w.name, key, cmp.Diff(want, got))
		}
	}
	for key := range listed {
		if _, is := after[key]; is && listed[key] {
			c.t.Errorf("%s: %s is still there", w.name, key)
		}
	}
	if count := len(after.of("ClusterServiceVersion")); count < operators(c.t) {
		c.t.Errorf("%s: %d versions are left of %d", w.name, count, operators(c.t))
	}
}

// sameDeployments checks that no Deployment of an operator was rolled out again.
func (c *cluster) sameDeployments(before inventory) {
	c.t.Helper()
	for i := range operators(c.t) {
		key := fmt.Sprintf("Deployment op-%d/lantern-operator", i)
		was, is := &appsv1.Deployment{}, &appsv1.Deployment{}
		c.Expect(yaml.Unmarshal([]byte(before[key]), was)).To(gomega.Succeed())
		c.Expect(c.Get(c.t.Context(), client.ObjectKeyFromObject(was), is)).To(gomega.Succeed())
		if is.UID != was.UID || is.Generation != was.Generation {
			c.t.Errorf("%s has generation %d and UID %s, before %d and %s", key, is.Generation, is.UID, was.Generation, was.UID)
		}
		if diff := cmp.Diff(was.Spec.Template, is.Spec.Template); diff != "" {
			c.t.Errorf("%s was rolled out again (-before +after):\n%s", key, diff)
		}
	}
	lantern := &unstructured.Unstructured{}
	lantern.SetAPIVersion("ship.example.com/v1alpha1")
	lantern.SetKind("Lantern")
	if err := c.Get(c.t.Context(), client.ObjectKey{Namespace: "op-0", Name: "quay"}, lantern); err != nil {
		c.t.Errorf("a custom resource: %v", err)
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := c.Get(c.t.Context(), client.ObjectKey{Name: "lanterns.ship.example.com"}, &definition); apierrors.IsNotFound(err) {
		c.t.Error("the definition of an operator is gone")
	}
}
