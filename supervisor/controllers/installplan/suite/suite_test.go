package suite_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/bundleimage"
	"github.com/chandlery/chandlery/supervisor/controllers/installplan"
	"github.com/chandlery/chandlery/supervisor/informer/crdcache"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/rbac/grant"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/testenv"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

func TestMain(m *testing.M) {
	os.Exit(testenv.Main(m, controlplane.Options{Nodes: -1}, testenv.InstallCRDs))
}

// shelf is a catalog in memory.
type shelf struct{ bundles sync.Map }

func (s *shelf) put(b plansteps.Bundle) { s.bundles.Store(b.Name, b) }

func (s *shelf) Bundle(_ context.Context, _ types.NamespacedName, _, _, name string) (plansteps.Bundle, error) {
	found, _ := s.bundles.Load(name)
	b, ok := found.(plansteps.Bundle)
	if !ok {
		return b, fmt.Errorf("reading bundle %s: %w", name, context.DeadlineExceeded)
	}
	return b, nil
}

// images holds bundle images in memory.
type images struct{ content sync.Map }

func (i *images) Content(_ context.Context, r bundleimage.Request) (bundleimage.Content, error) {
	found, _ := i.content.Load(r.Image + " with " + strings.Join(r.Secrets, ","))
	objects, ok := found.([]string)
	if !ok {
		return bundleimage.Content{}, fmt.Errorf("pulling %s: %w", r.Image, context.DeadlineExceeded)
	}
	return bundleimage.Content{Image: r.Image, Objects: objects}, nil
}

// world is a test's view of the cluster.
type world struct {
	*testenv.World

	shelf  *shelf
	images *images
	// beforeApply receives the kind of each object that the controller is about to apply.
	beforeApply func(kind string)
	// acknowledge is how long phases wait for Subscriptions.
	acknowledge time.Duration
	// crdAsAccount makes the controller write definitions with the account of a group.
	crdAsAccount bool
	// owners and generation are set on the plan.
	owners     []metav1.OwnerReference
	generation int
	// warned counts the warnings that the test itself received.
	warned *atomic.Int64
}

// counter counts warnings.
type counter struct{ n *atomic.Int64 }

// HandleWarningHeader counts one.
func (c counter) HandleWarningHeader(int, string, string) { c.n.Add(1) }

// warningCount returns the number of warnings that the test has received.
func (w *world) warningCount() int64 { return w.warned.Load() }

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: testenv.New(t), shelf: &shelf{}, images: &images{}, beforeApply: func(string) {}, warned: &atomic.Int64{}}
	cfg := controlplane.Get(t).Config()
	cfg.QPS, cfg.WarningHandler = -1, counter{w.warned}
	var err error
	if w.Client, err = client.New(cfg, client.Options{Scheme: w.Scheme()}); err != nil {
		t.Fatal(err)
	}
	return w
}

// newClient returns the client of the controller.
func (w *world) newClient(cfg *rest.Config, options client.Options) (client.Client, error) {
	c, err := client.NewWithWatch(cfg, options)
	if err != nil {
		return nil, err
	}
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
			w.beforeApply(object.GetObjectKind().GroupVersionKind().Kind)
			return c.Create(ctx, object, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.UpdateOption) error {
			w.beforeApply(object.GetObjectKind().GroupVersionKind().Kind)
			return c.Update(ctx, object, opts...)
		},
	}), nil
}

// supervise runs the controller until the test ends or stop is called. stop waits for the end.
func (w *world) supervise(retryTimeout time.Duration) (stop func()) {
	w.T.Helper()
	return w.StartManager(ctrl.Options{Cache: cache.Options{
		DefaultNamespaces: map[string]cache.Config{w.Namespace: {}},
		// Versions of other namespaces share definitions.
		ByObject: map[client.Object]cache.ByObject{
			&operatorsv1alpha1.ClusterServiceVersion{}: {Namespaces: map[string]cache.Config{cache.AllNamespaces: {}}},
		},
	}}, func(mgr testenv.Manager) error {
		grants, err := grant.Setup(mgr)
		if err != nil {
			return err
		}
		crds, err := crdcache.Add(mgr)
		if err != nil {
			return err
		}
		return installplan.Setup(mgr, installplan.Options{
			CRDs:     crds,
			Settings: installplan.Settings{RetryTimeout: retryTimeout, CRDAsServiceAccount: w.crdAsAccount},
			Bundles:  w.shelf, Images: w.images, Concurrency: 1, NewClient: w.newClient, Grants: grants,
			AcknowledgeTimeout: w.acknowledge, MinForeignPhaseDuration: time.Second,
		})
	})
}

func (w *world) group(name string) *operatorsv1.OperatorGroup {
	return fixtures.OperatorGroup(w.Namespace, name)
}

// bundle returns a bundle. Its cluster-scoped objects have names with the namespace in them, so
// that tests do not conflict.
func (w *world) bundle(objects ...string) plansteps.Bundle {
	csv := `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"lamp.v1"},
		"spec":{"displayName":"Lamp","version":"1.0.0","install":{"strategy":"deployment","spec":{"deployments":[],
		"permissions":[{"serviceAccountName":"lamp","rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}]}}}}`
	return plansteps.Bundle{
		Name: "lamp.v1", Package: "lamp", Channel: "stable", Catalog: types.NamespacedName{Namespace: "olm", Name: "shop"},
		Objects: append([]string{csv}, objects...),
	}
}

func (w *world) crd() string {
	const kind = "lamp"
	plural := kind + "s." + w.Namespace + ".example"
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":%q},"spec":{"group":%q,"scope":"Namespaced",
		"names":{"plural":%q,"kind":%q},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`,
		plural, w.Namespace+".example", kind+"s", kind)
}

const settings = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"},"data":{"a":"b"}}`

// plan creates the plan of a bundle as the subscription controller does.
func (w *world) plan(b plansteps.Bundle, approved bool, inline int) {
	w.T.Helper()
	steps, err := plansteps.Steps(w.Namespace, b, nil)
	if err != nil {
		w.T.Fatal(err)
	}
	if err := plansteps.ReferenceManifests(steps, []plansteps.Bundle{b}, inline); err != nil {
		w.T.Fatal(err)
	}
	warnings, err := plansteps.ManifestWarnings(steps, []plansteps.Bundle{b}, nil)
	if err != nil {
		w.T.Fatal(err)
	}
	p := &operatorsv1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "install-lamp", OwnerReferences: w.owners, Annotations: map[string]string{api.AnnotationManifestWarnings: warnings}},
		Spec: operatorsv1alpha1.InstallPlanSpec{
			ClusterServiceVersionNames: []string{b.Name}, Approval: operatorsv1alpha1.ApprovalManual, Approved: approved, Generation: w.generation,
		},
	}
	w.Create(p)
	p.Status = operatorsv1alpha1.InstallPlanStatus{Phase: operatorsv1alpha1.InstallPlanPhasePlanning, CatalogSources: []string{"shop"}, Plan: steps}
	if err := w.Status().Update(w.T.Context(), p); err != nil {
		w.T.Fatal(err)
	}
}

func (w *world) read() *operatorsv1alpha1.InstallPlan {
	p := &operatorsv1alpha1.InstallPlan{}
	if err := w.Get(w.T.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "install-lamp"}, p); err != nil {
		p.Status.Message = err.Error()
	}
	return p
}

// becomes waits until the condition holds for the plan, and returns the plan.
func (w *world) becomes(holds func(*operatorsv1alpha1.InstallPlan) bool) *operatorsv1alpha1.InstallPlan {
	w.T.Helper()
	var p *operatorsv1alpha1.InstallPlan
	w.Eventually(func() bool {
		p = w.read()
		return holds(p)
	}).Should(gomega.BeTrue(), func() string {
		return fmt.Sprintf("phase %q, message %q, conditions %+v", p.Status.Phase, p.Status.Message, p.Status.Conditions)
	})
	return p
}

func (w *world) reaches(phase operatorsv1alpha1.InstallPlanPhase) *operatorsv1alpha1.InstallPlan {
	w.T.Helper()
	return w.becomes(func(p *operatorsv1alpha1.InstallPlan) bool { return p.Status.Phase == phase })
}

func installed(p *operatorsv1alpha1.InstallPlan) operatorsv1alpha1.InstallPlanCondition {
	return p.Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled)
}

// statuses returns the steps as kind=status.
func statuses(p *operatorsv1alpha1.InstallPlan) []string {
	var list []string
	for _, s := range p.Status.Plan {
		list = append(list, s.Resource.Kind+"="+string(s.Status))
	}
	return list
}

func (w *world) settings() *corev1.ConfigMap {
	w.T.Helper()
	found := &corev1.ConfigMap{}
	if err := w.Get(w.T.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "settings"}, found); err != nil {
		w.T.Fatal(err)
	}
	return found
}

// hasSettings waits until the ConfigMap of a bundle exists.
func (w *world) hasSettings() {
	w.T.Helper()
	w.Eventually(func() error {
		return w.Get(w.T.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "settings"}, &corev1.ConfigMap{})
	}).Should(gomega.Succeed())
}

// stays checks that the phase of the plan does not change for a while.
func (w *world) stays(phase operatorsv1alpha1.InstallPlanPhase) {
	w.T.Helper()
	w.Consistently(func() operatorsv1alpha1.InstallPlanPhase { return w.read().Status.Phase }).
		WithTimeout(500 * time.Millisecond).Should(gomega.Equal(phase))
}

// schemaOf returns a schema from JSON.
func schemaOf(t *testing.T, text string) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	var s apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// text returns a definition as JSON, as in a bundle.
func text(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) string {
	t.Helper()
	bundled := crd.DeepCopy()
	bundled.TypeMeta = metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
	bundled.ObjectMeta = metav1.ObjectMeta{Name: crd.Name, Labels: crd.Labels}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(bundled)
	if err != nil {
		t.Fatal(err)
	}
	delete(content, "status")
	encoded, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}
