package suite_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/catalogs/contentcache"
	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/testenv"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

func TestMain(m *testing.M) {
	os.Exit(testenv.Main(m, controlplane.Options{Nodes: -1}, testenv.InstallCRDs))
}

// world is a supervisor in the namespace of the test. The tests run one after the other, because a cluster has one
// APIService of PackageManifests.
type world struct {
	*testenv.World

	// global is the namespace of the catalogs that serve every namespace.
	global string
	// at is the address of the supervisor's server, and unready is true for an endpoint that is not ready.
	at      string
	unready bool
	// stop stops the supervisor's part.
	stop func()
}

// supervise returns a world in which the supervisor's part runs.
func supervise(t *testing.T) *world {
	t.Helper()
	w := &world{World: testenv.New(t), global: controlplane.Namespace(t)}
	w.serve()
	return w
}

// serve creates the objects of an installation and runs the supervisor's part.
func (w *world) serve() {
	w.T.Helper()
	install(w)
	w.start(packagemanifest.Auto, ctrl.Options{})
}

// install creates the objects of an installation.
func install(w *world) {
	t := w.T
	t.Helper()
	_, number, err := net.SplitHostPort(ports.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	w.at = net.JoinHostPort(hostAddress(t), number)
	deployment := fixtures.Deployment(w.Namespace, "chandlery-supervisor", "supervisor")
	w.Create(deployment, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "chandlery-packagemanifests-service"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "packages", Port: 443, TargetPort: intstr.FromString("packages")}}},
	})
	var port int32
	if _, err := fmt.Sscan(number, &port); err != nil {
		t.Fatal(err)
	}
	w.Create(&discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "supervisor", Labels: map[string]string{discoveryv1.LabelServiceName: "chandlery-packagemanifests-service"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{hostAddress(t)}, Conditions: discoveryv1.EndpointConditions{Ready: new(!w.unready)}}},
		Ports:       []discoveryv1.EndpointPort{{Name: new("packages"), Port: new(port), Protocol: new(corev1.ProtocolTCP)}},
	})
	w.DeleteAtEnd(apiService())
}

// start runs the supervisor's part until the test ends.
func (w *world) start(mode packagemanifest.Mode, o ctrl.Options) {
	w.stop = w.StartManager(o, func(mgr testenv.Manager) error {
		store := catalogs.NewStore(mgr.Context, time.Second, clock.RealClock{})
		contents, err := contentcache.Open(w.T.TempDir(), 0)
		if err != nil {
			return err
		}
		store.Contents = catalogs.NewContentStore(contents)
		if err := catalogs.Setup(mgr, store); err != nil {
			return err
		}
		_, err = packagemanifest.Setup(mgr.Context, mgr, packagemanifest.Options{
			Setting: packagemanifest.Setting{Mode: mode, Address: w.at},
			Store:   store, Config: w.Config, GlobalNamespace: w.global, Namespace: w.Namespace,
		})
		return err
	})
}

// hostAddress returns an address of this machine that endpoints may have, which excludes loopback addresses.
func hostAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if n, is := a.(*net.IPNet); is && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	t.Fatal("this machine has no IPv4 address but that of the loopback interface, which endpoints must not have; give it a network")
	return ""
}

// apiService returns the APIService of PackageManifests.
func apiService() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("apiregistration.k8s.io/v1")
	u.SetKind("APIService")
	u.SetName("v1.packages.operators.coreos.com")
	return u
}

// available waits until the API server forwards requests.
func (w *world) available() {
	w.T.Helper()
	w.EventuallySucceeds(func(g gomega.Gomega) {
		live := apiService()
		g.Expect(w.Get(w.T.Context(), client.ObjectKeyFromObject(live), live)).To(gomega.Succeed())
		conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
		g.Expect(conditions).To(gomega.ContainElement(gomega.And(gomega.HaveKeyWithValue("type", "Available"), gomega.HaveKeyWithValue("status", "True"))))
	})
}

// awaitAnswer waits until the supervisor's server answers.
func awaitAnswer(w *world) {
	w.T.Helper()
	w.EventuallySucceeds(func(g gomega.Gomega) {
		conn, err := tls.DialWithDialer(&net.Dialer{Timeout: time.Second}, "tcp", w.at, &tls.Config{InsecureSkipVerify: true})
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(conn.Close()).To(gomega.Succeed())
	})
}

// run runs kubectl as an administrator.
func (w *world) run(args ...string) (out string, err error) {
	cp := controlplane.Get(w.T)
	command := exec.CommandContext(w.T.Context(), cp.Kubectl(), append([]string{"--kubeconfig", cp.Kubeconfig()}, args...)...)
	text, err := command.CombinedOutput()
	return string(text), err
}

// kubectl runs kubectl until it succeeds, and returns what it prints.
func (w *world) kubectl(args ...string) (out string) {
	w.T.Helper()
	w.EventuallySucceeds(func(g gomega.Gomega) {
		var err error
		out, err = w.run(args...)
		g.Expect(err).NotTo(gomega.HaveOccurred(), "%s", out)
	})
	return out
}

// rows returns the columns of the packages that kubectl lists.
func (w *world) rows(args ...string) [][]string {
	w.T.Helper()
	return fieldsOf(w.kubectl(append([]string{"get", "packagemanifests", "--no-headers"}, args...)...))
}

func fieldsOf(text string) (rows [][]string) {
	for line := range strings.Lines(text) {
		rows = append(rows, strings.Fields(line))
	}
	return rows
}

// csv returns the JSON of a ClusterServiceVersion with an icon.
func csv(name, version string) string {
	return fmt.Sprintf(`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":%q},"spec":{`+
		`"displayName":"Lamp","version":%q,"provider":{"name":"Light Ltd"},"icon":[{"base64data":"aWNvbg==","mediatype":"image/png"}]}}`, name, version)
}

// entry returns a version with its manifest.
func entry(name, version, replaces string) fakecatalog.Entry {
	return fakecatalog.Entry{Name: name, Version: version, Replaces: replaces, Objects: []string{csv(name, version)}}
}

// sold returns a package with a number of versions.
func sold(name string, versions int) fakecatalog.Package {
	var entries []fakecatalog.Entry
	replaces := ""
	for n := 1; n <= versions; n++ {
		version := fmt.Sprintf("%s.v%d", name, n)
		entries = append(entries, entry(version, fmt.Sprintf("%d.0.0", n), replaces))
		replaces = version
	}
	return fakecatalog.Simple(name, entries...)
}

// rest returns a client for paths of the API server.
func (w *world) rest() rest.Interface {
	w.T.Helper()
	c, err := kubernetes.NewForConfig(w.Config)
	if err != nil {
		w.T.Fatal(err)
	}
	return c.RESTClient()
}

// sells creates a CatalogSource for a new catalog with packages.
func (w *world) sells(namespace, name, displayName string, labels map[string]string, packages ...string) *fakecatalog.Server {
	w.T.Helper()
	var all []fakecatalog.Package
	for _, p := range packages {
		all = append(all, sold(p, 2))
	}
	served := fakecatalog.StartExtended(w.T, all...)
	source := fixtures.ServedCatalog(namespace, name, served.Address())
	source.Labels, source.Spec.DisplayName = labels, displayName
	w.Create(source)
	return served
}

// gone reports whether the APIService does not exist.
func (w *world) gone(ctx context.Context) error {
	live := apiService()
	if err := w.Get(ctx, client.ObjectKeyFromObject(live), live); client.IgnoreNotFound(err) != nil || err == nil {
		return fmt.Errorf("APIService %s exists: %w", live.GetName(), err)
	}
	return nil
}
