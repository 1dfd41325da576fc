package suite_test

import (
	"context"
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
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/operator"
	"github.com/chandlery/chandlery/supervisor/informer/crdcache"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/test/controlplane"
)

const (
	// patience is how long an expected state may take.
	patience = controlplane.Timeout
	polling  = 50 * time.Millisecond
	// quiet is how long a state must stay unchanged.
	quiet = 3 * time.Second
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
	return &world{Client: c, WithT: g, t: t, namespace: controlplane.Namespace(t)}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// written returns the write requests of supervisors that concern the test. The names of its
// cluster-scoped objects end in the name of its namespace.
func (w *world) written() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []string
	for _, line := range w.writes {
		if strings.Contains(line, w.namespace) && !strings.HasSuffix(line, "/events") {
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

// supervise runs the controllers until the end of the test.
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
	crds, err := crdcache.Add(mgr)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := operator.Setup(mgr, operator.Options{CRDs: crds}); err != nil {
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

// create creates objects. Namespaced ones are in the namespace of the test. Cluster-scoped ones are
// deleted after the test.
func (w *world) create(objects ...client.Object) {
	w.t.Helper()
	for _, obj := range objects {
		namespaced, err := w.IsObjectNamespaced(obj)
		if err != nil {
			w.t.Fatal(err)
		}
		if namespaced {
			obj.SetNamespace(w.namespace)
		}
		if err := w.Create(w.t.Context(), obj); err != nil {
			w.t.Fatalf("creating %T %s: %v", obj, obj.GetName(), err)
		}
		if !namespaced {
			w.t.Cleanup(func() { _ = w.Delete(context.Background(), obj) })
		}
	}
}

// status writes the status of an object.
func (w *world) status(obj client.Object) {
	w.t.Helper()
	if err := w.Status().Update(w.t.Context(), obj); err != nil {
		w.t.Fatalf("writing the status of %T %s: %v", obj, obj.GetName(), err)
	}
}

// bears waits until an object has, or lacks, a label.
func (w *world) bears(obj client.Object, label string, wanted bool) {
	w.t.Helper()
	w.Eventually(func(g gomega.Gomega) {
		g.Expect(w.Get(w.t.Context(), client.ObjectKeyFromObject(obj), obj)).To(gomega.Succeed())
		_, has := obj.GetLabels()[label]
		g.Expect(has).To(gomega.Equal(wanted), "%T %s: %v", obj, obj.GetName(), obj.GetLabels())
	}).Should(gomega.Succeed())
}

// shows waits until the Operator of the test passes all checks.
func (w *world) shows(checks ...func(gomega.Gomega, *operatorsv1.Operator)) *operatorsv1.Operator {
	w.t.Helper()
	o := &operatorsv1.Operator{}
	w.Eventually(func(g gomega.Gomega) {
		*o = operatorsv1.Operator{}
		g.Expect(w.Get(w.t.Context(), client.ObjectKey{Name: w.operator()}, o)).To(gomega.Succeed())
		g.Expect(o.Status.Components).NotTo(gomega.BeNil())
		for _, check := range checks {
			check(g, o)
		}
	}).Should(gomega.Succeed())
	return o
}

// operator returns the name of the test's Operator.
func (w *world) operator() string { return "kettle." + w.namespace }

// label returns the label of its components.
func (w *world) label() string { return plansteps.ComponentLabel("kettle", w.namespace) }

// listed returns the components of an Operator in the order of its status.
func listed(o *operatorsv1.Operator) []string {
	var names []string
	for _, ref := range o.Status.Components.Refs {
		names = append(names, ref.APIVersion+" "+ref.Kind+" "+ref.Namespace+"/"+ref.Name)
	}
	return names
}

// conditionsOf returns the conditions of the first component of a kind.
func conditionsOf(o *operatorsv1.Operator, kind string) map[string]string {
	found := map[string]string{}
	for _, ref := range o.Status.Components.Refs {
		if ref.Kind != kind {
			continue
		}
		for _, c := range ref.Conditions {
			found[string(c.Type)] = string(c.Status)
		}
		break
	}
	return found
}

// subscription creates a Subscription to the package kettle with an installed version.
func (w *world) subscription(installed string) *operatorsv1alpha1.Subscription {
	w.t.Helper()
	sub := &operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Name: "kettle"},
		Spec:       &operatorsv1alpha1.SubscriptionSpec{CatalogSource: "shop", CatalogSourceNamespace: w.namespace, Package: "kettle"},
	}
	w.create(sub)
	sub.Status.InstalledCSV, sub.Status.LastUpdated = installed, metav1.Now()
	w.status(sub)
	return sub
}

// group returns the API group of the test's operator.
func (w *world) group() string { return "kettles." + w.namespace }

// version returns a version that provides cups.
func (w *world) version(name string) *operatorsv1alpha1.ClusterServiceVersion {
	csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Name: name}}
	csv.Spec.DisplayName = "Kettle"
	csv.Spec.InstallStrategy.StrategyName = operatorsv1alpha1.InstallStrategyNameDeployment
	csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []operatorsv1alpha1.StrategyDeploymentSpec{{Name: "kettle", Spec: deployment().Spec}}
	csv.Spec.CustomResourceDefinitions.Owned = []operatorsv1alpha1.CRDDescription{{Name: "cups." + w.group(), Version: "v1", Kind: "Cup"}}
	return csv
}

func deployment() *appsv1.Deployment {
	labels := map[string]string{"app": "kettle"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "kettle"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "registry.example/kettle:1"}}},
			},
		},
	}
}

// cups returns the CustomResourceDefinition that the versions of the test provide.
func (w *world) cups() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "cups." + w.group()},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: w.group(), Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "cups", Singular: "cup", Kind: "Cup", ListKind: "CupList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: new(true),
				}},
			}},
		},
	}
}

// owned makes a version the owner of an object: by a reference, or by labels for a cluster-scoped
// object.
func (w *world) owned(csv *operatorsv1alpha1.ClusterServiceVersion, obj client.Object) client.Object {
	w.t.Helper()
	obj.SetLabels(map[string]string{api.LabelManaged: "true"})
	if namespaced, err := w.IsObjectNamespaced(obj); err != nil {
		w.t.Fatal(err)
	} else if !namespaced {
		obj.SetLabels(plansteps.OwnerLabels(csv.Name, w.namespace))
		return obj
	}
	obj.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: operatorsv1alpha1.SchemeGroupVersion.String(), Kind: operatorsv1alpha1.ClusterServiceVersionKind, Name: csv.Name, UID: csv.UID,
	}})
	return obj
}
