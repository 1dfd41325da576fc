package suite_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/testenv"
)

const (
	home  = "chandlery-system"
	lamps = "lanterns.ship.example.com"
)

// cluster is a control plane with a supervisor and the catalog olm/sample.
type cluster struct {
	client.Client

	t    *testing.T
	cp   *controlplane.ControlPlane
	root string
}

// TestInstallUpgradeRemove adds a catalog, and installs, upgrades and removes operators from it.
func TestInstallUpgradeRemove(t *testing.T) {
	c := start(t)
	t.Run("Catalog", c.testCatalog)
	t.Run("Search", c.testSearch)
	t.Run("NamespaceUser", c.testNamespaceUser)
	t.Run("SearchForeign", func(t *testing.T) { testSearchForeign(t, c) })
	t.Run("Install", c.testInstall)
	t.Run("UnreadCatalog", func(t *testing.T) { testUnreadCatalog(t, c) })
	t.Run("Upgrade", c.testUpgrade)
	t.Run("Remove", c.testRemove)
	t.Run("ChannelChange", func(t *testing.T) { testChannelChange(t, c) })
	t.Run("Pipeline", c.testPipeline)
	t.Run("ExitCodes", c.testExitCodes)
	t.Run("CatalogRemove", c.testCatalogRemove)
}

// start runs a supervisor.
func start(t *testing.T) *cluster {
	t.Helper()
	root, err := buildcache.SourceDir(".")
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{Client: controlplane.Client(t), t: t, cp: controlplane.Get(t), root: root}
	t.Run("NoAPI", c.testNoAPI)
	if err := programs.InstallCRDs(t.Context(), program("supervisor"), c.cp.Kubeconfig()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{home, "olm"} {
		if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	programs.Start(t, "supervisor", program("supervisor"), "run", "--kubeconfig", c.cp.Kubeconfig(),
		"--leader-election-namespace="+home, "--metrics-address=0", "--health-address=0", "--catalog-refresh-interval=1s")
	return c
}

// run runs a command, checks its exit code, and returns its standard output and standard error.
func (c *cluster) run(t *testing.T, code int, args ...string) (out, log string) {
	t.Helper()
	return c.exec(t, code, exec.CommandContext(t.Context(), program("kubectl-chandlery"), args...))
}

func (c *cluster) exec(t *testing.T, code int, cmd *exec.Cmd) (out, log string) {
	t.Helper()
	var stdout, stderr strings.Builder
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.cp.Kubeconfig(),
		"PATH="+strings.Join([]string{bin, filepath.Dir(c.cp.Kubectl()), os.Getenv("PATH")}, string(filepath.ListSeparator)))
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	t.Logf("$ %s\n%s%s", strings.Join(cmd.Args, " "), stdout.String(), stderr.String())
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		t.Fatalf("%v: %v, want exit code %d", cmd.Args, err, code)
	}
	return stdout.String(), stderr.String()
}

func contains(t *testing.T, text string, wanted ...string) {
	t.Helper()
	text = strings.Join(strings.Fields(text), " ")
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
}

// exists reports whether an object exists.
func (c *cluster) exists(t *testing.T, o client.Object, namespace, name string) bool {
	t.Helper()
	err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o)
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

// testNoAPI runs commands before the CustomResourceDefinitions exist.
func (c *cluster) testNoAPI(t *testing.T) {
	for _, args := range [][]string{{"wait", "lantern"}, {"install", "lantern", "-n", "quay"}, {"search"}, {"catalog", "list"}, {"catalog", "add", "a", "--image", "example.com/a:v1"}} {
		_, log := c.run(t, 2, args...)
		contains(t, log, "the cluster has no API operators.coreos.com: install it with 'kubectl apply --server-side -f prerequisites.yaml'")
	}
}

func (c *cluster) testCatalog(t *testing.T) {
	address := programs.Serve(c.t, program("registry"), catalogDir(c.t, c))
	args := []string{"catalog", "add", "sample", "--address", address}
	out, _ := c.run(t, 0, append(args, "--dry-run")...)
	contains(t, out, "CatalogSource olm/sample would be created (dry run)")
	if c.exists(t, &operatorsv1alpha1.CatalogSource{}, "olm", "sample") {
		t.Error("the dry run created the catalog")
	}
	out, _ = c.run(t, 0, append(args, "--wait", "--timeout", testenv.Patience.String())...)
	contains(t, out, "CatalogSource olm/sample was created CatalogSource olm/sample is ready")
	out, _ = c.run(t, 0, args...)
	contains(t, out, "CatalogSource olm/sample exists, and is as requested")
	_, log := c.run(t, 2, "catalog", "add", "sample", "--address", "localhost:1")
	contains(t, log, `exists, and its spec.address is "`+address+`", not "localhost:1"`)
	_, log = c.run(t, 2, "catalog", "add", "sample", "--address", address, "-n", "nowhere")
	contains(t, log, "create the namespace: kubectl create namespace nowhere")
	testUnreadyCatalogs(t, c)
	out, _ = c.run(t, 0, "catalog", "list", "-A")
	contains(t, out, "sample", "READY")
	out, _ = c.run(t, 0, "catalog", "list", "-o", "json")
	contains(t, out, `"name": "sample"`, `"state": "READY"`)
	c.run(t, 0, "wait", "catalog/sample", "-n", "olm")
	for _, args := range [][]string{{"catalog", "remove", ""}, {"search", "--catalog", "s"}, {"install", "--catalog", ""}} {
		out, _ = c.run(t, 0, append([]string{"__complete"}, args...)...)
		if !strings.HasPrefix(out, "sample\n") {
			t.Errorf("%v completes to %q", args, out)
		}
	}
}

// testUnreadyCatalogs waits for a catalog that cannot be reached and for one whose spec is invalid.
func testUnreadyCatalogs(t *testing.T, c *cluster) {
	t.Helper()
	out, _ := c.run(t, 2, "catalog", "add", "dark", "--address", "localhost:1", "--wait", "--timeout", "1s", "-o", "json")
	contains(t, out, `"created": true`, `"outcome": "failed"`)
	c.run(t, 0, "catalog", "remove", "dark", "--yes")
	broken := &operatorsv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "broken"},
		Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc},
	}
	if err := c.Create(t.Context(), broken); err != nil {
		t.Fatal(err)
	}
	_, log := c.run(t, 2, "wait", "catalogsource/broken", "-n", "olm")
	contains(t, log, "CatalogSource olm/broken has connection state none yet, SpecInvalidError: ")
	c.run(t, 0, "catalog", "remove", "broken", "--yes")
}

// testUnreadCatalog installs an operator while a catalog of the namespace cannot be reached.
func testUnreadCatalog(t *testing.T, c *cluster) {
	t.Helper()
	if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "reef"}}); err != nil {
		t.Fatal(err)
	}
	out, _ := c.run(t, 0, "catalog", "add", "dark", "--address", "localhost:1", "-n", "reef")
	contains(t, out, "Wait for it: kubectl chandlery wait catalogsource/dark -n reef")
	const note = "choose a catalog with --catalog: catalog olm/sample has the package"
	args := []string{"install", "compass", "-n", "reef"}
	out, _ = c.run(t, 0, append(args, "--dry-run")...)
	contains(t, out, "not every catalog can be read: catalog reef/dark: ", note)
	out, log := c.run(t, 2, append(args, "--yes", "-o", "json")...)
	contains(t, out, `"outcome": "blocked"`)
	contains(t, log, note)
	if c.exists(t, &operatorsv1alpha1.Subscription{}, "reef", "compass") {
		t.Error("the command created the Subscription")
	}
	out, _ = c.run(t, 0, append(args, "--dry-run", "--catalog", "olm/sample")...)
	if strings.Contains(out, "not every catalog") {
		t.Errorf("the named catalog is read: %s", out)
	}
	out, _ = c.run(t, 1, "catalog", "remove", "dark", "-n", "reef", "-o", "json")
	contains(t, out, `"removed": false`, `"outcome": "planned"`)
	c.run(t, 0, "catalog", "remove", "dark", "-n", "reef", "--yes")
}

func (c *cluster) testSearch(t *testing.T) {
	out, _ := c.run(t, 0, "search", "lantern")
	contains(t, out, "PACKAGE CATALOG CHANNEL VERSION DISPLAY NAME lantern olm/sample stable 1.2.0 Lantern")
	out, _ = c.run(t, 0, "search", "-o", "json")
	var document struct{ Packages []struct{ Package string } }
	if err := json.Unmarshal([]byte(out), &document); err != nil || len(document.Packages) != 2 {
		t.Errorf("%v: %s", err, out)
	}
	out, _ = c.run(t, 2, "search", "nonsense")
	contains(t, out, "No package was found.")
	_, log := c.run(t, 1, "search", strings.Repeat("a", 300))
	contains(t, log, "the words have 300 bytes together, and a search allows 256")
	_, log = c.run(t, 2, "search", "--catalog", "other")
	contains(t, log, `can use no catalog "other" (--catalog); 'kubectl chandlery status -A' shows all catalogs`)
}

func (c *cluster) testInstall(t *testing.T) {
	args := []string{"install", "lantern", "-n", "quay", "--version", "1.0.0", "--approval", "Manual"}
	out, _ := c.run(t, 0, append(args, "--dry-run")...)
	contains(t, out, "To create: - Namespace quay - OperatorGroup quay/quay, for all namespaces - Subscription quay/lantern: package lantern, channel stable, catalog olm/sample, approval Manual",
		"1 to install, 2 updates", "Nothing was changed (dry run).")
	if c.exists(t, &corev1.Namespace{}, "", "quay") {
		t.Error("the dry run created the namespace")
	}
	out, log := c.run(t, 0, append(args, "--wait", "--timeout", testenv.Patience.String())...)
	contains(t, out, "Subscription quay/lantern is installed.")
	contains(t, log, "Subscription quay/lantern has lantern.v1.0.0 installed")
	if !c.exists(t, &operatorsv1.OperatorGroup{}, "quay", "quay") {
		t.Error("there is no OperatorGroup")
	}
	out, _ = c.run(t, 0, append(args, "--wait")...)
	contains(t, out, "Subscription quay/lantern exists.")
	c.run(t, 0, "wait", "lantern", "-n", "quay", "--for", "approval", "--timeout", testenv.Patience.String())
	_, log = c.run(t, 2, "install", "lantern", "-n", "quay", "--channel", "candidate")
	contains(t, log, `Subscription quay/lantern exists, and its spec.channel is "stable", not "candidate"; leave out --channel`)
	out, _ = c.run(t, 0, "install", "compass", "-n", "bridge", "--dry-run", "-o", "json")
	contains(t, out, `"outcome": "planned"`, `"kind": "Subscription"`)
	_, log = c.run(t, 2, "install", "nonsense", "-n", "quay")
	contains(t, log, `no catalog that namespace quay can use has package "nonsense"`)
	out, _ = c.run(t, 2, "install", "nonsense", "-n", "quay", "-o", "json")
	contains(t, out, `"create": []`, `"problem": "no catalog that namespace quay can use has package \"nonsense\"; check the name"`, `"outcome": "blocked"`)
	out, _ = c.run(t, 2, "install", "compass", "-n", "quay", "--channel", "no", "-o", "json")
	contains(t, out, `"problem": "package compass of catalog olm/sample has no channel \"no\"; set --channel to one of `)
	_, log = c.run(t, 2, "install", "compass", "-n", "quay", "--catalog", "nocat")
	contains(t, log, `namespace quay can use no catalog "nocat" (--catalog)`)
	_, log = c.run(t, 2, "install", "compass", "-n", "bridge", "--target-namespaces", "nowhere")
	contains(t, log, "namespace nowhere (--target-namespaces) does not exist; check the name, or create it: kubectl create namespace nowhere")
	out, _ = c.run(t, 1, "install", "compass", "-n", "bridge", "--target-namespaces", ",", "-o", "yaml")
	contains(t, out, `--target-namespaces has "", which is not a valid namespace name`, "outcome: failed")
	out, _ = c.run(t, 1, "wait", "lantern", "-n", "quay", "--for", "gone", "-o", "json")
	contains(t, out, `"objects": []`, `"problem": "--for is`)
	_, log = c.run(t, 2, "install", "lantrn", "-n", "quay")
	contains(t, log, "did you mean lantern?")
}

func (c *cluster) testUpgrade(t *testing.T) {
	_, log := c.run(t, 2, "upgrade", "lantern", "-n", "quay", "--version", "9.9.9")
	contains(t, log, `has no upgrade to version "9.9.9"; set --version to one of: 1.1.0, 1.2.0`)
	out, _ := c.run(t, 2, "upgrade", "lantern", "-n", "quay", "--channel", "nosuch")
	contains(t, out, "set --channel to one of candidate, stable")
	out, _ = c.run(t, 2, "upgrade", "nonsense", "-n", "quay", "-o", "json")
	contains(t, out, `"problem": "Subscription quay/nonsense does not exist; check the name and --namespace"`, `"outcome": "blocked"`)
	out, _ = c.run(t, 0, "upgrade", "lantern", "-n", "quay", "--version", "1.1.0", "--timeout", testenv.Patience.String())
	contains(t, out, "Upgrade of Subscription quay/lantern from lantern.v1.0.0 to lantern.v1.1.0", "Subscription quay/lantern has lantern.v1.1.0 installed.")
	c.run(t, 0, "upgrade", "lantern", "-n", "quay", "--channel", "candidate", "--dry-run")
	out, _ = c.run(t, 0, "upgrade", "lantern", "-n", "quay", "--channel", "candidate", "--timeout", testenv.Patience.String(), "-o", "json")
	contains(t, out, `"outcome": "upgraded"`, `"to": "lantern.v1.2.0"`)
	out, _ = c.run(t, 0, "upgrade", "lantern", "-n", "quay")
	contains(t, out, "has the newest version that can be installed")
	out, _ = c.run(t, 2, "install", "lantern", "-n", "dock", "--dry-run")
	contains(t, out, "To create: - Namespace dock", "ClusterServiceVersion dock/lantern.v1.2.0 is a copy: the operator is installed in namespace quay")
	out, _ = c.run(t, 2, "install", "lantern", "-n", "dock", "--version", "1.1.0", "--dry-run")
	contains(t, out, "ClusterServiceVersion dock/lantern.v1.1.0 would fail: Lantern.v1alpha1.ship.example.com provided in a common namespace by OperatorGroup quay/quay already")
	_, log = c.run(t, 2, "install", "lantern", "-n", "quay", "--version", "1.0.0")
	contains(t, log, "Subscription quay/lantern has lantern.v1.2.0 installed, not version 1.0.0; remove the operator first: ")
}

func (c *cluster) testRemove(t *testing.T) {
	lantern := &unstructured.Unstructured{}
	lantern.SetAPIVersion("ship.example.com/v1alpha1")
	lantern.SetKind("Lantern")
	lantern.SetNamespace("quay")
	lantern.SetName("sample")
	if err := c.Create(t.Context(), lantern); err != nil {
		t.Fatal(err)
	}
	// An upgraded version is deleted after its successor has succeeded.
	testenv.Until(t, testenv.Patience, "one version", func(ctx context.Context) string {
		var versions operatorsv1alpha1.ClusterServiceVersionList
		if err := c.List(ctx, &versions, client.InNamespace("quay")); err != nil {
			return err.Error()
		}
		if len(versions.Items) != 1 {
			return fmt.Sprintf("%d versions", len(versions.Items))
		}
		return ""
	})
	out, _ := c.run(t, 0, "remove", "lantern", "-n", "quay", "--crds", "--dry-run")
	contains(t, out, "CustomResourceDefinition "+lamps+" with 1 custom resource", "Data is lost: 1 custom resource")
	_, log := c.run(t, 1, "remove", "lantern", "-n", "quay", "--crds")
	contains(t, log, "repeat the command with --yes")
	out, _ = c.run(t, 1, "remove", "lantern", "-n", "quay", "-o", "json")
	contains(t, out, `"outcome": "planned"`)
	c.run(t, 0, "remove", "lantern", "-n", "quay", "--yes")
	if !c.exists(t, lantern, "quay", "sample") {
		t.Error("the custom resource is gone")
	}
	c.run(t, 0, "install", "lantern", "-n", "quay", "--wait", "--timeout", testenv.Patience.String())
	c.run(t, 0, "remove", "lantern", "-n", "quay", "--crds", "--yes")
	if c.exists(t, &apiextensionsv1.CustomResourceDefinition{}, "", lamps) {
		t.Error("the CustomResourceDefinition is still there")
	}
	var versions operatorsv1alpha1.ClusterServiceVersionList
	if err := c.List(context.WithoutCancel(t.Context()), &versions); err != nil || len(versions.Items) > 0 {
		t.Errorf("%d versions, error %v", len(versions.Items), err)
	}
	_, log = c.run(t, 1, "uninstall", "lantern")
	contains(t, log, "to remove the operator of a Subscription: kubectl chandlery remove lantern")
}

func (c *cluster) testCatalogRemove(t *testing.T) {
	c.run(t, 0, "install", "lantern", "-n", "quay", "--yes")
	out, _ := c.run(t, 0, "catalog", "remove", "sample", "--dry-run")
	contains(t, out, "These Subscriptions use catalog olm/sample, and get no updates without it: quay/lantern", "would be removed (dry run)")
	if _, log := c.run(t, 1, "catalog", "remove", "sample"); !strings.Contains(log, "--yes") {
		t.Errorf("without a terminal: %s", log)
	}
	c.run(t, 0, "catalog", "remove", "sample", "--yes")
	c.run(t, 2, "catalog", "remove", "sample")
}
