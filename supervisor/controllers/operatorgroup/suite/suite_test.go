package suite_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	"github.com/operator-framework/api/crds"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/chandlery/chandlery/supervisor/controllers/operatorgroup"
	"github.com/chandlery/chandlery/supervisor/informer/groupindex"
	"github.com/chandlery/chandlery/test/controlplane"
)

const (
	// patience is how long an expected state may take.
	patience = controlplane.Timeout
	// poll is the interval between checks.
	poll = 50 * time.Millisecond
	// quiet is how long a state must stay unchanged.
	quiet = 3 * time.Second
)

func TestMain(m *testing.M) {
	handler := slog.DiscardHandler
	if os.Getenv("CHANDLERY_TEST_LOGS") != "" {
		handler = slog.NewTextHandler(os.Stderr, nil)
	}
	logf.SetLogger(logr.FromSlogHandler(handler))
	os.Exit(controlplane.Main(m, controlplane.Options{Nodes: -1}, installCRDs))
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, operatorsv1.AddToScheme, operatorsv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
}

// installCRDs applies the CRDs server-side, as an installation does.
func installCRDs(ctx context.Context, cp *controlplane.ControlPlane) error {
	c, err := client.New(cp.Config(), client.Options{Scheme: newScheme()})
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	for _, crd := range []*apiextensionsv1.CustomResourceDefinition{crds.ClusterServiceVersion(), crds.OperatorGroup()} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
		if err != nil {
			return fmt.Errorf("converting CRD %s: %w", crd.Name, err)
		}
		delete(content, "status")
		unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
		u := client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: content})
		if err := c.Apply(ctx, u, client.FieldOwner("test"), client.ForceOwnership); err != nil {
			return fmt.Errorf("applying CRD %s: %w", crd.Name, err)
		}
	}
	err = wait.PollUntilContextTimeout(ctx, poll, patience, true, func(ctx context.Context) (bool, error) {
		groups, csvs := &operatorsv1.OperatorGroupList{}, &operatorsv1alpha1.ClusterServiceVersionList{}
		return c.List(ctx, groups) == nil && c.List(ctx, csvs) == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the kinds to be served: %w", err)
	}
	return nil
}

// world gives a test access to the cluster.
type world struct {
	client.Client
	*gomega.WithT

	t         *testing.T
	namespace string
}

// Get reads an object into a zeroed value. A decoder would not reset fields that are absent.
func (w *world) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	reflect.ValueOf(obj).Elem().SetZero()
	obj.SetNamespace(key.Namespace)
	obj.SetName(key.Name)
	return w.Client.Get(ctx, key, obj, opts...) //nolint:wrapcheck // The test says what it was for.
}

// newWorld creates a namespace and a client for one test.
func newWorld(t *testing.T) *world {
	t.Helper()
	c, err := client.New(controlplane.Get(t).Config(), client.Options{Scheme: newScheme()})
	if err != nil {
		t.Fatalf("making a client: %v", err)
	}
	return &world{Client: c, WithT: gomega.NewWithT(t), t: t, namespace: controlplane.Namespace(t)}
}

// errCut is the error of requests after a supervisor was disconnected from the API server.
var errCut = errors.New("cut off")

// wire counts the write requests of a supervisor and limits their number.
type wire struct {
	next   http.RoundTripper
	writes *atomic.Int64
	limit  int64 // negative for no limit
}

// RoundTrip forwards a request unless it is a write beyond the limit.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet && w.writes.Add(1) > w.limit && w.limit >= 0 {
		return nil, errCut
	}
	resp, err := w.next.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("sending on: %w", err)
	}
	return resp, nil
}

// supervisor is a running set of controllers.
type supervisor struct {
	writes atomic.Int64
	stop   func()
}

// supervise runs the controllers until the end of the test. The stop function stops them and waits
// for their end.
func (w *world) supervise() *supervisor {
	w.t.Helper()
	return w.superviseFor(-1)
}

// superviseFor runs controllers that are disconnected after a number of writes.
func (w *world) superviseFor(limit int64) *supervisor {
	w.t.Helper()
	s := &supervisor{}
	cfg := rest.CopyConfig(controlplane.Get(w.t).Config())
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &wire{next: next, writes: &s.writes, limit: limit}
	})
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:     newScheme(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		w.t.Fatalf("making a manager: %v", err)
	}
	if err := errors.Join(groupindex.Add(w.t.Context(), mgr.GetFieldIndexer()), operatorgroup.Setup(mgr, operatorgroup.Options{})); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stopped := false
	s.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("the manager ended with: %v", err)
		}
	}
	w.t.Cleanup(s.stop)
	return s
}

func (w *world) create(objects ...client.Object) {
	w.t.Helper()
	for _, obj := range objects {
		if err := w.Create(w.t.Context(), obj); err != nil {
			w.t.Fatalf("creating %T %s: %v", obj, obj.GetName(), err)
		}
	}
}

func (w *world) remove(obj client.Object) {
	w.t.Helper()
	if err := w.Delete(w.t.Context(), obj); err != nil {
		w.t.Fatalf("deleting %T %s: %v", obj, obj.GetName(), err)
	}
}

// change updates an object and retries after conflicts.
func (w *world) change(obj client.Object, mutate func()) {
	w.t.Helper()
	w.Eventually(func() error {
		if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		mutate()
		return w.Update(w.t.Context(), obj)
	}).WithTimeout(patience).WithPolling(poll).Should(gomega.Succeed())
}

// becomes waits until check succeeds.
func (w *world) becomes(check func(g gomega.Gomega)) {
	w.t.Helper()
	w.Eventually(check).WithTimeout(patience).WithPolling(poll).Should(gomega.Succeed())
}

// gone waits until an object does not exist any more.
func (w *world) gone(obj client.Object) {
	w.t.Helper()
	w.becomes(func(g gomega.Gomega) {
		err := w.Get(w.t.Context(), client.ObjectKeyFromObject(obj), obj)
		g.Expect(err).To(gomega.HaveOccurred(), "%T %s is still there", obj, obj.GetName())
		g.Expect(client.IgnoreNotFound(err)).To(gomega.Succeed())
	})
}

// staysQuiet fails if the supervisor writes while nothing changes.
func (w *world) staysQuiet(s *supervisor) {
	w.t.Helper()
	last, since := s.writes.Load(), time.Now()
	w.Eventually(func() time.Duration {
		if now := s.writes.Load(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since)
	}).WithTimeout(patience).WithPolling(poll).Should(gomega.BeNumerically(">", quiet), "the supervisor goes on writing")
}
