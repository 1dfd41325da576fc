package disconnected_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/failover"
	"github.com/chandlery/chandlery/test/nodes"
	"github.com/chandlery/chandlery/test/pause"
	"github.com/chandlery/chandlery/test/programs"
)

const (
	systemNamespace = "chandlery-system"
	supervisorName  = "chandlery-supervisor"
	// patience bounds each wait, and polling is the interval between two reads.
	patience = 4 * time.Minute
	polling  = 50 * time.Millisecond
)

// bin is the folder with the programs, built once for the package.
var bin string

func TestMain(m *testing.M) {
	os.Exit(programs.Main(func(dir string) int {
		bin = dir
		return nodes.Main(m, nodes.Options{})
	}, "./cmd/catalog", "./cmd/registry"))
}

// cluster is the product on nodes that reach only a mirror. The tests share it.
type cluster struct {
	client.WithWatch

	bed    *nodes.Bed
	mirror *mirror
	// distant is the address of a server for a catalog on this machine, which pods reach.
	distant string
}

var shared struct {
	once    sync.Once
	cluster *cluster
	err     error
}

// scene is the cluster for one test.
type scene struct {
	*cluster

	t *testing.T
}

// newScene returns the cluster. The first call installs the product.
func newScene(t *testing.T) *scene {
	t.Helper()
	bed := nodes.Get(t)
	shared.once.Do(func() { shared.cluster, shared.err = install(t, bed) })
	must(t, shared.err)
	return &scene{shared.cluster, t}
}

// kubectl runs kubectl.
func kubectl(ctx context.Context, bed *nodes.Bed, args ...string) error {
	if out, err := exec.CommandContext(ctx, bed.Kubectl(), append([]string{"--kubeconfig", bed.Kubeconfig()}, args...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// create creates objects.
func (s *scene) create(objects ...client.Object) {
	s.t.Helper()
	for _, o := range objects {
		must(s.t, s.Create(s.t.Context(), o))
	}
}

// eventually waits until left returns an empty text.
func (s *scene) eventually(what string, left func() string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	if err := pause.Until(ctx, polling, left); err != nil {
		s.t.Fatalf("waiting for %s: %v", what, err)
	}
}

// hosted returns a CatalogSource of the catalog's image, which has only content; 0 replicas for the default.
func (s *scene) hosted(name string, replicas int) *operatorsv1alpha1.CatalogSource {
	source := failover.NewCatalog(name, s.bed.Images.Address()+"/"+catalogRepository+":v1", replicas)
	source.Spec.GrpcPodConfig = &operatorsv1alpha1.GrpcPodConfig{ExtractContent: &operatorsv1alpha1.ExtractContentConfig{CatalogDir: "/configs"}}
	return source
}

// ready waits until a catalog is READY.
func (s *scene) ready(name string) {
	s.t.Helper()
	s.eventually("catalog "+name, func() string {
		source := &operatorsv1alpha1.CatalogSource{}
		if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: failover.CatalogNamespace, Name: name}, source); err != nil {
			return err.Error()
		}
		if state := source.Status.GRPCConnectionState; state == nil || state.LastObservedState != "READY" {
			return fmt.Sprintf("%+v, %s, %+v", state, source.Status.Message, source.Status.Conditions)
		}
		return ""
	})
}

// subscribe creates a Subscription to a package in its own namespace. It starts with a version, or with the newest one if
// none is given.
func (s *scene) subscribe(namespace, pkg, version, catalog string) {
	s.t.Helper()
	s.create(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&operatorsv1.OperatorGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "own"},
			Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{namespace}},
		},
		&operatorsv1alpha1.Subscription{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pkg},
			Spec: &operatorsv1alpha1.SubscriptionSpec{
				Package: pkg, Channel: operators[pkg].channel, StartingCSV: version, CatalogSource: catalog, CatalogSourceNamespace: failover.CatalogNamespace,
			},
		})
}

// unresolved returns what a Subscription waits for; empty if it has an InstallPlan.
func (s *scene) unresolved(namespace, pkg string) string {
	sub := &operatorsv1alpha1.Subscription{}
	if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: namespace, Name: pkg}, sub); err != nil {
		return err.Error()
	}
	if sub.Status.InstallPlanRef == nil || sub.Status.CurrentCSV == "" {
		return fmt.Sprintf("Subscription %s/%s is %q: %+v", namespace, pkg, sub.Status.State, sub.Status.Conditions)
	}
	return ""
}

// succeeded waits until a version has succeeded.
func (s *scene) succeeded(namespace, pkg, version string) {
	s.t.Helper()
	s.eventually(version, func() string {
		csv := &operatorsv1alpha1.ClusterServiceVersion{}
		if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: namespace, Name: version}, csv); err != nil {
			return err.Error() + "; " + s.unresolved(namespace, pkg)
		}
		if csv.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
			return fmt.Sprintf("%s is %s: %s", version, csv.Status.Phase, csv.Status.Message)
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
