package suite_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/controlplane"
)

// cluster is a control plane without the supervisor, because helm refuses objects that kubectl created.
type cluster struct {
	client.Client

	kubeconfig, kubectl string
}

// newCluster starts a control plane without nodes, which ends with the test.
func newCluster(t *testing.T) cluster {
	t.Helper()
	plane := controlplane.StartForTest(t, controlplane.Options{Nodes: -1})
	c, err := client.New(plane.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return cluster{Client: c, kubeconfig: plane.Kubeconfig(), kubectl: plane.Kubectl()}
}

// helm runs helm in the namespace of the supervisor and returns what it prints.
func (c cluster) helm(t *testing.T, args ...string) []byte {
	t.Helper()
	return output(t, program(t), append([]string{"--kubeconfig", c.kubeconfig, "--namespace", "chandlery-system"}, args...)...)
}

// release is the state of a release and of its Deployment.
type release struct {
	status     string
	revision   int
	arguments  []string
	generation int64
}

// release returns the state of the release.
func (c cluster) release(t *testing.T) release {
	t.Helper()
	var shown struct {
		Info    struct{ Status string }
		Version int
	}
	if err := json.Unmarshal(c.helm(t, "status", "chandlery", "--output", "json"), &shown); err != nil {
		t.Fatal(err)
	}
	deployment := &appsv1.Deployment{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "chandlery-system", Name: "chandlery-supervisor"}, deployment); err != nil {
		t.Fatal(err)
	}
	return release{shown.Info.Status, shown.Version, deployment.Spec.Template.Spec.Containers[0].Args, deployment.Generation}
}

// TestRelease installs the chart, changes a setting, uninstalls the release, and installs it again.
func TestRelease(t *testing.T) {
	c := newCluster(t)
	output(t, c.kubectl, "--kubeconfig", c.kubeconfig, "create", "namespace", "chandlery-system")
	const flag = "--catalog-replicas=3"

	c.helm(t, "install", "chandlery", chart)
	installed := c.release(t)
	if installed.status != "deployed" || installed.revision != 1 || slices.Contains(installed.arguments, flag) {
		t.Errorf("after the installation: %+v", installed)
	}
	c.helm(t, "upgrade", "chandlery", chart, "--set", "catalogs.replicas=3")
	upgraded := c.release(t)
	if upgraded.status != "deployed" || upgraded.revision != 2 || upgraded.generation == installed.generation || !slices.Contains(upgraded.arguments, flag) {
		t.Errorf("after the upgrade: %+v", upgraded)
	}

	c.helm(t, "uninstall", "chandlery")
	if got := string(c.helm(t, "list", "--short")); got != "" {
		t.Errorf("releases after the removal: %s", got)
	}
	// The README of the chart names these.
	kept := []string{
		"ClusterRole /aggregate-olm-edit", "ClusterRole /aggregate-olm-view", "Namespace /olm",
		"Namespace /operators", "OperatorGroup operators/global-operators", "OLMConfig /cluster", "CatalogSource olm/operatorhubio-catalog",
	}
	all := rendered(t)
	for key, u := range all {
		if u.GetKind() == "CustomResourceDefinition" {
			kept = append(kept, key)
		}
	}
	slices.Sort(kept)
	gomega.NewWithT(t).Eventually(func(g gomega.Gomega) {
		g.Expect(cmp.Diff(kept, c.existing(t, g, all))).To(gomega.BeEmpty(), "what the release leaves (-want +got)")
	}, controlplane.Timeout, 100*time.Millisecond).Should(gomega.Succeed())

	c.helm(t, "install", "chandlery", chart)
	if again := c.release(t); again.status != "deployed" || again.revision != 1 {
		t.Errorf("after the second installation: %+v", again)
	}
}

// existing returns the keys of the objects that exist and are not being deleted, sorted.
func (c cluster) existing(t *testing.T, g gomega.Gomega, all objects) []string {
	t.Helper()
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(all[key].GroupVersionKind())
		err := c.Get(t.Context(), client.ObjectKeyFromObject(all[key]), live)
		g.Expect(client.IgnoreNotFound(err)).To(gomega.Succeed())
		if !apierrors.IsNotFound(err) && live.GetDeletionTimestamp() == nil {
			keys = append(keys, key)
		}
	}
	return keys
}
