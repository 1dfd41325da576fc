package suite_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/controlplane"
)

// cluster is a control plane that ends with the test.
type cluster struct {
	client.Client
	*controlplane.ControlPlane
}

// newCluster starts a control plane. Verifying releases needs none, so it runs only for the test of manifests.
func newCluster(t *testing.T) cluster {
	t.Helper()
	plane := controlplane.StartForTest(t, controlplane.Options{})
	c, err := client.New(plane.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return cluster{c, plane}
}

// kubectl runs kubectl with a file of a release for each name, and returns what it prints.
func (c cluster) kubectl(t *testing.T, verb string, names []string, more ...string) string {
	t.Helper()
	args := append([]string{"--kubeconfig", c.Kubeconfig(), verb}, more...)
	for _, name := range names {
		args = append(args, "-f", filepath.Join(first(t), name))
	}
	out, err := exec.CommandContext(t.Context(), c.Kubectl(), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	t.Logf("$ kubectl %s\n%s", strings.Join(args, " "), out)
	return string(out)
}

// TestManifestsInstallAndRemove applies the manifests of a release to an empty cluster, twice as an update does, and
// deletes the product. What the prerequisites and the defaults contain stays.
func TestManifestsInstallAndRemove(t *testing.T) {
	first(t) // before a control plane runs beside the build
	c := newCluster(t)
	product, prerequisites, defaults := []string{"install.yaml"}, []string{"prerequisites.yaml"}, []string{"defaults.yaml"}
	for range 2 {
		c.kubectl(t, "apply", append(prerequisites, product...))
	}
	c.kubectl(t, "wait", nil, "--for=condition=Established", "customresourcedefinitions", "--all")
	c.kubectl(t, "create", defaults)
	var deployment *appsv1.Deployment
	gomega.NewWithT(t).Eventually(func(g gomega.Gomega) {
		deployment = &appsv1.Deployment{}
		g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "chandlery-system", Name: "chandlery-supervisor"}, deployment)).To(gomega.Succeed())
		g.Expect(deployment.Status.AvailableReplicas).To(gomega.BeEquivalentTo(2), "conditions: %+v", deployment.Status.Conditions)
	}, controlplane.Timeout, 100*time.Millisecond).Should(gomega.Succeed())
	if image := deployment.Spec.Template.Spec.Containers[0].Image; !strings.HasPrefix(image, host+"/chandlery/supervisor@sha256:") {
		t.Errorf("the image is %s", image)
	}

	c.kubectl(t, "delete", product)
	if left := c.kubectl(t, "get", product, "--ignore-not-found", "--output=name"); left != "" {
		t.Errorf("the product leaves:\n%s", left)
	}
	for _, kept := range [][]string{prerequisites, defaults} {
		c.kubectl(t, "get", kept) // fails if one is missing
	}
	c.kubectl(t, "apply", product)
	c.kubectl(t, "get", product)
}
