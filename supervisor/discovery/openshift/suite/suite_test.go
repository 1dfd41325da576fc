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

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/supervisor/controllers/installplan"
	"github.com/chandlery/chandlery/supervisor/discovery"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/testenv"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

func TestMain(m *testing.M) {
	os.Exit(testenv.Main(m, controlplane.Options{Nodes: 1}, testenv.InstallCRDs))
}

// world is a cluster with a supervisor.
type world struct {
	*testenv.World

	metrics string
}

func (w *world) eventually(what string, is func(context.Context) bool) {
	w.T.Helper()
	w.Eventually(func() bool { return is(w.T.Context()) }).Should(gomega.BeTrue(), what)
}

// becomes waits until the operator's container has the variables, and the metrics show the result.
func (w *world) becomes(what string, outcome discovery.Outcome, env ...corev1.EnvVar) {
	w.T.Helper()
	w.eventually(what, func(ctx context.Context) bool {
		d := &appsv1.Deployment{}
		if err := w.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: "kettle"}, d); err != nil {
			return false
		}
		have := slices.DeleteFunc(d.Spec.Template.Spec.Containers[0].Env, func(e corev1.EnvVar) bool { return !strings.HasSuffix(e.Name, "_PROXY") })
		return slices.Equal(have, env)
	})
	w.samples(`chandlery_optional_api{api="openshift",result="`+string(outcome)+`"} 1`, "chandlery_image_policy_valid 1")
}

// samples waits until the metrics have samples, and one of the API.
func (w *world) samples(wanted ...string) {
	w.T.Helper()
	w.eventually("there are the samples "+strings.Join(wanted, " and "), func(ctx context.Context) bool {
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
		lacks := slices.ContainsFunc(wanted, func(sample string) bool { return !strings.Contains(string(body), sample) })
		return err == nil && !lacks && strings.Count(string(body), `chandlery_optional_api{api="openshift"`) == 1
	})
}

// operator returns a version with one Deployment.
func (w *world) operator() *operatorsv1alpha1.ClusterServiceVersion {
	return fixtures.Kettle(w.Namespace, "kettle.v1", operatorsv1alpha1.InstallModeTypeAllNamespaces)
}

// proxies returns the definition of OpenShift's Proxy.
func proxies() *apiextensionsv1.CustomResourceDefinition {
	crd := fixtures.CRD("config.openshift.io", "Proxy")
	crd.Name, crd.Spec.Names.Plural, crd.Spec.Scope = "proxies.config.openshift.io", "proxies", apiextensionsv1.ClusterScoped
	crd.Annotations = map[string]string{"api-approved.kubernetes.io": "https://github.com/openshift/api/pull/470"}
	return crd
}

// proxyList returns the kind of a list of Proxies.
func proxyList() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "ProxyList"}
}

// newWorld prepares a cluster for a supervisor, and its settings.
func newWorld(t *testing.T) (*world, supervisor.Options) {
	t.Helper()
	w := &world{testenv.New(t), ports.Address(t)}
	return w, supervisor.Options{
		Identity: "alone", LeaderElectionNamespace: w.Namespace,
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 500 * time.Millisecond,
		MetricsAddress: w.metrics, HealthAddress: "0", GlobalCatalogNamespace: "olm", Caches: supervisor.Caches{BundleDir: t.TempDir()},
		CatalogRefreshInterval: time.Second, InstallPlans: installplan.Settings{RetryTimeout: time.Second}, Concurrency: 2, FailoverRate: 10, FailoverBurst: 50,
	}
}

// supervise runs a supervisor until the test ends.
func (w *world) supervise(cfg *rest.Config, o supervisor.Options) {
	w.T.Helper()
	w.Run(func(ctx context.Context) error { return supervisor.Run(ctx, cfg, o) })
}

// TestProxies runs a supervisor without permission to read Proxies. The cluster becomes an OpenShift cluster,
// and then no longer is one.
func TestProxies(t *testing.T) {
	w, o := newWorld(t)
	required := o
	required.OpenShift = discovery.Required
	err := supervisor.Run(t.Context(), w.Config, required)
	if _, missing := errors.AsType[*discovery.NotInstalledError](err); !missing || !strings.Contains(err.Error(), "--openshift is required: Proxy.v1.config.openshift.io is not installed") {
		t.Fatalf("with --openshift=required: %v, want that it is not installed", err)
	}

	crd := proxies()
	w.Create(crd)
	w.supervise(w.keeper(), o)
	w.Create(fixtures.OperatorGroup(w.Namespace, "all"))
	csv := w.operator()
	w.Create(csv)
	w.lacks(csv)

	if err := w.Delete(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	w.becomes("the operator runs without proxies", discovery.NotInstalled)
	crd = proxies()
	w.Create(crd)
	proxy := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "cluster"},
		"status":   map[string]any{"httpProxy": "http://proxy.example.com", "noProxy": ".svc"},
	}}
	proxy.SetGroupVersionKind(schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "Proxy"})
	w.eventually("the Proxy can be made", func(ctx context.Context) bool { return w.Client.Create(ctx, proxy) == nil })
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
