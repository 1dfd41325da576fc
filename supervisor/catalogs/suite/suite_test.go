package suite_test

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/catalogs/contentcache"
	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
	"github.com/chandlery/chandlery/test/certificates"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/testenv"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

func TestMain(m *testing.M) {
	os.Exit(testenv.Main(m, controlplane.Options{}, testenv.InstallCRDs))
}

// supervise runs the store and its controller on a standby. Another instance leads.
func supervise(t *testing.T) (*testenv.World, *catalogs.Store) {
	t.Helper()
	w := testenv.New(t)
	store, _ := start(t, w, "", nil)
	return w, store
}

// start runs the store in a namespace until stop is called. It keeps contents in a directory, unless that is empty, and
// reads missing ones from a peer.
func start(t *testing.T, w *testenv.World, contents string, peer catalogs.ContentReader) (store *catalogs.Store, stop func()) {
	t.Helper()
	const lease = "leader"
	leader := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: lease},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("somebody else"), LeaseDurationSeconds: new(int32(3600)), RenewTime: new(metav1.NowMicro()), AcquireTime: new(metav1.NowMicro()),
		},
	}
	if err := w.Client.Create(t.Context(), leader); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	stop = w.StartManager(ctrl.Options{
		Cache:          cache.Options{DefaultNamespaces: map[string]cache.Config{w.Namespace: {}}},
		LeaderElection: true, LeaderElectionID: lease, LeaderElectionNamespace: w.Namespace,
	}, func(mgr testenv.Manager) error {
		store = catalogs.NewStore(mgr.Context, time.Hour, clock.RealClock{})
		if contents != "" {
			cache, err := contentcache.Open(contents, 0)
			if err != nil {
				return err
			}
			store.Contents = catalogs.NewContentStore(cache)
			store.Contents.UsePeer(peer)
		}
		return catalogs.Setup(mgr, store)
	})
	return store, stop
}

// service returns the Service of a catalog.
func service(namespace, name string, selector, labels map[string]string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: corev1.ServiceSpec{
			Selector: selector,
			Ports:    []corev1.ServicePort{{Name: "grpc", Port: catalogs.Port, TargetPort: intstr.FromInt32(catalogs.Port)}},
		},
	}
}

// deployment returns the Deployment of a catalog with two replicas.
func deployment(namespace string, labels map[string]string) *appsv1.Deployment {
	d := fixtures.Deployment(namespace, "my-shop", "registry-server")
	d.Spec.Replicas, d.Spec.Selector.MatchLabels, d.Spec.Template.Labels = new(int32(2)), labels, labels
	return d
}

func TestReplicasFollowTheEndpointSlices(t *testing.T) {
	w, store := supervise(t)
	key := types.NamespacedName{Namespace: w.Namespace, Name: "my.shop"}
	labels := map[string]string{api.LabelCatalogSource: key.Name, api.LabelManaged: catalogs.LabelManagedValue}
	source := fixtures.ImageCatalog(w.Namespace, key.Name, "example/catalog:1")
	w.Create(source, service(w.Namespace, catalogs.ServiceName(source), labels, labels), deployment(w.Namespace, labels))

	// The store follows the pods, with their nodes and readiness.
	w.Eventually(func() map[types.UID]string { return ready(store.Replicas(key)) }).Should(gomega.And(gomega.HaveLen(2), gomega.Equal(wanted(w, labels))))
	if state, followed := store.State(key); !followed || state.Address != "my-shop."+w.Namespace+".svc:50051" {
		t.Errorf("followed %v: %+v", followed, state)
	}

	// A replica that is not ready any more stays in the set and is probed on.
	pod := pods(w, labels)[0]
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			pod.Status.Conditions[i].Status = corev1.ConditionFalse
		}
	}
	w.Expect(w.Status().Update(t.Context(), &pod)).To(gomega.Succeed())
	w.Eventually(func() map[types.UID]string { return ready(store.Replicas(key)) }).Should(gomega.HaveLen(1))
	if n := len(store.Replicas(key)); n != 2 {
		t.Errorf("%d replicas are followed", n)
	}

	// An address replaces the image. Deleting the CatalogSource then removes all replicas.
	source.Spec.Image, source.Spec.Address = "", "127.0.0.1:1"
	w.Expect(w.Update(t.Context(), source)).To(gomega.Succeed())
	w.Eventually(func() string { state, _ := store.State(key); return state.Address }).Should(gomega.Equal("127.0.0.1:1"))
	w.Expect(w.Delete(t.Context(), source)).To(gomega.Succeed())
	w.Eventually(func() []replicas.State { return store.Replicas(key) }).Should(gomega.BeEmpty())
}

// TestReplicasServeTLS adds the port for TLS to a Service. Only the pods with the label are reached there.
func TestReplicasServeTLS(t *testing.T) {
	w, store := supervise(t)
	key := types.NamespacedName{Namespace: w.Namespace, Name: "my-shop"}
	labels := map[string]string{api.LabelCatalogSource: key.Name, api.LabelManaged: catalogs.LabelManagedValue}
	source := fixtures.ImageCatalog(w.Namespace, key.Name, "example/catalog:1")
	authorities := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: catalogs.AuthorityName(source)},
		Data:       map[string]string{"ca.crt": string(certificates.NewAuthority(t, "shop").PEM)},
	}
	served := service(w.Namespace, key.Name, labels, labels)
	w.Create(source, authorities, served, deployment(w.Namespace, labels))
	ports := func() map[string]int {
		found := map[string]int{}
		for _, r := range store.Replicas(key) {
			_, port, _ := net.SplitHostPort(r.Address)
			found[port+" "+strconv.FormatBool(r.Secured)]++
		}
		return found
	}
	w.Eventually(ports).Should(gomega.Equal(map[string]int{"50051 false": 2}))
	w.Modify(served, func() {
		served.Spec.Ports = append(served.Spec.Ports, corev1.ServicePort{Name: catalogs.PortNameTLS, Port: catalogs.PortTLS, TargetPort: intstr.FromInt32(catalogs.PortTLS)})
	})
	pod := pods(w, labels)[0]
	w.Modify(&pod, func() { pod.Labels[api.LabelServeTLS] = "true" })
	w.Eventually(ports).Should(gomega.Equal(map[string]int{"50051 false": 1, "50052 true": 1}))
}

// TestReplicasOfOLMsService has a Service in OLM's form without the catalog's label. Its replicas
// are created last, and another catalog has the same Service name.
func TestReplicasOfOLMsService(t *testing.T) {
	w, store := supervise(t)
	key := types.NamespacedName{Namespace: w.Namespace, Name: "my-shop"}
	other := types.NamespacedName{Namespace: w.Namespace, Name: "my.shop"}
	labels := map[string]string{api.LabelCatalogSource: key.Name, api.LabelManaged: catalogs.LabelManagedValue}
	for _, name := range []string{key.Name, other.Name} {
		w.Create(fixtures.ImageCatalog(w.Namespace, name, "example/catalog:1"))
		w.Eventually(func() bool {
			_, followed := store.State(types.NamespacedName{Namespace: w.Namespace, Name: name})
			return followed
		}).Should(gomega.BeTrue())
	}
	w.Create(
		service(w.Namespace, "my-shop", labels, map[string]string{api.LabelManaged: catalogs.LabelManagedValue}),
		deployment(w.Namespace, labels),
	)
	w.Eventually(func() map[types.UID]string { return ready(store.Replicas(key)) }).Should(gomega.And(gomega.HaveLen(2), gomega.Equal(wanted(w, labels))))
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
	w, store := supervise(t)
	key := types.NamespacedName{Namespace: w.Namespace, Name: "shop"}
	server := fakecatalog.StartExtended(t, fakecatalog.Simple("lamp", fakecatalog.Entry{Name: "lamp.v1", Version: "1.0.0"}))
	source := func() *operatorsv1alpha1.CatalogSource {
		return fixtures.ServedCatalog(w.Namespace, key.Name, server.Address())
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
		w.Eventually(offers).Should(gomega.Equal(names))
	}
	w.Create(source())
	becomes("lamp")
	server.Serve(fakecatalog.Simple("fan", fakecatalog.Entry{Name: "fan.v1", Version: "1.0.0"}))
	becomes("fan")
	// While the server is unreachable, its last content stays.
	server.Stop()
	w.Eventually(func() error { state, _ := store.State(key); return state.Err }).ShouldNot(gomega.Succeed())
	becomes("fan")
	// Without a CatalogSource, the store has no state.
	w.Expect(w.Delete(t.Context(), source())).To(gomega.Succeed())
	w.Eventually(func() bool { _, followed := store.State(key); return followed }).Should(gomega.BeFalse())
	w.Create(source())
	w.Eventually(func() bool { _, followed := store.State(key); return followed }).Should(gomega.BeTrue())
	if got := offers(); got != nil {
		t.Errorf("a catalog that was made again offers %v before it was read", got)
	}
	server.Serve(fakecatalog.Simple("rug", fakecatalog.Entry{Name: "rug.v1", Version: "1.0.0"}))
	server.Restart()
	becomes("rug")
}

// TestContentsOnDisk restarts the store while two catalogs are away. It restores the content of the one whose
// CatalogSource exists, and removes that of the one that was deleted.
func TestContentsOnDisk(t *testing.T) {
	w, dir := testenv.New(t), t.TempDir()
	files := func() []string {
		found, err := filepath.Glob(filepath.Join(dir, w.Namespace, "*.index"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	server := fakecatalog.StartExtended(t, fakecatalog.Simple("lamp", fakecatalog.Entry{Name: "lamp.v1", Version: "1.0.0"}))
	shop, gone := fixtures.ServedCatalog(w.Namespace, "shop", server.Address()), fixtures.ServedCatalog(w.Namespace, "gone", server.Address())
	w.Create(shop, gone)
	_, stop := start(t, w, dir, nil)
	w.Eventually(files).Should(gomega.HaveLen(2))
	stop()
	server.Stop()
	w.Expect(w.Delete(t.Context(), gone)).To(gomega.Succeed())
	for _, name := range files() {
		// Files of the last minute stay.
		if err := os.Chtimes(name, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
	}

	store, _ := start(t, w, dir, nil)
	key := types.NamespacedName{Namespace: w.Namespace, Name: shop.Name}
	w.Eventually(func() bool {
		state, _ := store.State(key)
		return state.Snapshot != nil && state.Snapshot.Content.Package("lamp") != nil && state.Err != nil
	}).Should(gomega.BeTrue())
	w.Eventually(files).Should(gomega.HaveLen(1))
	w.Expect(w.Delete(t.Context(), shop)).To(gomega.Succeed())
	w.Eventually(files).Should(gomega.BeEmpty())
}

// TestContentsOfPeers replaces the process twice while a catalog is away. Each one has an empty directory, and reads the
// content from the one before.
func TestContentsOfPeers(t *testing.T) {
	w := testenv.New(t)
	server := fakecatalog.StartExtended(t, fakecatalog.Simple("lamp", fakecatalog.Entry{Name: "lamp.v1", Version: "1.0.0"}))
	shop := fixtures.ServedCatalog(w.Namespace, "shop", server.Address())
	w.Create(shop)
	key := types.NamespacedName{Namespace: w.Namespace, Name: shop.Name}
	before, stop := start(t, w, t.TempDir(), nil)
	w.Eventually(func() error {
		file, err := before.Contents.Open(key, shop.UID)
		if err != nil {
			return err
		}
		return file.Close()
	}).Should(gomega.Succeed())
	stop()
	server.Stop()
	for range 2 {
		earlier := before.Contents
		next, stop := start(t, w, t.TempDir(), func(_ context.Context, name types.NamespacedName, uid types.UID) (io.ReadCloser, error) {
			return earlier.Open(name, uid)
		})
		w.Eventually(func() bool {
			state, _ := next.State(key)
			return state.Snapshot != nil && state.Snapshot.Content.Package("lamp") != nil
		}).Should(gomega.BeTrue())
		w.Expect(next.Contents.Ready()).To(gomega.Succeed())
		stop()
		before = next
	}
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
func wanted(w *testenv.World, labels map[string]string) map[types.UID]string {
	w.T.Helper()
	nodes := map[types.UID]string{}
	w.Eventually(func() int {
		clear(nodes)
		for _, pod := range pods(w, labels) {
			if pod.Status.Phase == corev1.PodRunning {
				nodes[pod.UID] = pod.Spec.NodeName
			}
		}
		return len(nodes)
	}).Should(gomega.Equal(2))
	return nodes
}

func pods(w *testenv.World, labels map[string]string) []corev1.Pod {
	w.T.Helper()
	var list corev1.PodList
	if err := w.List(w.T.Context(), &list, client.InNamespace(w.Namespace), client.MatchingLabels(labels)); err != nil {
		w.T.Fatal(err)
	}
	return list.Items
}
