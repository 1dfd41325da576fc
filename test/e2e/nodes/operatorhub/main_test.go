package operatorhub_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/deploy/release"
	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/failover"
	"github.com/chandlery/chandlery/test/nodes"
	"github.com/chandlery/chandlery/test/pause"
	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/testrelease"
)

const (
	systemNamespace = "chandlery-system"
	// patience bounds each wait, and polling is the interval between two reads.
	patience = 3 * time.Minute
	polling  = 200 * time.Millisecond
)

// bin is the folder with the programs, built once for the package.
var bin string

func TestMain(m *testing.M) {
	os.Exit(programs.Main(func(dir string) int {
		bin = dir
		return nodes.Main(m, nodes.Options{Nodes: 2}, pushImages, install)
	}, "./cmd/catalog", "./test/rehearsal/operator"))
}

// install builds a release, pushes its images, and installs the product as its files say.
func install(ctx context.Context, bed *nodes.Bed) error {
	dir := filepath.Join(bin, "release")
	if err := testrelease.Build(ctx, dir, bed.Images.Address()); err != nil {
		return err
	}
	if _, err := release.Push(ctx, dir); err != nil {
		return err
	}
	settings, err := registrySettings(bed, dir)
	if err != nil {
		return err
	}
	rollout := []string{"--namespace", systemNamespace, "rollout", "status", "deployment/chandlery-supervisor", "--timeout", patience.String()}
	for _, args := range [][]string{
		{"apply", "--server-side", "-f", filepath.Join(dir, "prerequisites.yaml"), "-f", filepath.Join(dir, "install.yaml")},
		rollout,
		{"apply", "--server-side", "-k", settings},
		rollout,
		{"create", "-f", filepath.Join(dir, "defaults.yaml")},
	} {
		if out, err := exec.CommandContext(ctx, bed.Kubectl(), append([]string{"--kubeconfig", bed.Kubeconfig()}, args...)...).CombinedOutput(); err != nil {
			return fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}

// registrySettings makes a kustomization of the manifest in the folder of a release, with mirrors for the supervisors: the
// registry of the nodes for quay.io, and plain HTTP for this registry. It returns its folder.
func registrySettings(bed *nodes.Bed, from string) (string, error) {
	const component = "image-registries"
	dir := filepath.Join(bin, "settings")
	components, err := buildcache.SourceDir("deploy/components")
	if err != nil {
		return "", err
	}
	if err := os.CopyFS(filepath.Join(dir, component), os.DirFS(filepath.Join(components, component))); err != nil {
		return "", fmt.Errorf("copying the component: %w", err)
	}
	product, err := os.ReadFile(filepath.Join(from, "install.yaml"))
	if err != nil {
		return "", fmt.Errorf("reading the manifest of the release: %w", err)
	}
	mirror := fmt.Appendf(nil, "[host.%q]\ncapabilities = [\"pull\", \"resolve\"]\n", "http://"+bed.Images.Address())
	own := strings.ReplaceAll(bed.Images.Address(), ":", "..") + ".hosts.toml"
	for name, content := range map[string][]byte{
		"install.yaml": product, "quay.io.hosts.toml": mirror, own: mirror,
		"kustomization.yaml": []byte(`resources: [install.yaml]
components: [` + component + `]
generatorOptions: {disableNameSuffixHash: true}
configMapGenerator:
- name: chandlery-image-registries
  namespace: ` + systemNamespace + `
  files: [quay.io.hosts.toml, ` + own + `]
`),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return "", fmt.Errorf("writing the settings: %w", err)
		}
	}
	return dir, nil
}

// scene is the product on the nodes, for one test.
type scene struct {
	client.WithWatch

	t   *testing.T
	bed *nodes.Bed
}

func newScene(t *testing.T) scene {
	t.Helper()
	bed := nodes.Get(t)
	c, err := failover.NewClient(bed)
	must(t, err)
	return scene{WithWatch: c, t: t, bed: bed}
}

// kubectl runs kubectl with further variables and returns its output.
func (s scene) kubectl(variables []string, args ...string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), s.bed.Kubectl(), args...)
	cmd.Env = append(append(os.Environ(), "KUBECONFIG="+s.bed.Kubeconfig()), variables...)
	begun := time.Now()
	out, err := cmd.CombinedOutput()
	s.t.Logf("$ kubectl %s   # %s\n%s", strings.Join(args, " "), time.Since(begun).Round(time.Millisecond), out)
	if err != nil {
		s.t.Fatalf("kubectl %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

// eventually waits until left returns an empty text.
func (s scene) eventually(left func() string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	must(s.t, pause.Until(ctx, polling, left))
}

// installed waits until a Subscription has installed a version, and the version has succeeded.
func (s scene) installed(namespace, subscription, version string) {
	s.t.Helper()
	begun := time.Now()
	s.eventually(func() string {
		sub := &operatorsv1alpha1.Subscription{}
		if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: namespace, Name: subscription}, sub); err != nil {
			return err.Error()
		}
		if sub.Status.InstalledCSV != version || sub.Status.State != operatorsv1alpha1.SubscriptionStateAtLatest {
			return fmt.Sprintf("the Subscription has installed %q and is %q: %+v", sub.Status.InstalledCSV, sub.Status.State, sub.Status.Conditions)
		}
		return ""
	})
	s.succeeded(namespace, version)
	s.t.Logf("%s has succeeded after %s", version, time.Since(begun).Round(100*time.Millisecond))
}

// published waits until a namespace shows a package.
func (s scene) published(namespace, name string) {
	s.t.Helper()
	s.eventually(func() string {
		pkg := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "packages.operators.coreos.com/v1", "kind": "PackageManifest"}}
		if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, pkg); err != nil {
			return err.Error()
		}
		return ""
	})
}

// succeeded waits until a version has succeeded.
func (s scene) succeeded(namespace, version string) {
	s.t.Helper()
	s.eventually(func() string {
		csv := &operatorsv1alpha1.ClusterServiceVersion{}
		if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: namespace, Name: version}, csv); err != nil {
			return err.Error()
		}
		if csv.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
			return fmt.Sprintf("%s in namespace %s is %s: %s", version, namespace, csv.Status.Phase, csv.Status.Message)
		}
		return ""
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
