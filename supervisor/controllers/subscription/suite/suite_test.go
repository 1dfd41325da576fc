package suite_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/supervisor/bundleimage"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/catalogs/contentcache"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource"
	"github.com/chandlery/chandlery/supervisor/controllers/installplan"
	"github.com/chandlery/chandlery/supervisor/controllers/subscription"
	"github.com/chandlery/chandlery/supervisor/discovery"
	"github.com/chandlery/chandlery/supervisor/imagepolicy"
	"github.com/chandlery/chandlery/supervisor/informer/crdcache"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/testenv"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// refresh is how often catalogs are read again.
const refresh = 200 * time.Millisecond

func TestMain(m *testing.M) {
	os.Exit(testenv.Main(m, controlplane.Options{Nodes: -1}, testenv.InstallCRDs))
}

// world is a test's view of the cluster, with a catalog of its own.
type world struct {
	*testenv.World

	// global is the namespace whose catalogs serve every namespace.
	global   string
	server   *fakecatalog.Server
	contents catalogContents
	// pulls configures pulls of bundle images.
	pulls pullOptions
}

// catalogContents are the contents of catalogs that a supervisor has.
type catalogContents struct {
	// dir is the directory for contents; empty for none.
	dir string
	// store is that of the last supervisor.
	store *catalogs.Store
}

// pullOptions configure pulls of bundle images.
type pullOptions struct {
	// policy is the directory with the policy for signatures; empty for none.
	policy string
	// openShift is true if policies in objects of OpenShift apply.
	openShift bool
	// nodes configures pulls by nodes; nil for none.
	nodes func(mgr testenv.Manager) (bundleimage.Nodes, error)
}

// newWorld creates a namespace with an OperatorGroup and a catalog named shop. The catalog has lamp
// with two versions, and fan with manifests in an image.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: testenv.New(t)}
	w.global = w.Namespace
	w.server = fakecatalog.Start(t, w.lamp(2), fakecatalog.Simple("fan", fakecatalog.Entry{Name: "fan.v1", Version: "1.0.0", Image: "registry.example/fan:1"}))
	w.Create(w.group("group"), w.catalog("shop", w.server.Address()))
	return w
}

// lamp returns a package with a chain of n versions.
func (w *world) lamp(n int) fakecatalog.Package {
	var entries []fakecatalog.Entry
	for i := 1; i <= n; i++ {
		e := entry(fmt.Sprintf("lamp.v%d", i), fmt.Sprintf("%d.0.0", i))
		e.Objects = append(e.Objects, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"}}`)
		if i > 1 {
			e.Replaces = fmt.Sprintf("lamp.v%d", i-1)
		}
		entries = append(entries, e)
	}
	return fakecatalog.Simple("lamp", entries...)
}

// entry returns a bundle that contains only its ClusterServiceVersion.
func entry(name, version string, properties ...*api.Property) fakecatalog.Entry {
	return fakecatalog.Entry{Name: name, Version: version, Properties: properties, Objects: []string{fmt.Sprintf(
		`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":%q},"spec":{"displayName":"Lamp","version":%q,"install":{"strategy":"deployment","spec":{"deployments":[]}}}}`, name, version)}}
}

// single returns a package with one version.
func single(name string, properties ...*api.Property) fakecatalog.Package {
	return fakecatalog.Simple(name, entry(name+".v1", "1.0.0", properties...))
}

func requiresPackage(name string) *api.Property {
	return &api.Property{Type: "olm.package.required", Value: fmt.Sprintf(`{"packageName":%q,"versionRange":">=1.0.0"}`, name)}
}

// gvk returns a property about an API of the kind: olm.gvk or olm.gvk.required.
func gvk(property, kind string) *api.Property {
	return &api.Property{Type: property, Value: fmt.Sprintf(`{"group":"suite.example","version":"v1","kind":%q}`, kind)}
}

// renamed returns a package under another name, and renames its versions.
func renamed(p fakecatalog.Package, name string) fakecatalog.Package {
	entries := slices.Clone(p.Channels[0].Entries)
	for i := range entries {
		from := entries[i].Name
		to := strings.Replace(from, p.Name, name, 1)
		entries[i].Name = to
		entries[i].Replaces = strings.Replace(entries[i].Replaces, p.Name, name, 1)
		entries[i].Objects = slices.Clone(entries[i].Objects)
		for j := range entries[i].Objects {
			entries[i].Objects[j] = strings.NewReplacer(from, to, `"settings"`, `"`+name+`-settings"`).Replace(entries[i].Objects[j])
		}
	}
	return fakecatalog.Simple(name, entries...)
}

// catalog returns a CatalogSource with an update strategy that the API's Go type cannot read.
func (w *world) catalog(name, address string) client.Object {
	u := catalogs.NewObject()
	u.SetNamespace(w.Namespace)
	u.SetName(name)
	u.Object["spec"] = map[string]any{"sourceType": "grpc", "address": address, "updateStrategy": map[string]any{}}
	return u
}

func (w *world) subscription(name, pkg string, changes ...func(*operatorsv1alpha1.SubscriptionSpec)) *operatorsv1alpha1.Subscription {
	sub := fixtures.Subscription(w.Namespace, name, pkg, "shop")
	for _, change := range changes {
		change(sub.Spec)
	}
	return sub
}

func manual(spec *operatorsv1alpha1.SubscriptionSpec) {
	spec.InstallPlanApproval = operatorsv1alpha1.ApprovalManual
}

func start(csv string) func(*operatorsv1alpha1.SubscriptionSpec) {
	return func(spec *operatorsv1alpha1.SubscriptionSpec) { spec.StartingCSV = csv }
}

func (w *world) group(name string) *operatorsv1.OperatorGroup {
	return fixtures.OperatorGroup(w.Namespace, name)
}

// supervise runs the controllers until the test ends or stop is called. stop waits for their end.
func (w *world) supervise() (stop func()) {
	w.T.Helper()
	return w.StartManager(ctrl.Options{
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{w.Namespace: {}, w.global: {}}},
	}, func(mgr testenv.Manager) error {
		images, err := imagesOf(w, mgr)
		if err != nil {
			return err
		}
		crds, err := crdcache.Add(mgr)
		if err != nil {
			return err
		}
		store := catalogs.NewStore(mgr.Context, refresh, clock.RealClock{})
		w.contents.store = store
		if w.contents.dir != "" {
			contents, err := contentcache.Open(w.contents.dir, 0)
			if err != nil {
				return err
			}
			store.Contents = catalogs.NewContentStore(contents)
		}
		return errors.Join(
			catalogs.Setup(mgr, store),
			catalogsource.Setup(mgr, catalogsource.Options{Store: store}),
			images.Setup(mgr),
			subscription.Setup(mgr, subscription.Options{Catalogs: store, Images: images, GlobalNamespace: w.global, Concurrency: 2}),
			installplan.Setup(mgr, installplan.Options{Settings: installplan.Settings{RetryTimeout: time.Minute}, CRDs: crds, Bundles: store, Images: images, Concurrency: 2}),
		)
	})
}

// imagesOf returns the cache of bundle images of a manager.
func imagesOf(w *world, mgr testenv.Manager) (*bundleimage.Cache, error) {
	o := bundleimage.Options{Reader: mgr.GetAPIReader(), Dir: w.T.TempDir(), PlainHTTP: true, Policies: imagepolicy.New(w.pulls.policy)}
	if w.pulls.openShift {
		o.Policies.AwaitNodePolicies()
		o.Policies.Found(mgr.Context, mgr.GetAPIReader(), discovery.Result{Verdict: discovery.Verdict{Outcome: discovery.Installed}})
	}
	if w.pulls.nodes != nil {
		var err error
		if o.Nodes, err = w.pulls.nodes(mgr); err != nil {
			return nil, err
		}
	}
	return bundleimage.New(o)
}

// becomes waits until the condition holds for a Subscription, and returns the Subscription.
func (w *world) becomes(name string, holds func(*operatorsv1alpha1.Subscription) bool) *operatorsv1alpha1.Subscription {
	w.T.Helper()
	sub := &operatorsv1alpha1.Subscription{}
	w.Eventually(func() bool {
		sub = &operatorsv1alpha1.Subscription{}
		return w.Get(w.T.Context(), client.ObjectKey{Namespace: w.Namespace, Name: name}, sub) == nil && holds(sub)
	}).Should(gomega.BeTrue(), func() string {
		return fmt.Sprintf("subscription %s: state %q, current %q, installed %q, plan %+v, conditions %+v", name, sub.Status.State, sub.Status.CurrentCSV, sub.Status.InstalledCSV, sub.Status.InstallPlanRef, sub.Status.Conditions)
	})
	return sub
}

// says waits until a Subscription has a condition with that reason and text.
func (w *world) says(name string, kind operatorsv1alpha1.SubscriptionConditionType, reason, text string) *operatorsv1alpha1.Subscription {
	w.T.Helper()
	return w.becomes(name, func(sub *operatorsv1alpha1.Subscription) bool {
		c := sub.Status.GetCondition(kind)
		return c.Status == "True" && c.Reason == reason && strings.Contains(c.Message, text)
	})
}

func (w *world) plans() []operatorsv1alpha1.InstallPlan {
	w.T.Helper()
	list := &operatorsv1alpha1.InstallPlanList{}
	if err := w.List(w.T.Context(), list, client.InNamespace(w.Namespace)); err != nil {
		w.T.Fatal(err)
	}
	return list.Items
}

// onlyPlan waits until there is one plan in a phase, and fails when there are more.
func (w *world) onlyPlan(phase operatorsv1alpha1.InstallPlanPhase) *operatorsv1alpha1.InstallPlan {
	w.T.Helper()
	var plans []operatorsv1alpha1.InstallPlan
	w.Eventually(func() bool {
		plans = w.plans()
		return len(plans) > 0 && plans[0].Status.Phase == phase
	}).Should(gomega.BeTrue(), func() string { return fmt.Sprintf("%+v", plans) })
	if len(plans) != 1 {
		w.T.Fatalf("there are %d plans", len(plans))
	}
	return &plans[0]
}

func (w *world) approve(name string) {
	w.T.Helper()
	p := &operatorsv1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
	w.patch(p, `{"spec":{"approved":true}}`)
}

func (w *world) patch(object client.Object, text string) {
	w.T.Helper()
	if err := w.Patch(w.T.Context(), object, client.RawPatch("application/merge-patch+json", []byte(text))); err != nil {
		w.T.Fatal(err)
	}
}

// events returns the reasons of the Events of an object, with their numbers.
func (w *world) events(name string) map[string]int {
	w.T.Helper()
	list := &corev1.EventList{}
	if err := w.List(w.T.Context(), list, client.InNamespace(w.Namespace)); err != nil {
		w.T.Fatal(err)
	}
	found := map[string]int{}
	for i := range list.Items {
		if list.Items[i].InvolvedObject.Name == name {
			found[list.Items[i].Reason]++
		}
	}
	return found
}

// settled waits until a Subscription has its newest version and no resolution error.
func (w *world) settled(name, csv string) *operatorsv1alpha1.Subscription {
	w.T.Helper()
	return w.becomes(name, func(sub *operatorsv1alpha1.Subscription) bool {
		return sub.Status.State == latest && sub.Status.InstalledCSV == csv && sub.Status.CurrentCSV == csv && sub.Status.GetCondition(unresolved).Status != "True"
	})
}

// succeed sets the phase of a version to Succeeded, in place of its controller, which does not run
// here.
func (w *world) succeed(name string) {
	w.T.Helper()
	csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
	w.Eventually(func() error {
		return w.Status().Patch(w.T.Context(), csv, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"phase":"Succeeded"}}`)))
	}).Should(gomega.Succeed())
}
