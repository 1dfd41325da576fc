package suite_test

import (
	"errors"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/catalogs/dialtls"
	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
	"github.com/chandlery/chandlery/supervisor/controllers/failover"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/testenv"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// gracePeriod is how long the node lifecycle controller tolerates a silent node.
const gracePeriod = 5 * time.Second

const name = "shop"

func TestMain(m *testing.M) {
	os.Exit(testenv.Main(m, controlplane.Options{NodeMonitorGracePeriod: gracePeriod}, testenv.InstallCRDs))
}

// world gives a test access to a cluster with one catalog.
type world struct {
	*testenv.World

	store *catalogs.Store

	mu      sync.Mutex
	servers map[types.UID]*server // by pod UID
}

// server represents the process in a pod.
type server struct {
	address string
	stop    func()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: testenv.New(t), servers: map[types.UID]*server{}}
	w.Create(fixtures.ImageCatalog(w.Namespace, name, "example/catalog:1"))
	w.StartManager(ctrl.Options{
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{w.Namespace: {}}},
	}, func(mgr testenv.Manager) error {
		w.store = catalogs.NewStore(mgr.Context, time.Hour, clock.RealClock{})
		return errors.Join(
			failover.Setup(mgr, failover.Options{Store: w.store, Limits: failover.Limits{Rate: 10, Burst: 50}}),
			mgr.Add(w.store),
		)
	})
	return w
}

func podLabels() map[string]string {
	return map[string]string{api.LabelCatalogSource: name, api.LabelManaged: catalogs.LabelManagedValue}
}

// spec returns the spec of a pod that serves a catalog.
func spec() corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "registry-server", Image: "example/catalog:1"}}}
}

// deploy runs the catalog in n replicas on different nodes, each with a serving process, and
// returns the pods.
func (w *world) deploy(n int32) []corev1.Pod {
	w.T.Helper()
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: podLabels()}, Spec: spec()}
	template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: &metav1.LabelSelector{MatchLabels: podLabels()},
	}}
	w.Create(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name},
		Spec:       appsv1.DeploymentSpec{Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: podLabels()}, Template: template},
	})
	w.Eventually(func() int { return len(w.readyPods()) }).Should(gomega.BeEquivalentTo(n))
	w.Eventually(w.serving).Should(gomega.BeEquivalentTo(n))
	return w.readyPods()
}

// pods returns the pods of the catalog and starts a serving process for each new one.
func (w *world) pods() []corev1.Pod {
	w.T.Helper()
	var pods corev1.PodList
	if err := w.List(w.T.Context(), &pods, client.InNamespace(w.Namespace), client.MatchingLabels(podLabels())); err != nil {
		w.T.Fatal(err)
	}
	var endpoints []replicas.Endpoint
	for _, pod := range pods.Items {
		endpoints = append(endpoints, replicas.Endpoint{
			Address: w.server(pod.UID).address, Pod: client.ObjectKeyFromObject(&pod), UID: pod.UID, Node: pod.Spec.NodeName, Ready: isReady(pod),
		})
	}
	if err := w.store.FollowReplicas(w.key(), name+"."+w.Namespace+".svc:50051", dialtls.Security{}, endpoints); err != nil {
		w.T.Fatal(err)
	}
	return pods.Items
}

func (w *world) key() types.NamespacedName {
	return types.NamespacedName{Namespace: w.Namespace, Name: name}
}

func (w *world) readyPods() []corev1.Pod {
	var found []corev1.Pod
	for _, pod := range w.pods() {
		if isReady(pod) && pod.DeletionTimestamp.IsZero() {
			found = append(found, pod)
		}
	}
	return found
}

func (w *world) serving() int {
	w.pods()
	n := 0
	for _, r := range w.store.Replicas(w.key()) {
		if r.Health == replicas.Serving {
			n++
		}
	}
	return n
}

func ready(pod corev1.Pod) corev1.PodCondition {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c
		}
	}
	return corev1.PodCondition{}
}

func isReady(pod corev1.Pod) bool { return ready(pod).Status == corev1.ConditionTrue }

// server returns the process of a pod and starts it at the first call.
func (w *world) server(pod types.UID) *server {
	w.T.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if found := w.servers[pod]; found != nil {
		return found
	}
	started := serve(w.T, "127.0.0.1:0")
	w.servers[pod] = started
	return started
}

// revive restarts the process of a pod.
func (w *world) revive(pod types.UID) {
	w.T.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.servers[pod] = serve(w.T, w.servers[pod].address)
}

func serve(t *testing.T, address string) *server {
	t.Helper()
	var lc net.ListenConfig
	listener, err := lc.Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	healthpb.RegisterHealthServer(s, health.NewServer())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Serve(listener) // the test detects a missing answer
	}()
	stop := sync.OnceFunc(func() {
		s.Stop()
		<-ended
	})
	t.Cleanup(stop)
	return &server{address: listener.Addr().String(), stop: stop}
}

// pod reads a pod again.
func (w *world) pod(of corev1.Pod) (corev1.Pod, error) {
	var found corev1.Pod
	err := w.Get(w.T.Context(), client.ObjectKeyFromObject(&of), &found)
	if err == nil && found.UID != of.UID {
		return found, os.ErrNotExist
	}
	return found, err
}

// events returns the reasons of the Events on an object.
func (w *world) events(kind, object string) []string {
	w.T.Helper()
	var list eventsv1.EventList
	if err := w.List(w.T.Context(), &list, client.InNamespace(w.Namespace)); err != nil {
		w.T.Fatal(err)
	}
	var reasons []string
	for _, e := range list.Items {
		if e.Regarding.Kind == kind && e.Regarding.Name == object {
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}
