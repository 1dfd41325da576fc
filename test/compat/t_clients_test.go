package compat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/operatorsdk"
)

// health is the output of the program health.
type health struct {
	ArgoCD  string `json:"argocd"`
	Kstatus string `json:"kstatus"`
}

// healthOf returns the health of an object in the cluster.
func healthOf(t *testing.T, c *compattest.Cluster, o client.Object) health {
	t.Helper()
	gvk, err := c.GroupVersionKindFor(o)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(o.GetNamespace())
	u.SetName(o.GetName())
	if left := c.Read(u); left != "" {
		t.Fatal(left)
	}
	t.Logf("%s %s/%s, resource version %s", gvk.Kind, u.GetNamespace(), u.GetName(), u.GetResourceVersion())
	out, code := compattest.Run(t, compattest.Client(t, compattest.ProgramHealth), c.Manifest(u))
	if code != 0 {
		t.Fatalf("the program ends with %d", code)
	}
	var h health
	if err := json.Unmarshal([]byte(out), &h); err != nil {
		t.Fatal(err)
	}
	return h
}

// lamp returns the package lamp with versions 1.0.0 up to the given minor version. Each replaces the
// one before.
func lamp(c *compattest.Cluster, minors int, objects ...string) fakecatalog.Package {
	var entries []fakecatalog.Entry
	for n := range minors {
		version := fmt.Sprintf("1.%d.0", n)
		e := fakecatalog.Entry{Name: "lamp.v" + version, Version: version, Objects: append([]string{c.Manifest(lampCSV(c, version, len(objects) > 0))}, objects...)}
		if n > 0 {
			e.Replaces = fmt.Sprintf("lamp.v1.%d.0", n-1)
		}
		entries = append(entries, e)
	}
	return fakecatalog.Simple("lamp", entries...)
}

func lampCSV(c *compattest.Cluster, version string, owns bool) *operatorsv1alpha1.ClusterServiceVersion {
	return c.CSV("lamp.v"+version, func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		csv.Spec.DisplayName = "Lamp"
		deployment := &csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0]
		deployment.Name, deployment.Spec.Selector.MatchLabels = "lamp", map[string]string{"app": "lamp"}
		deployment.Spec.Template.Labels = deployment.Spec.Selector.MatchLabels
		if err := csv.Spec.Version.UnmarshalJSON([]byte(`"` + version + `"`)); err != nil {
			panic(err)
		}
		if owns {
			csv.Spec.CustomResourceDefinitions.Owned = []operatorsv1alpha1.CRDDescription{{Name: bulbCRD(c).Name, Version: "v1", Kind: "Bulb"}}
		}
	})
}

// bulbCRD returns a CustomResourceDefinition whose group is the namespace of the case.
func bulbCRD(c *compattest.Cluster) *apiextensionsv1.CustomResourceDefinition {
	group := c.Namespace + ".example"
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "bulbs." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "bulbs", Singular: "bulb", Kind: "Bulb", ListKind: "BulbList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
			}},
		},
	}
}

// installed waits until the Subscription lamp has installed a version, and returns the Subscription.
func installed(c *compattest.Cluster, csv string) *operatorsv1alpha1.Subscription {
	sub := &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "lamp"}}
	c.Eventually(compattest.Patience, func() string {
		if left := c.Read(sub); left != "" {
			return left
		}
		if sub.Status.InstalledCSV != csv || sub.Status.State != operatorsv1alpha1.SubscriptionStateAtLatest {
			return "the status of the Subscription is " + c.Manifest(sub.Status)
		}
		version := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: csv}}
		if left := c.Read(version); left != "" {
			return left
		}
		if version.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
			return fmt.Sprintf("%s is %s: %s", csv, version.Status.Phase, version.Status.Message)
		}
		return ""
	})
	return sub
}

// TestHealth checks the health that GitOps tools compute from the objects.
func TestHealth(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "T1", func(t *testing.T, c *compattest.Cluster) {
		c.Catalog("shelf", lamp(c, 1))
		c.Subscribe("shelf", "lamp")
		sub := installed(c, "lamp.v1.0.0")
		// OLM sets the state before it removes the condition.
		awaitHealth(t, c, sub, "Healthy", func(sub *operatorsv1alpha1.Subscription) bool {
			return !condition(operatorsv1alpha1.SubscriptionInstallPlanPending)(sub)
		})
		for _, o := range []client.Object{
			sub,
			&operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "lamp.v1.0.0"}},
			&operatorsv1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: sub.Status.InstallPlanRef.Name}},
			&operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "shelf"}},
			&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "group"}},
		} {
			if h := healthOf(t, c, o); h.Kstatus != "Current" {
				t.Errorf("%T is %+v", o, h)
			}
		}
	})
	compattest.Check(t, "T2", func(t *testing.T, c *compattest.Cluster) {
		c.Catalog("shelf", lamp(c, 1))
		awaitHealth(t, c, c.Subscribe("shelf", "lamp", withManualApproval, starting("lamp.v1.0.0")), "Progressing", condition(operatorsv1alpha1.SubscriptionInstallPlanPending))
	})
	compattest.Check(t, "T3", func(t *testing.T, c *compattest.Cluster) {
		c.Catalog("shelf", lamp(c, 1))
		awaitHealth(t, c, c.Subscribe("shelf", "candle"), "Degraded", condition(operatorsv1alpha1.SubscriptionResolutionFailed))
	})
	compattest.Check(t, "T5", func(t *testing.T, c *compattest.Cluster) {
		awaitHealth(t, c, c.Subscribe("shelf", "lamp"), "Degraded", condition(operatorsv1alpha1.SubscriptionCatalogSourcesUnhealthy))
	})
	compattest.Check(t, "T6", func(t *testing.T, c *compattest.Cluster) {
		// A manifest of the wrong type is refused by the API server.
		c.Catalog("shelf", lamp(c, 1, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"lamp"},"spec":{"ports":[{"port":"x"}]}}`))
		awaitHealth(t, c, c.Subscribe("shelf", "lamp"), "Degraded", condition(operatorsv1alpha1.SubscriptionInstallPlanFailed))
	})
}

// TestHealthOfFailures checks that GitOps tools see a failure if no version works, and not while one does.
func TestHealthOfFailures(t *testing.T) {
	t.Parallel()
	unpackFailed := condition(operatorsv1alpha1.SubscriptionBundleUnpackFailed)
	missing := func(c *compattest.Cluster, version string) fakecatalog.Entry {
		return fakecatalog.Entry{Name: "crank.v" + version, Version: version + ".0.0", Image: "127.0.0.1:9/" + c.Namespace + ":" + version}
	}
	compattest.Check(t, "T7", func(t *testing.T, c *compattest.Cluster) {
		c.Catalog("shop", fakecatalog.Simple("crank", missing(c, "1")))
		awaitHealth(t, c, c.Subscribe("shop", "crank"), "Degraded", unpackFailed)
	})
	compattest.Check(t, "T7-Inline", func(t *testing.T, c *compattest.Cluster) {
		two := fakecatalog.Entry{Name: "crank.v1", Version: "1.0.0", Objects: []string{c.Manifest(c.CSV("crank.v1")), c.Manifest(c.CSV("crank.v2"))}}
		c.Catalog("shop", fakecatalog.Simple("crank", two))
		awaitHealth(t, c, c.Subscribe("shop", "crank"), "Degraded", unpackFailed)
	})
	compattest.Check(t, "T8", func(t *testing.T, c *compattest.Cluster) {
		c.Catalog("shop", crank(supporting("AllNamespaces"))(c))
		awaitHealth(t, c, c.Subscribe("shop", "crank"), "Degraded", versionFailed(c, "crank.v1"))
	})
	// update offers another version after crank.v1 has been installed.
	update := func(t *testing.T, c *compattest.Cluster, next fakecatalog.Entry) *operatorsv1alpha1.Subscription {
		t.Helper()
		shop := c.Catalog("shop", crank()(c))
		sub := c.Subscribe("shop", "crank")
		c.Eventually(compattest.Patience, isInstalled(c, sub, "crank.v1"))
		p := crank()(c)
		next.Replaces = "crank.v1"
		p.Channels[0].Entries = append(p.Channels[0].Entries, next)
		shop.Serve(p)
		return sub
	}
	compattest.Check(t, "T9-Bundle", func(t *testing.T, c *compattest.Cluster) {
		sub := update(t, c, missing(c, "2"))
		awaitHealth(t, c, sub, "Progressing", unpackFailed)
		if sub.Status.State != operatorsv1alpha1.SubscriptionStateAtLatest {
			t.Errorf("the state is %s", sub.Status.State)
		}
	})
	compattest.Check(t, "T9-Version", func(t *testing.T, c *compattest.Cluster) {
		csv := c.CSV("crank.v2", supporting("AllNamespaces"))
		sub := update(t, c, fakecatalog.Entry{Name: csv.Name, Version: "2.0.0", Objects: []string{c.Manifest(csv)}})
		awaitHealth(t, c, sub, "Progressing", versionFailed(c, csv.Name))
	})
}

// versionFailed returns a function that reports whether the version of a Subscription, of the given name, has been Failed for
// so long that the Subscription shows it.
func versionFailed(c *compattest.Cluster, name string) func(*operatorsv1alpha1.Subscription) bool {
	return func(sub *operatorsv1alpha1.Subscription) bool {
		csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name}}
		return sub.Status.CurrentCSV == name && c.Read(csv) == "" && csv.Status.Phase == operatorsv1alpha1.CSVPhaseFailed &&
			time.Since(csv.Status.LastTransitionTime.Time) > 5*time.Second
	}
}

func starting(csv string) func(*operatorsv1alpha1.Subscription) {
	return func(sub *operatorsv1alpha1.Subscription) { sub.Spec.StartingCSV = csv }
}

// condition returns a function that reports whether a Subscription has a condition that is True.
func condition(kind operatorsv1alpha1.SubscriptionConditionType) func(*operatorsv1alpha1.Subscription) bool {
	return func(sub *operatorsv1alpha1.Subscription) bool { return sub.Status.GetCondition(kind).Status == "True" }
}

// awaitHealth waits until a Subscription has what is expected of its status, and then compares Argo CD's health.
func awaitHealth(t *testing.T, c *compattest.Cluster, sub *operatorsv1alpha1.Subscription, want string, holds func(*operatorsv1alpha1.Subscription) bool) {
	t.Helper()
	c.Eventually(2*compattest.Patience, func() string {
		if left := c.Read(sub); left != "" {
			return left
		}
		if !holds(sub) {
			return "the status of the Subscription is " + c.Manifest(sub.Status)
		}
		return ""
	})
	if h := healthOf(t, c, sub); h.ArgoCD != want {
		t.Errorf("Argo CD computes %+v, want %s, for %s", h, want, c.Manifest(sub.Status))
	}
}

// TestKubectl checks the commands of kubectl that scripts use.
func TestKubectl(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "T10", func(t *testing.T, c *compattest.Cluster) {
		c.Catalog("shelf", lamp(c, 1))
		c.Subscribe("shelf", "lamp")
		wait := func(timeout time.Duration, args ...string) {
			args = append([]string{"wait", "-n", c.Namespace, "--timeout=" + timeout.String()}, args...)
			if _, code := compattest.Kubectl(t, args...); code != 0 {
				t.Errorf("kubectl %v ends with %d", args, code)
			}
		}
		// The installation has just begun.
		wait(compattest.Patience, "subscription/lamp", "--for=jsonpath={.status.state}=AtLatestKnown")
		plan := installed(c, "lamp.v1.0.0").Status.InstallPlanRef.Name
		for _, args := range [][]string{
			{"subscription/lamp", "--for=condition=CatalogSourcesUnhealthy=False"},
			{"csv/lamp.v1.0.0", "--for=jsonpath={.status.phase}=Succeeded"},
			{"installplan/" + plan, "--for=condition=Installed"},
			{"installplan/" + plan, "--for=jsonpath={.status.phase}=Complete"},
			{"catalogsource/shelf", "--for=jsonpath={.status.connectionState.lastObservedState}=READY"},
		} {
			wait(time.Minute, args...)
		}
	})
	compattest.Check(t, "T11", func(t *testing.T, c *compattest.Cluster) {
		c.Catalog("shelf", lamp(c, 2))
		c.Subscribe("shelf", "lamp", func(sub *operatorsv1alpha1.Subscription) { sub.Spec.Channel = "stable" })
		plan := installed(c, "lamp.v1.1.0").Status.InstallPlanRef.Name
		for kind, want := range map[string][]string{
			"catalogsources":         {"NAME DISPLAY TYPE PUBLISHER AGE", "shelf grpc"},
			"subscriptions":          {"NAME PACKAGE SOURCE CHANNEL", "lamp " + "lamp shelf stable"},
			"installplans":           {"NAME CSV APPROVAL APPROVED", plan + " lamp.v1.1.0 Automatic true"},
			"clusterserviceversions": {"NAME DISPLAY VERSION RELEASE REPLACES PHASE", "lamp.v1.1.0 Lamp 1.1.0 lamp.v1.0.0 Succeeded"},
			"operatorgroups":         {"NAME AGE", "group"},
		} {
			name, _, _ := strings.Cut(want[1], " ")
			out, code := compattest.Kubectl(t, "get", kind, name, "-n", c.Namespace)
			lines := strings.Split(strings.TrimSpace(out), "\n")
			if code != 0 || len(lines) != 2 || strings.Join(strings.Fields(lines[0]), " ") != want[0] ||
				!strings.HasPrefix(strings.Join(strings.Fields(lines[1]), " "), want[1]) {
				t.Errorf("kubectl get %s prints\n%s, want %q", kind, out, want)
			}
		}
	})
}

// operator runs kubectl-operator in the namespace of the case.
func operator(t *testing.T, c *compattest.Cluster, args ...string) string {
	t.Helper()
	out, code := compattest.Run(t, compattest.Client(t, compattest.ProgramOperator), "", append(args, "-n", c.Namespace)...)
	if code != 0 {
		t.Fatalf("kubectl operator %v ends with %d", args, code)
	}
	return out
}

// TestKubectlOperator runs the commands of kubectl-operator v0.6.0 that need no PackageManifests.
func TestKubectlOperator(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "T20", func(t *testing.T, c *compattest.Cluster) {
		// Both commands list the objects of all namespaces.
		shelf, p := "shelf-of-"+c.Namespace, crank()(c)
		p.Name = "crank-of-" + c.Namespace
		c.Catalog(shelf, p)
		c.Eventually(compattest.Patience, isInstalled(c, c.Subscribe(shelf, p.Name), "crank.v1"))
		if out := operator(t, c, "list"); !hasLine(out, p.Name, "crank.v1", "AtLatestKnown") {
			t.Errorf("the list lacks the Subscription:\n%s", out)
		}
		if out := operator(t, c, "catalog", "list"); !hasLine(out, shelf, "grpc") {
			t.Errorf("the list lacks the CatalogSource:\n%s", out)
		}
	})
	compattest.Check(t, "T21", func(t *testing.T, c *compattest.Cluster) {
		c.Catalog("shelf", lamp(c, 2))
		sub := c.Subscribe("shelf", "lamp", withManualApproval, starting("lamp.v1.0.0"))
		awaitUpdate(c, sub, approveNext(t, c, sub, ""))
		operator(t, c, "upgrade", "lamp")
		installed(c, "lamp.v1.1.0")
	})
	compattest.Check(t, "T22", func(t *testing.T, c *compattest.Cluster) {
		bulb := withBulb(t, c)
		if out := operator(t, c, "list-operands", "lamp"); !hasLine(out, "Bulb", bulb.GetName()) {
			t.Errorf("the list lacks the custom resource:\n%s", out)
		}
	})
	compattest.Check(t, "T23", func(t *testing.T, c *compattest.Cluster) {
		bulb := withBulb(t, c)
		operator(t, c, "uninstall", "lamp", "--delete-all")
		c.Gone(compattest.Patience, bulb,
			&operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "lamp"}},
			&operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "lamp.v1.0.0"}},
			&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "group"}},
			&operatorsv1.Operator{ObjectMeta: metav1.ObjectMeta{Name: "lamp." + c.Namespace}})
	})
	compattest.Check(t, "T24", func(t *testing.T, c *compattest.Cluster) {
		c.Catalog("shelf", lamp(c, 1))
		operator(t, c, "catalog", "remove", "shelf")
		c.Gone(compattest.Patience, &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "shelf"}})
	})
}

// awaitUpdate waits until lamp.v1.0.0 is installed with an InstallPlan and another one waits.
func awaitUpdate(c *compattest.Cluster, sub *operatorsv1alpha1.Subscription, first string) {
	c.Eventually(compattest.Patience, func() string {
		if left := c.Read(sub); left != "" {
			return left
		}
		if sub.Status.InstalledCSV != "lamp.v1.0.0" || sub.Status.InstallPlanRef.Name == first || sub.Status.CurrentCSV == sub.Status.InstalledCSV {
			return "no update waits: " + c.Manifest(sub.Status)
		}
		return ""
	})
}

// TestKubectlOperatorPackages runs the commands of kubectl-operator v0.6.0 that read PackageManifests.
func TestKubectlOperatorPackages(t *testing.T) {
	t.Parallel()
	shelf := func(c *compattest.Cluster, objects ...string) {
		c.Catalog("shelf", lamp(c, 2, objects...))
		c.AwaitPackage("lamp")
	}
	install := func(t *testing.T, c *compattest.Cluster, objects ...string) *operatorsv1alpha1.Subscription {
		t.Helper()
		shelf(c, objects...)
		operator(t, c, "install", "lamp", "--version", "1.0.0", "--approval", "Manual")
		sub := &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "lamp"}}
		if left := c.Read(sub); left != "" {
			t.Fatal(left)
		}
		return sub
	}
	compattest.Check(t, "T25", func(t *testing.T, c *compattest.Cluster) {
		shelf(c)
		for _, args := range [][]string{{"lamp"}, {"--catalog", c.Namespace + "/shelf"}} {
			if out := operator(t, c, append([]string{"list-available"}, args...)...); !hasLine(out, "lamp", "stable", "lamp.v1.1.0") {
				t.Errorf("%v: the list lacks the package:\n%s", args, out)
			}
		}
	})
	compattest.Check(t, "T26", func(t *testing.T, c *compattest.Cluster) {
		shelf(c)
		out := operator(t, c, "describe", "lamp")
		for _, want := range []string{"Lamp 1.1.0 (by ", "stable (default) (shown)", "OwnNamespace"} {
			if !strings.Contains(out, want) {
				t.Errorf("the description lacks %q:\n%s", want, out)
			}
		}
	})
	compattest.Check(t, "T27", func(t *testing.T, c *compattest.Cluster) {
		sub := install(t, c)
		if sub.Spec.CatalogSource != "shelf" || sub.Spec.StartingCSV != "lamp.v1.0.0" {
			t.Errorf("the Subscription has the spec %s", c.Manifest(sub.Spec))
		}
		awaitUpdate(c, sub, sub.Status.InstallPlanRef.Name)
	})
	compattest.Check(t, "T28", func(t *testing.T, c *compattest.Cluster) {
		// Without a CustomResourceDefinition, the tool uninstalls nothing.
		crd := bulbCRD(c)
		t.Cleanup(func() {
			if err := client.IgnoreNotFound(c.Delete(context.WithoutCancel(t.Context()), crd)); err != nil {
				t.Error(err)
			}
		})
		sub := install(t, c, c.Manifest(crd))
		awaitUpdate(c, sub, sub.Status.InstallPlanRef.Name)
		operator(t, c, "upgrade", "lamp")
		installed(c, "lamp.v1.1.0")
		// The tool reads the operands of the first version among the components, which must have succeeded.
		c.Eventually(compattest.Patience, func() string {
			out, code := compattest.Run(t, compattest.Client(t, compattest.ProgramOperator), "", "list-operands", "lamp", "-n", c.Namespace)
			if code != 0 {
				return out
			}
			return ""
		})
		operator(t, c, "uninstall", "lamp", "--delete-all")
		c.Gone(compattest.Patience, sub,
			&operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "lamp.v1.1.0"}},
			&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "group"}},
			&operatorsv1.Operator{ObjectMeta: metav1.ObjectMeta{Name: "lamp." + c.Namespace}})
	})
}

// withBulb installs lamp with a CustomResourceDefinition and creates one custom resource.
func withBulb(t *testing.T, c *compattest.Cluster) *unstructured.Unstructured {
	t.Helper()
	crd := bulbCRD(c)
	c.Catalog("shelf", lamp(c, 1, c.Manifest(crd)))
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(c.Delete(context.WithoutCancel(t.Context()), crd)); err != nil {
			t.Error(err)
		}
	})
	c.Subscribe("shelf", "lamp")
	installed(c, "lamp.v1.0.0")
	bulb := &unstructured.Unstructured{}
	bulb.SetGroupVersionKind(schema.GroupVersionKind{Group: crd.Spec.Group, Version: "v1", Kind: "Bulb"})
	bulb.SetNamespace(c.Namespace)
	bulb.SetName("bright")
	if err := c.Create(t.Context(), bulb); err != nil {
		t.Fatal(err)
	}
	return bulb
}

// hasLine reports whether a line has all words.
func hasLine(text string, words ...string) bool {
	return slices.ContainsFunc(strings.Split(text, "\n"), func(line string) bool {
		fields := strings.Fields(line)
		return !slices.ContainsFunc(words, func(word string) bool { return !slices.Contains(fields, word) })
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// sdk returns the operator lamp as operator-sdk runs it, and the context of a command.
func sdk(t *testing.T, c *compattest.Cluster) (context.Context, operatorsdk.Operator) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), operatorsdk.Timeout)
	t.Cleanup(cancel)
	return ctx, operatorsdk.Operator{Client: c, Namespace: c.Namespace, Package: "lamp"}
}

// approveNext waits for an InstallPlan with a name other than the former one, approves it with an
// update as operator-sdk does, and returns its name.
func approveNext(t *testing.T, c *compattest.Cluster, sub *operatorsv1alpha1.Subscription, former string) string {
	t.Helper()
	ctx, lamps := sdk(t, c)
	plan, err := lamps.Approve(ctx, sub, former)
	must(t, err)
	return plan
}

// runBundle sends the requests of operator-sdk run bundle for version lamp.v1.0.0, and returns the Subscription with the
// name of its InstallPlan. The test serves the catalog, not a pod.
func runBundle(t *testing.T, c *compattest.Cluster, address string) (sub *operatorsv1alpha1.Subscription, plan string) {
	t.Helper()
	ctx, lamps := sdk(t, c)
	_, err := lamps.CreateCatalog(ctx, "")
	must(t, err)
	_, err = lamps.SetAddress(ctx, operatorsdk.Server{Address: address, Pod: "lamp-bundle"})
	must(t, err)
	must(t, lamps.EnsureGroup(ctx))
	sub, err = lamps.Subscribe(ctx, "", "lamp.v1.0.0")
	must(t, err)
	plan, err = lamps.Approve(ctx, sub, "")
	must(t, err)
	_, err = lamps.AwaitSucceeded(ctx, "lamp.v1.0.0")
	must(t, err)
	return sub, plan
}

// TestOperatorSDK sends the requests of operator-sdk. Its module cannot be built here.
func TestOperatorSDK(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "T30", func(t *testing.T, c *compattest.Cluster) {
		compattest.LogRequests(t, c)
		runBundle(t, c, fakecatalog.Start(t, lamp(c, 1)).Address())
	})
	compattest.Check(t, "T31", func(t *testing.T, c *compattest.Cluster) {
		compattest.LogRequests(t, c)
		old := fakecatalog.Start(t, lamp(c, 1))
		sub, former := runBundle(t, c, old.Address())
		ctx, lamps := sdk(t, c)
		_, err := lamps.SetAddress(ctx, operatorsdk.Server{Address: fakecatalog.Start(t, lamp(c, 2)).Address(), Pod: "lamp-bundle-2"})
		must(t, err)
		old.Stop()
		_, err = lamps.Approve(ctx, sub, former)
		must(t, err)
		_, err = lamps.AwaitSucceeded(ctx, "lamp.v1.1.0")
		must(t, err)
	})
	compattest.Check(t, "T32", func(t *testing.T, c *compattest.Cluster) {
		compattest.LogRequests(t, c)
		crd := bulbCRD(c)
		sub, _ := runBundle(t, c, fakecatalog.Start(t, lamp(c, 1, c.Manifest(crd))).Address())
		ctx, lamps := sdk(t, c)
		deleted, err := lamps.CleanUp(ctx)
		must(t, err)
		if !slices.Equal(deleted, []string{crd.Name}) {
			t.Errorf("requirementStatus has the CustomResourceDefinitions %q, want %q", deleted, crd.Name)
		}
		c.Gone(compattest.Patience, sub, crd)
	})
}
