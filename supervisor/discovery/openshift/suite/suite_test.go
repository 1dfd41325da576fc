package suite_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/supervisor/discovery"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/ports"
)

const (
	// patience is the maximum time until an expected state is reached.
	patience = controlplane.Timeout
	// poll is the polling interval for an expected state.
	poll = 50 * time.Millisecond
)

func TestMain(m *testing.M) {
	logf.SetLogger(logr.Discard())
	os.Exit(controlplane.Main(m, controlplane.Options{Nodes: 1}))
}

// world is a cluster with a supervisor.
type world struct {
	client.Client

	t         *testing.T
	namespace string
	metrics   string
}

func (w *world) create(obj client.Object) {
	w.t.Helper()
	if err := w.Create(w.t.Context(), obj); err != nil {
		w.t.Fatalf("creating %T %s: %v", obj, obj.GetName(), err)
	}
}

func (w *world) eventually(what string, is func(context.Context) bool) {
	w.t.Helper()
	err := wait.PollUntilContextTimeout(w.t.Context(), poll, patience, true, func(ctx context.Context) (bool, error) { return is(ctx), nil })
	if err != nil {
		w.t.Fatalf("waiting until %s: %v", what, err)
	}
}

// becomes waits until the operator's container has the variables, and the metric shows the result.
func (w *world) becomes(what string, outcome discovery.Outcome, env ...corev1.EnvVar) {
	w.t.Helper()
	w.eventually(what, func(ctx context.Context) bool {
		d := &appsv1.Deployment{}
		if err := w.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "kettle"}, d); err != nil {
			return false
		}
		have := slices.DeleteFunc(d.Spec.Template.Spec.Containers[0].Env, func(e corev1.EnvVar) bool { return !strings.HasSuffix(e.Name, "_PROXY") })
		return slices.Equal(have, env)
	})
	sample := `chandlery_optional_api{api="openshift",result="` + string(outcome) + `"} 1`
	w.eventually("there is the sample "+sample, func(ctx context.Context) bool {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.metrics+"/metrics", http.NoBody)
		if err != nil {
			return false
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return err == nil && strings.Contains(string(body), sample) && strings.Count(string(body), `chandlery_optional_api{api="openshift"`) == 1
	})
}

// operator returns a version with one Deployment.
func (w *world) operator() *operatorsv1alpha1.ClusterServiceVersion {
	labels := map[string]string{"app": "kettle"}
	csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "kettle.v1"}}
	csv.Spec.DisplayName = "Kettle"
	csv.Spec.InstallModes = []operatorsv1alpha1.InstallMode{{Type: operatorsv1alpha1.InstallModeTypeAllNamespaces, Supported: true}}
	csv.Spec.InstallStrategy = operatorsv1alpha1.NamedInstallStrategy{
		StrategyName: operatorsv1alpha1.InstallStrategyNameDeployment,
		StrategySpec: operatorsv1alpha1.StrategyDetailsDeployment{DeploymentSpecs: []operatorsv1alpha1.StrategyDeploymentSpec{{
			Name: "kettle",
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "kettle", Image: "registry.example.com/kettle:1"}}},
				},
			},
		}}},
	}
	return csv
}

// proxies returns the definition of OpenShift's Proxy.
func proxies() *apiextensionsv1.CustomResourceDefinition {
	keep := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "proxies.config.openshift.io",
			Annotations: map[string]string{"api-approved.kubernetes.io": "https://github.com/openshift/api/pull/470"},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "config.openshift.io", Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "proxies", Singular: "proxy", Kind: "Proxy", ListKind: "ProxyList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep},
				},
			}},
		},
	}
}

// proxyList returns the kind of a list of Proxies.
func proxyList() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "ProxyList"}
}

// newWorld prepares a cluster for a supervisor, and its settings.
func newWorld(t *testing.T) (*world, supervisor.Options) {
	t.Helper()
	cp := controlplane.Get(t)
	w := &world{Client: controlplane.Client(t), t: t, namespace: controlplane.Namespace(t), metrics: ports.Address(t)}
	if err := supervisor.InstallCRDs(t.Context(), cp.Config(), io.Discard); err != nil {
		t.Fatal(err)
	}
	return w, supervisor.Options{
		Identity: "alone", LeaderElectionNamespace: w.namespace,
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 500 * time.Millisecond,
		MetricsAddress: w.metrics, HealthAddress: "0", GlobalCatalogNamespace: "olm", BundleCacheDir: t.TempDir(),
		CatalogRefreshInterval: time.Second, InstallPlanRetryTimeout: time.Second, Concurrency: 2, FailoverRate: 10, FailoverBurst: 50,
	}
}

// supervise runs a supervisor until the test ends.
func (w *world) supervise(cfg *rest.Config, o supervisor.Options) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	done := make(chan error, 1)
	go func() { done <- supervisor.Run(ctx, cfg, o) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("stopping: %v", err)
		}
	})
}

// TestProxies runs a supervisor without permission to read Proxies. The cluster becomes an OpenShift cluster,
// and then no longer is one.
func TestProxies(t *testing.T) {
	w, o := newWorld(t)
	cp := controlplane.Get(t)

	required := o
	required.OpenShift = discovery.Required
	err := supervisor.Run(t.Context(), cp.Config(), required)
	if _, missing := errors.AsType[*discovery.NotInstalledError](err); !missing || !strings.Contains(err.Error(), "--openshift is required: Proxy.v1.config.openshift.io is not installed") {
		t.Fatalf("with --openshift=required: %v, want that it is not installed", err)
	}

	crd := proxies()
	w.create(crd)
	w.supervise(w.keeper(), o)
	w.create(&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "all"}})
	csv := w.operator()
	w.create(csv)
	w.lacks(csv)

	if err := w.Delete(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	w.becomes("the operator runs without proxies", discovery.NotInstalled)
	crd = proxies()
	w.create(crd)
	proxy := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "cluster"},
		"status":   map[string]any{"httpProxy": "http://proxy.example.com", "noProxy": ".svc"},
	}}
	proxy.SetGroupVersionKind(schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "Proxy"})
	w.eventually("the Proxy can be made", func(ctx context.Context) bool { return w.Create(ctx, proxy) == nil })
	w.becomes("the operator has the proxies", discovery.Installed,
		corev1.EnvVar{Name: "HTTP_PROXY", Value: "http://proxy.example.com"}, corev1.EnvVar{Name: "NO_PROXY", Value: ".svc"})

	change := client.RawPatch("application/merge-patch+json", []byte(`{"status": {"httpProxy": null, "httpsProxy": "http://other.example.com"}}`))
	if err := w.Patch(t.Context(), proxy, change); err != nil {
		t.Fatal(err)
	}
	w.becomes("the operator has the other proxies", discovery.Installed,
		corev1.EnvVar{Name: "HTTPS_PROXY", Value: "http://other.example.com"}, corev1.EnvVar{Name: "NO_PROXY", Value: ".svc"})

	if err := w.Delete(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	w.becomes("the operator has no proxies any more", discovery.NotInstalled)
}
