package suite_test

import (
	"context"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/fakecatalog"
)

const (
	// patience is how long an expected state may take.
	patience = controlplane.Timeout
	polling  = 20 * time.Millisecond
)

func TestMain(m *testing.M) {
	handler := slog.DiscardHandler
	if os.Getenv("CHANDLERY_TEST_LOGS") != "" {
		handler = slog.NewTextHandler(os.Stderr, nil)
	}
	logf.SetLogger(logr.FromSlogHandler(handler))
	os.Exit(controlplane.Main(m, controlplane.Options{}, func(ctx context.Context, cp *controlplane.ControlPlane) error {
		return supervisor.InstallCRDs(ctx, cp.Config(), io.Discard)
	}))
}

// supervise runs the store and its controller on a standby. Another instance leads.
func supervise(t *testing.T, namespace string) (client.Client, *catalogs.Store) {
	t.Helper()
	scheme, err := supervisor.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	const lease = "leader"
	taken := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: lease},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("somebody else"), LeaseDurationSeconds: new(int32(3600)), RenewTime: new(metav1.NowMicro()), AcquireTime: new(metav1.NowMicro()),
		},
	}
	c, err := client.New(controlplane.Get(t).Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), taken); err != nil {
		t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(controlplane.Get(t).Config(), ctrl.Options{
		Scheme:                  scheme,
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		Cache:                   cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Controller:              config.Controller{SkipNameValidation: new(true)},
		LeaderElection:          true,
		LeaderElectionID:        lease,
		LeaderElectionNamespace: namespace,
	})
	if err != nil {
		t.Fatal(err)
	}
	store := catalogs.NewStore(ctx, time.Hour, clock.RealClock{})
	if err := catalogs.Setup(mgr, store); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return mgr.GetClient(), store
}

func TestReplicasFollowTheEndpointSlices(t *testing.T) {
	w := gomega.NewWithT(t)
	namespace := controlplane.Namespace(t)
	c, store := supervise(t, namespace)
	key := types.NamespacedName{Namespace: namespace, Name: "my.shop"}
	labels := map[string]string{api.LabelCatalogSource: key.Name, api.LabelManaged: catalogs.LabelManagedValue}
	source := &operatorsv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: key.Name},
		Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Image: "example/catalog:1"},
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: catalogs.ServiceName(source), Labels: labels},
		Spec: corev1.ServiceSpec{
			Selector: labels,
			Ports:    []corev1.ServicePort{{Name: "grpc", Port: catalogs.Port, TargetPort: intstr.FromInt32(catalogs.Port)}},
		},
	}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "my-shop"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "registry-server", Image: "example/catalog:1"}}},
			},
		},
	}
	for _, o := range []client.Object{source, service, deployment} {
		w.Expect(c.Create(t.Context(), o)).To(gomega.Succeed())
	}

	// The store follows the pods, with their nodes and readiness.
	w.Eventually(func() map[types.UID]string { return ready(store.Replicas(key)) }).WithTimeout(patience).WithPolling(polling).
		Should(gomega.And(gomega.HaveLen(2), gomega.Equal(wanted(t, c, namespace, labels))))
	if state, followed := store.State(key); !followed || state.Address != "my-shop."+namespace+".svc:50051" {
		t.Errorf("followed %v: %+v", followed, state)
	}

	// A replica that is not ready any more stays in the set and is probed on.
	pod := onePod(t, c, namespace, labels)
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			pod.Status.Conditions[i].Status = corev1.ConditionFalse
		}
	}
	w.Expect(c.Status().Update(t.Context(), &pod)).To(gomega.Succeed())
	w.Eventually(func() map[types.UID]string { return ready(store.Replicas(key)) }).WithTimeout(patience).WithPolling(polling).Should(gomega.HaveLen(1))
	if n := len(store.Replicas(key)); n != 2 {
		t.Errorf("%d replicas are followed", n)
	}

	// An address replaces the image. Deleting the CatalogSource then removes all replicas.
	source.Spec.Image, source.Spec.Address = "", "127.0.0.1:1"
	w.Expect(c.Update(t.Context(), source)).To(gomega.Succeed())
	w.Eventually(func() string { state, _ := store.State(key); return state.Address }).WithTimeout(patience).WithPolling(polling).Should(gomega.Equal("127.0.0.1:1"))
	w.Expect(c.Delete(t.Context(), source)).To(gomega.Succeed())
	w.Eventually(func() []replicas.State { return store.Replicas(key) }).WithTimeout(patience).WithPolling(polling).Should(gomega.BeEmpty())
}

// TestReplicasOfOLMsService has a Service in OLM's form without the catalog's label. Its replicas
// are created last, and another catalog has the same Service name.
func TestReplicasOfOLMsService(t *testing.T) {
	w := gomega.NewWithT(t)
	namespace := controlplane.Namespace(t)
	c, store := supervise(t, namespace)
	key := types.NamespacedName{Namespace: namespace, Name: "my-shop"}
	other := types.NamespacedName{Namespace: namespace, Name: "my.shop"}
	labels := map[string]string{api.LabelCatalogSource: key.Name, api.LabelManaged: catalogs.LabelManagedValue}
	for _, name := range []string{key.Name, other.Name} {
		w.Expect(c.Create(t.Context(), &operatorsv1alpha1.CatalogSource{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Image: "example/catalog:1"},
		})).To(gomega.Succeed())
		w.Eventually(func() bool {
			_, followed := store.State(types.NamespacedName{Namespace: namespace, Name: name})
			return followed
		}).
			WithTimeout(patience).WithPolling(polling).Should(gomega.BeTrue())
	}
	w.Expect(c.Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "my-shop", Labels: map[string]string{api.LabelManaged: catalogs.LabelManagedValue}},
		Spec: corev1.ServiceSpec{
			Selector: labels,
			Ports:    []corev1.ServicePort{{Name: "grpc", Port: catalogs.Port, TargetPort: intstr.FromInt32(catalogs.Port)}},
		},
	})).To(gomega.Succeed())
	w.Expect(c.Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "my-shop"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "registry-server", Image: "example/catalog:1"}}},
			},
		},
	})).To(gomega.Succeed())
	w.Eventually(func() map[types.UID]string { return ready(store.Replicas(key)) }).WithTimeout(patience).WithPolling(polling).
		Should(gomega.And(gomega.HaveLen(2), gomega.Equal(wanted(t, c, namespace, labels))))
	for _, r := range store.Replicas(key) {
		if r.Revision == "" || r.Created.IsZero() {
			t.Errorf("replica %s is of revision %q, made at %s", r.Pod.Name, r.Revision, r.Created)
		}
	}
	if found := store.Replicas(other); len(found) > 0 {
		t.Errorf("catalog %s follows replicas of %s: %+v", other, key, found)
	}
}

// TestCatalogsTellOfTheirContent has a catalog at an address. Its content changes, it stops, and it
// returns with other content under the same name.
func TestCatalogsTellOfTheirContent(t *testing.T) {
	w := gomega.NewWithT(t)
	namespace := controlplane.Namespace(t)
	c, store := supervise(t, namespace)
	key := types.NamespacedName{Namespace: namespace, Name: "shop"}
	server := fakecatalog.StartExtended(t, fakecatalog.Simple("lamp", fakecatalog.Entry{Name: "lamp.v1", Version: "1.0.0"}))
	source := func() *operatorsv1alpha1.CatalogSource {
		return &operatorsv1alpha1.CatalogSource{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: key.Name},
			Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Address: server.Address()},
		}
	}
	offers := func() []string {
		state, _ := store.State(key)
		if state.Snapshot == nil {
			return nil
		}
		var names []string
		for _, p := range state.Snapshot.Content.Packages() {
			names = append(names, p.Name)
		}
		return names
	}
	becomes := func(names ...string) {
		t.Helper()
		w.Eventually(offers).WithTimeout(patience).WithPolling(polling).Should(gomega.Equal(names))
	}
	w.Expect(c.Create(t.Context(), source())).To(gomega.Succeed())
	becomes("lamp")
	server.Serve(fakecatalog.Simple("fan", fakecatalog.Entry{Name: "fan.v1", Version: "1.0.0"}))
	becomes("fan")
	// While the server is unreachable, its last content stays.
	server.Stop()
	w.Eventually(func() error { state, _ := store.State(key); return state.Err }).WithTimeout(patience).WithPolling(polling).ShouldNot(gomega.Succeed())
	becomes("fan")
	// Without a CatalogSource, the store has no state.
	w.Expect(c.Delete(t.Context(), source())).To(gomega.Succeed())
	w.Eventually(func() bool { _, followed := store.State(key); return followed }).WithTimeout(patience).WithPolling(polling).Should(gomega.BeFalse())
	w.Expect(c.Create(t.Context(), source())).To(gomega.Succeed())
	w.Eventually(func() bool { _, followed := store.State(key); return followed }).WithTimeout(patience).WithPolling(polling).Should(gomega.BeTrue())
	if got := offers(); got != nil {
		t.Errorf("a catalog that was made again offers %v before it was read", got)
	}
	server.Serve(fakecatalog.Simple("rug", fakecatalog.Entry{Name: "rug.v1", Version: "1.0.0"}))
	server.Restart()
	becomes("rug")
}

// ready returns the nodes of the ready replicas by pod UID.
func ready(states []replicas.State) map[types.UID]string {
	nodes := map[types.UID]string{}
	for _, s := range states {
		if s.Ready {
			nodes[s.UID] = s.Node
		}
	}
	return nodes
}

// wanted returns the nodes of the pods, once both run.
func wanted(t *testing.T, c client.Client, namespace string, labels map[string]string) map[types.UID]string {
	t.Helper()
	nodes := map[types.UID]string{}
	gomega.NewWithT(t).Eventually(func() int {
		var pods corev1.PodList
		if err := c.List(t.Context(), &pods, client.InNamespace(namespace), client.MatchingLabels(labels)); err != nil {
			t.Fatal(err)
		}
		clear(nodes)
		for _, pod := range pods.Items {
			if pod.Status.Phase == corev1.PodRunning {
				nodes[pod.UID] = pod.Spec.NodeName
			}
		}
		return len(nodes)
	}).WithTimeout(patience).WithPolling(polling).Should(gomega.Equal(2))
	return nodes
}

func onePod(t *testing.T, c client.Client, namespace string, labels map[string]string) corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	if err := c.List(t.Context(), &pods, client.InNamespace(namespace), client.MatchingLabels(labels)); err != nil || len(pods.Items) == 0 {
		t.Fatalf("no pod: %v", err)
	}
	return pods.Items[0]
}
