package suite_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/testenv"
)

// kubectl runs kubectl with a file of a release for each name, and returns what it prints.
func kubectl(t *testing.T, verb string, names []string, more ...string) string {
	t.Helper()
	cp := controlplane.Get(t)
	args := append([]string{"--kubeconfig", cp.Kubeconfig(), verb}, more...)
	for _, name := range names {
		args = append(args, "-f", filepath.Join(first(t), name))
	}
	out, err := exec.CommandContext(t.Context(), cp.Kubectl(), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	t.Logf("$ kubectl %s\n%s", strings.Join(args, " "), out)
	return string(out)
}

// TestManifestsInstallAndRemove applies the manifests of a release to an empty cluster, twice as an update does, and
// deletes the product. What the prerequisites and the defaults contain stays.
func TestManifestsInstallAndRemove(t *testing.T) {
	w := testenv.New(t)
	product, prerequisites, defaults := []string{"install.yaml"}, []string{"prerequisites.yaml"}, []string{"defaults.yaml"}
	for range 2 {
		kubectl(t, "apply", append(prerequisites, product...))
	}
	kubectl(t, "wait", nil, "--for=condition=Established", "customresourcedefinitions", "--all")
	kubectl(t, "create", defaults)
	deployment := &appsv1.Deployment{}
	w.EventuallySucceeds(func(g gomega.Gomega) {
		g.Expect(w.Get(t.Context(), client.ObjectKey{Namespace: "chandlery-system", Name: "chandlery-supervisor"}, deployment)).To(gomega.Succeed())
		g.Expect(deployment.Status.AvailableReplicas).To(gomega.BeEquivalentTo(2), "conditions: %+v", deployment.Status.Conditions)
	})
	if image := deployment.Spec.Template.Spec.Containers[0].Image; !strings.HasPrefix(image, host+"/chandlery/supervisor@sha256:") {
		t.Errorf("the image is %s", image)
	}

	kubectl(t, "delete", product)
	if left := kubectl(t, "get", product, "--ignore-not-found", "--output=name"); left != "" {
		t.Errorf("the product leaves:\n%s", left)
	}
	for _, kept := range [][]string{prerequisites, defaults} {
		kubectl(t, "get", kept) // fails if one is missing
	}
	kubectl(t, "apply", product)
	kubectl(t, "get", product)
}
