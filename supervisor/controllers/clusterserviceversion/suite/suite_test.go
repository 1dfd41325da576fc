package suite_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	"github.com/operator-framework/api/crds"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion"
	"github.com/chandlery/chandlery/supervisor/controllers/operatorgroup"
	"github.com/chandlery/chandlery/supervisor/informer/crdcache"
	"github.com/chandlery/chandlery/supervisor/informer/groupindex"
	"github.com/chandlery/chandlery/supervisor/rbac/grant"
	"github.com/chandlery/chandlery/test/controlplane"
)

// patience bounds the wait for an expected state.
const patience = controlplane.Timeout

func TestMain(m *testing.M) {
	handler := slog.DiscardHandler
	if os.Getenv("CHANDLERY_TEST_LOGS") != "" {
		handler = slog.NewTextHandler(os.Stderr, nil)
	}
	logf.SetLogger(logr.FromSlogHandler(handler))
	os.Exit(controlplane.Main(m, controlplane.Options{}, installCRDs))
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, operatorsv1.AddToScheme, operatorsv1alpha1.AddToScheme,
		operatorsv2.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
}

// installCRDs applies the kinds of the API with server-side apply, as an installation does.
func installCRDs(ctx context.Context, cp *controlplane.ControlPlane) error {
	c, err := client.New(cp.Config(), client.Options{Scheme: newScheme()})
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	for _, crd := range []*apiextensionsv1.CustomResourceDefinition{
		crds.CatalogSource(), crds.ClusterServiceVersion(), crds.InstallPlan(), crds.OLMConfig(),
		crds.Operator(), crds.OperatorCondition(), crds.OperatorGroup(), crds.Subscription(),
	} {
		if err := applyCRD(ctx, c, crd); err != nil {
			return err
		}
	}
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		groups, csvs := &operatorsv1.OperatorGroupList{}, &operatorsv1alpha1.ClusterServiceVersionList{}
		return c.List(ctx, groups) == nil && c.List(ctx, csvs) == nil, nil
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

// world is a test's view of the cluster.
type world struct {
	client.Client
	*gomega.WithT

	t         *testing.T
	namespace string
	// config is the configuration of the controllers' clients.
	config *rest.Config
	// home is the namespace of the supervisor; empty for one outside the cluster.
	home string
	// election makes the controllers work only while they hold a Lease in the namespace.
	election bool
	// crds is the cache of definitions of the running controllers.
	crds cache.Cache
}

// newWorld creates a namespace and a client for one test.
func newWorld(t *testing.T) *world {
	t.Helper()
	c, err := client.New(controlplane.Get(t).Config(), client.Options{Scheme: newScheme()})
	if err != nil {
		t.Fatalf("making a client: %v", err)
	}
	return &world{Client: c, WithT: gomega.NewWithT(t), t: t, namespace: controlplane.Namespace(t), config: controlplane.Get(t).Config()}
}

// Get reads an object into a zeroed one: a decoder does not change fields that are absent.
func (w *world) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	gvk := obj.GetObjectKind().GroupVersionKind()
	reflect.ValueOf(obj).Elem().SetZero()
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	obj.SetNamespace(key.Namespace)
	obj.SetName(key.Name)
	return w.Client.Get(ctx, key, obj, opts...) //nolint:wrapcheck // The test says what it was for.
}

// finally deletes an object when the test is over.
func (w *world) finally(objects ...client.Object) {
	w.t.Cleanup(func() {
		for _, o := range objects {
			if err := client.IgnoreNotFound(w.Delete(context.WithoutCancel(w.t.Context()), o)); err != nil {
				w.t.Errorf("removing %T %s: %v", o, o.GetName(), err)
			}
		}
	})
}

// supervise runs both controllers until the test ends or stop is called. stop waits for their end.
func (w *world) supervise() (stop func()) {
	w.t.Helper()
	return w.superviseAt(nil)
}

// superviseAt does the same as supervise with another clock, and with further controllers.
func (w *world) superviseAt(c clock.PassiveClock, more ...func(ctrl.Manager) error) (stop func()) {
	w.t.Helper()
	groups := func(mgr ctrl.Manager) error { return operatorgroup.Setup(mgr, operatorgroup.Options{}) }
	return w.superviseWith(c, append(more, groups)...)
}

// superviseWith runs the controller of versions and the given controllers.
func (w *world) superviseWith(c clock.PassiveClock, others ...func(ctrl.Manager) error) (stop func()) {
	w.t.Helper()
	mgr, err := ctrl.NewManager(w.config, ctrl.Options{
		Scheme:     newScheme(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},

		LeaderElection: w.election, LeaderElectionNamespace: w.namespace, LeaderElectionID: "leader",
		LeaderElectionReleaseOnCancel: true, RetryPeriod: new(200 * time.Millisecond),
		// A slow machine loses no Lease, and a stop releases it.
		RenewDeadline: new(50 * time.Second), LeaseDuration: new(time.Minute),
	})
	if err != nil {
		w.t.Fatalf("making a manager: %v", err)
	}
	grants, err := grant.Setup(mgr)
	if err != nil {
		w.t.Fatal(err)
	}
	if w.crds, err = crdcache.Add(mgr); err != nil {
		w.t.Fatal(err)
	}
	if err := groupindex.Add(w.t.Context(), mgr.GetFieldIndexer()); err != nil {
		w.t.Fatal(err)
	}
	if err := clusterserviceversion.Setup(mgr, clusterserviceversion.Options{CRDs: w.crds, Clock: c, Grants: grants, Namespace: w.home}); err != nil {
		w.t.Fatal(err)
	}
	for _, setup := range others {
		if err := setup(mgr); err != nil {
			w.t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("the manager ended with: %v", err)
		}
	})
	w.t.Cleanup(stop)
	return stop
}

// employ runs the controllers with the rights of the supervisor in deploy/, without some verbs.
func (w *world) employ(without ...string) {
	w.t.Helper()
	text, err := os.ReadFile("../../../../deploy/rbac/supervisor.yaml")
	if err != nil {
		w.t.Fatal(err)
	}
	document, _, _ := bytes.Cut(text, []byte("\n---\n"))
	role := &rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(document, role); err != nil {
		w.t.Fatal(err)
	}
	role.Name = "employed-" + w.namespace
	for i := range role.Rules {
		role.Rules[i].Verbs = slices.DeleteFunc(role.Rules[i].Verbs, func(verb string) bool { return slices.Contains(without, verb) })
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.namespace, Name: "supervisor"}},
	}
	w.create(role, binding)
	w.finally(binding, role)
	kubeconfig, err := controlplane.Get(w.t).NewKubeconfig("system:serviceaccount:"+w.namespace+":supervisor", "system:serviceaccounts", "system:authenticated")
	if err != nil {
		w.t.Fatal(err)
	}
	if w.config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		w.t.Fatal(err)
	}
	// The authorizer applies the role after a moment.
	w.Eventually(func() error {
		return w.employed().List(w.t.Context(), &apiextensionsv1.CustomResourceDefinitionList{}, client.Limit(1))
	}).WithTimeout(patience).Should(gomega.Succeed())
}

// employed returns a client with the rights of the controllers.
func (w *world) employed() client.Client {
	w.t.Helper()
	c, err := client.New(w.config, client.Options{Scheme: newScheme()})
	if err != nil {
		w.t.Fatalf("making a client: %v", err)
	}
	return c
}

func (w *world) create(objects ...client.Object) {
	w.t.Helper()
	for _, obj := range objects {
		if err := w.Create(w.t.Context(), obj); err != nil {
			w.t.Fatalf("creating %T %s: %v", obj, obj.GetName(), err)
		}
	}
}

func (w *world) csv(name string) *operatorsv1alpha1.ClusterServiceVersion {
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	if err := w.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, csv); err != nil {
		csv.Status.Message = err.Error()
	}
	return csv
}

// reaches waits until a ClusterServiceVersion is in a phase for a reason.
func (w *world) reaches(name string, phase operatorsv1alpha1.ClusterServiceVersionPhase, reason operatorsv1alpha1.ConditionReason) *operatorsv1alpha1.ClusterServiceVersion {
	w.t.Helper()
	var csv *operatorsv1alpha1.ClusterServiceVersion
	w.Eventually(func(g gomega.Gomega) {
		csv = w.csv(name)
		g.Expect(csv.Status.Phase).To(gomega.Equal(phase), "%s %s", csv.Status.Reason, csv.Status.Message)
		g.Expect(csv.Status.Reason).To(gomega.Equal(reason), csv.Status.Message)
	}).WithTimeout(patience).WithPolling(50 * time.Millisecond).Should(gomega.Succeed())
	return csv
}

func (w *world) succeeds(name string) *operatorsv1alpha1.ClusterServiceVersion {
	w.t.Helper()
	return w.reaches(name, operatorsv1alpha1.CSVPhaseSucceeded, operatorsv1alpha1.CSVReasonInstallSuccessful)
}

// caused checks the cause of a version.
func (w *world) caused(csv *operatorsv1alpha1.ClusterServiceVersion, reason, remedy string) {
	w.t.Helper()
	cause, _ := api.CauseOf(csv)
	w.Expect(cause).To(gomega.Equal(api.Cause{Reason: reason, Remedy: remedy}))
}

// uncaused waits until kettle.v1 has no cause. It is removed after the status that it explains.
func (w *world) uncaused() {
	w.t.Helper()
	w.Eventually(func() map[string]string { return w.csv("kettle.v1").Annotations }).WithTimeout(patience).ShouldNot(gomega.HaveKey(api.AnnotationCause))
}

// gone waits until an object no longer exists.
func (w *world) gone(obj client.Object) {
	w.t.Helper()
	w.Eventually(func() error {
		err := w.Get(w.t.Context(), client.ObjectKeyFromObject(obj), obj)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil {
			return fmt.Errorf("%T %s is still there", obj, obj.GetName())
		}
		return nil
	}).WithTimeout(patience).WithPolling(50 * time.Millisecond).Should(gomega.Succeed())
}

// phases returns the phases in the conditions of a ClusterServiceVersion, without repetitions.
func phases(csv *operatorsv1alpha1.ClusterServiceVersion) []operatorsv1alpha1.ClusterServiceVersionPhase {
	var out []operatorsv1alpha1.ClusterServiceVersionPhase
	for _, c := range csv.Status.Conditions {
		if len(out) == 0 || out[len(out)-1] != c.Phase {
			out = append(out, c.Phase)
		}
	}
	return out
}
