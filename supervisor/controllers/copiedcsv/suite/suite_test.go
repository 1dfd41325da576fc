package suite_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	"github.com/operator-framework/api/crds"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/copiedcsv"
	"github.com/chandlery/chandlery/supervisor/informer"
	"github.com/chandlery/chandlery/supervisor/informer/groupindex"
	"github.com/chandlery/chandlery/test/controlplane"
)

const (
	// patience is how long an expected state may take.
	patience = controlplane.Timeout
	// polling is the interval between checks.
	polling = 50 * time.Millisecond
	// rest is how long a state must stay unchanged.
	rest = 3 * time.Second
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
	for _, crd := range []*apiextensionsv1.CustomResourceDefinition{crds.ClusterServiceVersion(), crds.OLMConfig(), crds.OperatorGroup()} {
		if err := applyCRD(ctx, c, crd); err != nil {
			return err
		}
	}
	err = wait.PollUntilContextTimeout(ctx, polling, patience, true, func(ctx context.Context) (bool, error) {
		return c.List(ctx, &operatorsv1.OperatorGroupList{}) == nil && c.List(ctx, &operatorsv1.OLMConfigList{}) == nil &&
			c.List(ctx, &operatorsv1alpha1.ClusterServiceVersionList{}) == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the kinds to be served: %w", err)
	}
	return nil
}

func applyCRD(ctx context.Context, c client.Client, crd *apiextensionsv1.CustomResourceDefinition) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		return fmt.Errorf("converting CRD %s: %w", crd.Name, err)
	}
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	u := &unstructured.Unstructured{Object: content}
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("test"), client.ForceOwnership); err != nil {
		return fmt.Errorf("applying CRD %s: %w", crd.Name, err)
	}
	return nil
}

// world gives a test access to the cluster.
type world struct {
	client.Client
	*gomega.WithT

	t *testing.T
	// home is the namespace of the operator.
	home string
	// writes counts the write requests of the controllers.
	writes *atomic.Int64
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
	return &world{Client: c, WithT: gomega.NewWithT(t), t: t, home: controlplane.Namespace(t), writes: &atomic.Int64{}}
}

// counting counts write requests without those for Events.
type counting struct {
	http.RoundTripper

	writes *atomic.Int64
}

func (c counting) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet && !strings.Contains(req.URL.Path, "/events") {
		c.writes.Add(1)
	}
	return c.RoundTripper.RoundTrip(req)
}

// supervise runs the controllers until the end of the test. The returned function stops them and
// waits for their end.
func (w *world) supervise(change ...func(*copiedcsv.Options)) (stop func()) {
	w.t.Helper()
	cfg := controlplane.Get(w.t).Config()
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper { return counting{RoundTripper: rt, writes: w.writes} })
	originals, err := labels.Parse("!" + api.LabelCopiedFrom)
	if err != nil {
		w.t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:     newScheme(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
		Cache: cache.Options{DefaultTransform: informer.Transform, ByObject: map[client.Object]cache.ByObject{
			&operatorsv1alpha1.ClusterServiceVersion{}: {Label: originals},
		}},
	})
	if err != nil {
		w.t.Fatalf("making a manager: %v", err)
	}
	o := copiedcsv.Options{}
	for _, c := range change {
		c(&o)
	}
	if err := errors.Join(groupindex.Add(w.t.Context(), mgr.GetFieldIndexer()), copiedcsv.Setup(mgr, o)); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("the manager ended with: %v", err)
		}
	}
	w.t.Cleanup(stop)
	return stop
}

func (w *world) create(objects ...client.Object) {
	w.t.Helper()
	for _, obj := range objects {
		if err := w.Create(w.t.Context(), obj); err != nil {
			w.t.Fatalf("creating %T %s: %v", obj, obj.GetName(), err)
		}
	}
}

// change updates an object and retries after conflicts.
func change[T client.Object](w *world, obj T, how func(T)) {
	w.t.Helper()
	w.Eventually(func() error {
		if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		how(obj)
		return w.Update(w.t.Context(), obj)
	}).WithTimeout(patience).WithPolling(polling).Should(gomega.Succeed())
}

// changeStatus updates the status of an object and retries after conflicts.
func changeStatus[T client.Object](w *world, obj T, how func(T)) {
	w.t.Helper()
	w.Eventually(func() error {
		if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		how(obj)
		return w.Status().Update(w.t.Context(), obj)
	}).WithTimeout(patience).WithPolling(polling).Should(gomega.Succeed())
}

// eventually waits until the checks succeed.
func (w *world) eventually(holds func(g gomega.Gomega)) {
	w.t.Helper()
	w.Eventually(holds).WithTimeout(patience).WithPolling(polling).Should(gomega.Succeed())
}

// gone waits until an object does not exist any more.
func (w *world) gone(obj client.Object) {
	w.t.Helper()
	w.eventually(func(g gomega.Gomega) {
		err := w.Get(w.t.Context(), client.ObjectKeyFromObject(obj), obj)
		g.Expect(apierrors.IsNotFound(err)).To(gomega.BeTrue(), "%T %s is still there: %v", obj, client.ObjectKeyFromObject(obj), err)
	})
}

// quiet waits until the controllers have written nothing for a while, and fails if they continue to
// write.
func (w *world) quiet() {
	w.t.Helper()
	last, since := w.writes.Load(), time.Now()
	w.Eventually(func() time.Duration {
		if now := w.writes.Load(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since)
	}).WithTimeout(patience).WithPolling(polling).Should(gomega.BeNumerically(">", rest), "the controllers never stop writing")
}
