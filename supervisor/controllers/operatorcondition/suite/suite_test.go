package suite_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/supervisor/controllers/operatorcondition"
	"github.com/chandlery/chandlery/test/controlplane"
)

const (
	// patience is how long an expected state may take.
	patience = controlplane.Timeout
	polling  = 50 * time.Millisecond
	// quiet is how long a state must stay unchanged.
	quiet = 3 * time.Second
	// account is the service account of the test's operator.
	account = "kettle"
	// own is the name of its version and of all objects of the version.
	own = "kettle.v1"
)

func TestMain(m *testing.M) {
	handler := slog.DiscardHandler
	if os.Getenv("CHANDLERY_TEST_LOGS") != "" {
		handler = slog.NewTextHandler(os.Stderr, nil)
	}
	logf.SetLogger(logr.FromSlogHandler(handler))
	os.Exit(controlplane.Main(m, controlplane.Options{Nodes: -1}, func(ctx context.Context, cp *controlplane.ControlPlane) error {
		return supervisor.InstallCRDs(ctx, cp.Config(), io.Discard)
	}))
}

// world gives a test access to the cluster.
type world struct {
	client.Client
	*gomega.WithT

	t         *testing.T
	namespace string
	mu        sync.Mutex
	writes    []string
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme, err := supervisor.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	if err := operatorsv2.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// Get reads an object into a zeroed value. A decoder would not reset fields that are absent.
func (w *world) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	reflect.ValueOf(obj).Elem().SetZero()
	obj.SetNamespace(key.Namespace)
	obj.SetName(key.Name)
	return w.Client.Get(ctx, key, obj, opts...) //nolint:wrapcheck // The test says what it was for.
}

func newWorld(t *testing.T) *world {
	t.Helper()
	c, err := client.New(controlplane.Get(t).Config(), client.Options{Scheme: newScheme(t)})
	if err != nil {
		t.Fatalf("making a client: %v", err)
	}
	g := gomega.NewWithT(t)
	g.SetDefaultEventuallyTimeout(patience)
	g.SetDefaultEventuallyPollingInterval(polling)
	g.SetDefaultConsistentlyDuration(quiet)
	g.SetDefaultConsistentlyPollingInterval(polling)
	w := &world{Client: c, WithT: g, t: t, namespace: controlplane.Namespace(t)}
	w.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}})
	return w
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// written returns the write requests of supervisors in the namespace of the test.
func (w *world) written() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []string
	for _, line := range w.writes {
		if strings.Contains(line, "/"+w.namespace+"/") && !strings.HasSuffix(line, "/events") {
			found = append(found, line)
		}
	}
	return found
}

// settled waits until supervisors write nothing more and returns the number of writes.
func (w *world) settled() int {
	w.t.Helper()
	last := -1
	w.Eventually(func() bool {
		before := last
		last = len(w.written())
		return before == last
	}).WithPolling(quiet).Should(gomega.BeTrue())
	return last
}

// supervise runs the controller until the end of the test.
func (w *world) supervise() {
	w.t.Helper()
	cfg := controlplane.Get(w.t).Config()
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodGet {
				w.mu.Lock()
				w.writes = append(w.writes, r.Method+" "+r.URL.Path)
				w.mu.Unlock()
			}
			return next.RoundTrip(r)
		})
	})
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:     newScheme(w.t),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		w.t.Fatalf("making a manager: %v", err)
	}
	if err := operatorcondition.Setup(mgr, operatorcondition.Options{}); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("the manager ended with: %v", err)
		}
	})
}

// create creates objects in the namespace of the test.
func (w *world) create(objects ...client.Object) {
	w.t.Helper()
	for _, obj := range objects {
		obj.SetNamespace(w.namespace)
		if err := w.Create(w.t.Context(), obj); err != nil {
			w.t.Fatalf("creating %T %s: %v", obj, obj.GetName(), err)
		}
	}
}

// appears waits until an object with the name of the version exists and passes all checks.
func (w *world) appears(obj client.Object, checks ...func(gomega.Gomega)) {
	w.t.Helper()
	w.Eventually(func(g gomega.Gomega) {
		g.Expect(w.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: own}, obj)).To(gomega.Succeed())
		for _, check := range checks {
			check(g)
		}
	}).Should(gomega.Succeed())
}

// absent waits until no object with the name of the version exists.
func (w *world) absent(obj client.Object) {
	w.t.Helper()
	w.Eventually(func() error {
		err := w.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: own}, obj)
		if err == nil {
			return fmt.Errorf("%T %s is still there", obj, own)
		}
		return client.IgnoreNotFound(err)
	}).Should(gomega.Succeed())
}

// version returns a version whose Deployments run as account.
func version(name string) *operatorsv1alpha1.ClusterServiceVersion {
	labels := map[string]string{"app": "kettle"}
	csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Name: name}}
	csv.Spec.DisplayName = "Kettle"
	csv.Spec.InstallStrategy.StrategyName = operatorsv1alpha1.InstallStrategyNameDeployment
	csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []operatorsv1alpha1.StrategyDeploymentSpec{{
		Name: "kettle",
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					ServiceAccountName: account,
					Containers:         []corev1.Container{{Name: "manager", Image: "registry.example/kettle:1"}},
				},
			},
		},
	}}
	return csv
}

// operator returns a client with the permissions of the operator.
func (w *world) operator() client.Client {
	w.t.Helper()
	cfg := controlplane.Get(w.t).Config()
	cfg.Impersonate.UserName = "system:serviceaccount:" + w.namespace + ":" + account
	cfg.Impersonate.Groups = []string{"system:serviceaccounts", "system:serviceaccounts:" + w.namespace, "system:authenticated"}
	c, err := client.New(cfg, client.Options{Scheme: newScheme(w.t)})
	if err != nil {
		w.t.Fatalf("making a client for the operator: %v", err)
	}
	return c
}

// upgradeable returns the condition Upgradeable as an operator or an administrator writes it.
func upgradeable(status metav1.ConditionStatus) []metav1.Condition {
	return []metav1.Condition{{
		Type: operatorsv2.Upgradeable, Status: status, Reason: "Boiling", Message: "the kettle is on", LastTransitionTime: metav1.NewTime(time.Now().Truncate(time.Second)),
	}}
}
