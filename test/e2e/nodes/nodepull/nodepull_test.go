package nodepull_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/failover"
	"github.com/chandlery/chandlery/test/images"
	"github.com/chandlery/chandlery/test/nodes"
)

const (
	// registry is in the names of all images. Nodes get them from their mirror.
	registry        = "source.test"
	systemNamespace = "chandlery-system"
	catalog         = "mirrored"
)

func TestMain(m *testing.M) { os.Exit(nodes.Main(m, nodes.Options{Nodes: 2})) }

// must fails the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pushed pushes an image for the nodes, and returns its name by digest.
func pushed(t *testing.T, bed *nodes.Bed, folder, repository string) string {
	t.Helper()
	dir, err := buildcache.SourceDir(filepath.Join("examples", "bundles", folder))
	must(t, err)
	image, err := images.Bundle(os.DirFS(dir))
	must(t, err)
	digest, err := bed.Images.Push(t.Context(), image, repository+":v1")
	must(t, err)
	return registry + "/" + repository + "@" + digest.String()
}

// pushCatalog pushes a catalog with a version of each package, and returns its name by digest.
func pushCatalog(t *testing.T, bed *nodes.Bed, versions map[string]string) string {
	t.Helper()
	var content strings.Builder
	for pkg, version := range versions {
		name := pkg + ".v" + version
		bundle := pushed(t, bed, pkg+"/"+version, "acme/"+pkg+"-bundle")
		fmt.Fprintf(&content, `{"schema":"olm.package","name":%[1]q,"defaultChannel":"stable"}
{"schema":"olm.channel","package":%[1]q,"name":"stable","entries":[{"name":%[2]q}]}
{"schema":"olm.bundle","package":%[1]q,"name":%[2]q,"image":%[3]q,"properties":[{"type":"olm.package","value":{"packageName":%[1]q,"version":%[4]q}}]}
`, pkg, name, bundle, version)
	}
	image, err := images.Content(fstest.MapFS{"catalog.json": &fstest.MapFile{Data: []byte(content.String())}})
	must(t, err)
	digest, err := bed.Images.Push(t.Context(), image, "acme/catalog:v1")
	must(t, err)
	return registry + "/acme/catalog@" + digest.String()
}

// use sets who pulls, and waits until all supervisors do so. They have no setting for registries besides.
func use(t *testing.T, s *failover.Scene, mode string) {
	t.Helper()
	must(t, s.Kubectl(t.Context(), "-n", systemNamespace, "set", "env", "deployment/chandlery-supervisor", "SUPERVISOR_IMAGE_PULL="+mode, "SUPERVISOR_IMAGE_PLAIN_HTTP-"))
	must(t, s.Kubectl(t.Context(), "-n", systemNamespace, "rollout", "status", "deployment/chandlery-supervisor", "--timeout=3m"))
}

// installs subscribes to a package and waits until its version has succeeded. It returns the plan.
func installs(t *testing.T, s *failover.Scene, pkg, csv string) *operatorsv1alpha1.InstallPlan {
	t.Helper()
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: pkg}},
		&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: pkg, Name: "own"}, Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{pkg}}},
		&operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: pkg, Name: pkg}, Spec: &operatorsv1alpha1.SubscriptionSpec{
			Package: pkg, Channel: "stable", CatalogSource: catalog, CatalogSourceNamespace: failover.CatalogNamespace,
		}},
	} {
		must(t, s.Client.Create(t.Context(), object))
	}
	plans := &operatorsv1alpha1.InstallPlanList{}
	must(t, failover.Eventually(t.Context(), csv+" to succeed", func(ctx context.Context) string {
		if err := s.Client.List(ctx, plans, client.InNamespace(pkg)); err != nil {
			return err.Error()
		}
		version := &operatorsv1alpha1.ClusterServiceVersion{}
		if err := s.Client.Get(ctx, client.ObjectKey{Namespace: pkg, Name: csv}, version); err != nil {
			text, _ := json.Marshal(plans.Items)
			return err.Error() + ": " + string(text)
		}
		if version.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
			return string(version.Status.Phase) + ": " + version.Status.Message
		}
		return ""
	}))
	if len(plans.Items) != 1 || len(plans.Items[0].Status.BundleLookups) != 1 {
		t.Fatalf("plans %+v", plans.Items)
	}
	return &plans.Items[0]
}

// TestNodesPull installs an operator with --image-pull=node, and one with auto. Nothing but the operators is left.
func TestNodesPull(t *testing.T) {
	bed := nodes.Get(t)
	s, err := failover.Install(t.Context(), bed, t.TempDir(), os.Stderr)
	must(t, err)
	source := failover.NewCatalog(catalog, pushCatalog(t, bed, map[string]string{"compass": "2.0.0", "lantern": "1.0.0"}), 1)
	source.Spec.GrpcPodConfig = &operatorsv1alpha1.GrpcPodConfig{
		ExtractContent: &operatorsv1alpha1.ExtractContentConfig{CatalogDir: "/configs", CacheDir: "/tmp/cache"},
	}
	use(t, s, "node")
	must(t, s.Client.Create(t.Context(), source))
	must(t, s.Ready(t.Context(), catalog))
	for _, step := range []struct{ mode, pkg, csv, reason string }{
		{"node", "compass", "compass.v2.0.0", "NodeOnly"},
		{"auto", "lantern", "lantern.v1.0.0", "Unreachable"},
	} {
		use(t, s, step.mode)
		plan := installs(t, s, step.pkg, step.csv)
		pulled := plan.Status.BundleLookups[0].GetCondition("PulledByNode")
		if pulled.Status != corev1.ConditionTrue || pulled.Reason != step.reason || !strings.HasPrefix(pulled.Message, "node ") {
			t.Errorf("mode %s: %+v", step.mode, pulled)
		}
		t.Logf("mode %s: %s", step.mode, pulled.Message)
		must(t, failover.Eventually(t.Context(), "the pod to be deleted", func(ctx context.Context) string {
			pods := &corev1.PodList{}
			if err := s.Client.List(ctx, pods, client.MatchingLabels{"chandlery.dev/image-pull": "true"}); err != nil {
				return err.Error()
			}
			if len(pods.Items) > 0 {
				return pods.Items[0].Name
			}
			return ""
		}))
	}
}
