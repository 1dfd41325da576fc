package suite_test

import (
	"context"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/supervisor/farewell"
	"github.com/chandlery/chandlery/supervisor/plan"
	"github.com/chandlery/chandlery/supervisor/webhook"
	"github.com/chandlery/chandlery/test/controlplane"
)

const (
	patience = controlplane.Timeout
	polling  = 50 * time.Millisecond
	// quiet is how long a test checks that nothing happens.
	quiet      = webhook.Rerouting + 2*time.Second
	definition = "blends.mill.example.com"
	service    = "mill-service"
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

// world is a namespace with an operator that converts the objects of one definition.
type world struct {
	client.Client
	*gomega.WithT

	t         *testing.T
	namespace string
	endpoints *discoveryv1.EndpointSlice
}

func newWorld(t *testing.T) *world {
	t.Helper()
	c := controlplane.Client(t)
	g := gomega.NewWithT(t)
	g.SetDefaultEventuallyTimeout(patience)
	g.SetDefaultEventuallyPollingInterval(polling)
	g.SetDefaultConsistentlyDuration(quiet)
	g.SetDefaultConsistentlyPollingInterval(polling)
	w := &world{Client: c, WithT: g, t: t, namespace: controlplane.Namespace(t)}
	csv := w.version()
	w.create(csv)
	w.create(w.definition(csv))
	labels := plan.OwnerLabels(csv.Name, csv.Namespace)
	labels[discoveryv1.LabelServiceName] = service
	w.endpoints = &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: w.namespace, Name: service + "-1", Labels: labels},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{endpoint("mill-1", false), endpoint("mill-2", false)},
	}
	w.create(w.endpoints)
	w.supervise()
	return w
}

func (w *world) create(obj client.Object) {
	w.t.Helper()
	if err := w.Create(w.t.Context(), obj); err != nil {
		w.t.Fatalf("creating %T %s: %v", obj, obj.GetName(), err)
	}
	w.t.Cleanup(func() {
		ctx := context.WithoutCancel(w.t.Context())
		if err := client.IgnoreNotFound(w.Delete(ctx, obj)); err != nil {
			w.t.Error(err)
		}
		// A definition is deleted after its objects, and the next test creates its own.
		w.Eventually(func() bool { return apierrors.IsNotFound(w.Get(ctx, client.ObjectKeyFromObject(obj), obj)) }).
			Should(gomega.BeTrue(), "%T %s is to go", obj, obj.GetName())
	})
}

// version returns a version whose Deployment converts objects.
func (w *world) version() *operatorsv1alpha1.ClusterServiceVersion {
	labels := map[string]string{"app": "mill"}
	csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "mill.v1"}}
	csv.Spec.DisplayName = "Mill"
	csv.Spec.InstallModes = []operatorsv1alpha1.InstallMode{{Type: operatorsv1alpha1.InstallModeTypeAllNamespaces, Supported: true}}
	csv.Spec.CustomResourceDefinitions.Owned = []operatorsv1alpha1.CRDDescription{{Name: definition, Version: "v1", Kind: "Blend"}}
	csv.Spec.InstallStrategy.StrategyName = operatorsv1alpha1.InstallStrategyNameDeployment
	csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []operatorsv1alpha1.StrategyDeploymentSpec{{
		Name: "mill",
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example/mill:1"}}},
			},
		},
	}}
	csv.Spec.WebhookDefinitions = []operatorsv1alpha1.WebhookDescription{{
		GenerateName: "convert.mill.example.com", Type: operatorsv1alpha1.ConversionWebhook, DeploymentName: "mill", ContainerPort: 443,
		WebhookPath: new("/convert"), AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone),
		ConversionCRDs: []string{definition},
	}}
	return csv
}

// definition returns a definition that is converted through the Service of the version.
func (w *world) definition(csv *operatorsv1alpha1.ClusterServiceVersion) *apiextensionsv1.CustomResourceDefinition {
	w.t.Helper()
	cert, err := webhook.Issue(webhook.Server{Deployment: "mill"}, w.namespace, time.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	schema := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: definition}}
	crd.Spec.Group = "mill.example.com"
	crd.Spec.Scope = apiextensionsv1.NamespaceScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "blends", Kind: "Blend"}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{
		{Name: "v1", Served: true, Storage: true, Schema: schema}, {Name: "v2", Served: true, Schema: schema},
	}
	server := webhook.Server{Deployment: "mill", Webhooks: csv.Spec.WebhookDefinitions}
	crd.Spec.Conversion = webhook.Conversions(csv, []webhook.Server{server}, map[string]*webhook.Certificate{"mill": cert})[0].Want
	return crd
}

func endpoint(pod string, leaving bool) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses:  []string{"10.0.0.1"},
		TargetRef:  &corev1.ObjectReference{Kind: "Pod", Name: pod, UID: types.UID(pod)},
		Conditions: discoveryv1.EndpointConditions{Ready: new(!leaving), Serving: new(true), Terminating: &leaving},
	}
}

// supervise runs the controller until the test ends.
func (w *world) supervise() {
	w.t.Helper()
	mgr, err := ctrl.NewManager(controlplane.Get(w.t).Config(), ctrl.Options{
		Scheme:     w.Scheme(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		w.t.Fatalf("making a manager: %v", err)
	}
	if err := farewell.Setup(mgr, farewell.Options{}); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("the manager ended with: %v", err)
		}
	})
}

// behind sets the pods behind the Service.
func (w *world) behind(pods ...discoveryv1.Endpoint) {
	w.t.Helper()
	changed := w.endpoints.DeepCopy()
	changed.Endpoints = pods
	w.Expect(w.Patch(w.t.Context(), changed, client.MergeFrom(w.endpoints))).To(gomega.Succeed())
	w.endpoints = changed
}

// said returns the text after the certificates of the definition, and the generation of the definition.
func (w *world) said() (line string, generation int64) {
	w.t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	w.Expect(w.Get(w.t.Context(), client.ObjectKey{Name: definition}, crd)).To(gomega.Succeed())
	_, line, _ = strings.Cut(string(crd.Spec.Conversion.Webhook.ClientConfig.CABundle), "-----END CERTIFICATE-----\n")
	return line, crd.Generation
}

func (w *world) line() string {
	w.t.Helper()
	line, _ := w.said()
	return line
}

// unchanged checks that nothing is written for a while.
func (w *world) unchanged(why string) {
	w.t.Helper()
	_, before := w.said()
	w.Consistently(func() int64 {
		_, now := w.said()
		return now
	}).Should(gomega.Equal(before), why)
}

// TestParts terminates the pods of an operator, one after the other.
func TestParts(t *testing.T) {
	w := newWorld(t)
	w.unchanged("all stay")

	begun := time.Now()
	w.behind(endpoint("mill-1", true), endpoint("mill-2", false), endpoint("mill-3", false))
	w.Eventually(w.line).Should(gomega.Equal("# no connections to mill-1\n"))
	if took := time.Since(begun); took < webhook.Rerouting || took > webhook.Linger {
		t.Errorf("API servers parted with the pod after %s", took)
	}
	w.unchanged("they have parted with the pod")

	w.behind(endpoint("mill-1", true), endpoint("mill-2", true), endpoint("mill-3", false))
	w.Eventually(w.line).Should(gomega.Equal("# no connections to mill-1 mill-2\n"))
	w.behind(endpoint("mill-2", true), endpoint("mill-3", false))
	w.unchanged("they have parted with both")
	w.behind(endpoint("mill-3", false))
	w.unchanged("all stay again")
}

// TestWaitsForOthers uses a Service that has no other pod for a while.
func TestWaitsForOthers(t *testing.T) {
	w := newWorld(t)
	w.behind(endpoint("mill-1", true), endpoint("mill-2", true))
	w.unchanged("none stays")
	w.behind(endpoint("mill-1", true), endpoint("mill-2", true), endpoint("mill-3", false))
	w.Eventually(w.line).Should(gomega.Equal("# no connections to mill-1 mill-2\n"))
}
