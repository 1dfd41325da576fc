package suite_test

import (
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/explain"
	"github.com/chandlery/chandlery/supervisor/explain/snapshot"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/testenv"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

func TestMain(m *testing.M) {
	os.Exit(testenv.Main(m, controlplane.Options{Nodes: -1}))
}

const subscriptions = "subscriptions.operators.coreos.com"

// TestTake reads a cluster before the CustomResourceDefinitions exist, and then as several users.
func TestTake(t *testing.T) {
	cp := controlplane.Get(t)
	admin, err := snapshot.NewClient(cp.Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Run("nothing is installed", func(t *testing.T) {
		o := take(t, admin, snapshot.Options{})
		i := slices.IndexFunc(o.Unreadable, func(u explain.Unreadable) bool { return u.Resource == subscriptions })
		if i < 0 || o.Unreadable[i].Reason != explain.UnreadableNotInstalled {
			t.Errorf("unseen is %+v, want %s to be %s", o.Unreadable, subscriptions, explain.UnreadableNotInstalled)
		}
	})
	if err := testenv.InstallCRDs(t.Context(), cp); err != nil {
		t.Fatal(err)
	}
	if admin, err = snapshot.NewClient(cp.Config()); err != nil {
		t.Fatal(err)
	}
	w := testenv.New(t)
	shop, wares := w.Namespace, controlplane.Namespace(t)
	fill(w, shop, wares)
	t.Run("the administrator sees all", func(t *testing.T) {
		o := take(t, admin, snapshot.Options{})
		if len(o.Unreadable) > 0 {
			t.Errorf("unseen is %+v", o.Unreadable)
		}
		counts(t, o, 2, 1, 1)
		if len(o.Leases) != 1 || len(o.Events) != 1 || o.Events[0].Reason != "Bad" {
			t.Errorf("Leases %+v, Events %+v; want one Lease, and the warning alone", o.Leases, o.Events)
		}
		if len(o.Definitions) != 1 || o.Definitions[0].Name != subscriptions {
			t.Errorf("definitions are %d, want that which the version names", len(o.Definitions))
		}
	})
	t.Run("OLM is seen wherever it is", func(t *testing.T) { seesOLM(w.In(t), admin) })
	t.Run("PackageManifests are unavailable", func(t *testing.T) { seesUnavailablePackages(w.In(t), admin) })
	t.Run("a namespace and the catalogs that it draws from", func(t *testing.T) {
		o := take(t, admin, snapshot.Options{Namespaces: []string{shop}})
		counts(t, o, 1, 1, 1)
	})
	t.Run("a user of a namespace", func(t *testing.T) { seesNamespace(t, somebody(w.In(t), shop), shop, wares) })
	t.Run("nobody answers", func(t *testing.T) {
		away := cp.Config()
		away.Host = "https://127.0.0.1:1"
		c, err := snapshot.NewClient(away)
		if err != nil {
			t.Fatal(err)
		}
		_, err = snapshot.Read(t.Context(), c, snapshot.Options{})
		if _, is := errors.AsType[*explain.UnreachableError](err); !is {
			t.Errorf("error is %v, want that nobody answers", err)
		}
	})

	t.Run("NoSuchNamespace", func(t *testing.T) {
		_, err := snapshot.Read(t.Context(), admin, snapshot.Options{Namespaces: []string{"no-such-namespace"}})
		if missing, is := errors.AsType[*explain.MissingNamespaceError](err); !is || missing.Name != "no-such-namespace" {
			t.Errorf("error is %v, want that it is not there: all would seem to be well", err)
		}
	})
}

// seesUnavailablePackages reads an APIService whose Service does not exist.
func seesUnavailablePackages(w *testenv.World, admin client.Client) {
	w.T.Helper()
	service := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": "packages.operators.coreos.com", "version": "v1", "groupPriorityMinimum": int64(1), "versionPriority": int64(1),
		"insecureSkipTLSVerify": true, "service": map[string]any{"namespace": w.Namespace, "name": "gone"},
	}}}
	service.SetAPIVersion("apiregistration.k8s.io/v1")
	service.SetKind("APIService")
	service.SetName("v1.packages.operators.coreos.com")
	w.Create(service)
	w.Eventually(func() string { return take(w.T, admin, snapshot.Options{}).PackagesProblem }).Should(gomega.HavePrefix("ServiceNotFound: "))
	w.Expect(w.Delete(w.T.Context(), service)).To(gomega.Succeed())
	w.Eventually(func() string { return take(w.T, admin, snapshot.Options{}).PackagesProblem }).Should(gomega.BeEmpty())
}

// seesOLM creates Deployments of OLM in an otherwise empty namespace.
func seesOLM(w *testenv.World, admin client.Client) {
	w.T.Helper()
	elsewhere := controlplane.Namespace(w.T)
	olm := map[string]string{"app": "catalog-operator"}
	for name, labels := range map[string]map[string]string{"olm-operator": nil, "renamed": olm, "another": nil} {
		d := fixtures.Deployment(elsewhere, name, "c")
		d.Labels, d.Spec.Replicas, d.Spec.Selector.MatchLabels, d.Spec.Template.Labels = labels, new(int32(0)), olm, olm
		w.Create(d)
	}
	var got []string
	for _, d := range take(w.T, admin, snapshot.Options{}).Deployments {
		got = append(got, d.Name)
	}
	slices.Sort(got)
	if !slices.Equal(got, []string{"olm-operator", "renamed"}) {
		w.T.Errorf("Deployments %v", got)
	}
}

// seesNamespace reads as a user who may read the kinds of operators in one namespace.
func seesNamespace(t *testing.T, user client.Reader, shop, wares string) {
	t.Helper()
	o := take(t, user, snapshot.Options{Fallback: shop, SupervisorNamespaces: []string{wares}})
	counts(t, o, 1, 0, 1)
	if !slices.Equal(o.Namespaces, []string{shop}) {
		t.Errorf("read %v, want to fall back on %s", o.Namespaces, shop)
	}
	for _, want := range []explain.Unreadable{
		{Resource: "catalogsources.operators.coreos.com", Namespace: wares},
		{Resource: "pods", Namespace: shop},
		{Resource: "nodes"},
		{Resource: "leases.coordination.k8s.io"},
		{Resource: "customresourcedefinitions.apiextensions.k8s.io"},
	} {
		if !slices.ContainsFunc(o.Unreadable, func(u explain.Unreadable) bool {
			return u.Resource == want.Resource && u.Namespace == want.Namespace && u.Reason == explain.UnreadableForbidden && u.Message != ""
		}) {
			t.Errorf("%s in namespace %q is not among what could not be seen: %+v", want.Resource, want.Namespace, o.Unreadable)
		}
	}
}

func take(t *testing.T, reader client.Reader, o snapshot.Options) *explain.ClusterState {
	t.Helper()
	state, err := snapshot.Read(t.Context(), reader, o)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func counts(t *testing.T, o *explain.ClusterState, subs, sources, versions int) {
	t.Helper()
	if len(o.Subscriptions) != subs || len(o.CatalogSources) != sources || len(o.Versions) != versions {
		t.Errorf("%d Subscriptions, %d CatalogSources and %d versions; want %d, %d and %d",
			len(o.Subscriptions), len(o.CatalogSources), len(o.Versions), subs, sources, versions)
	}
}

// fill creates a Subscription in each of two namespaces, a version with its copy, a Lease and two Events. It
// also creates a catalog that the API's Go type cannot decode.
func fill(w *testenv.World, shop, wares string) {
	w.T.Helper()
	spec := &operatorsv1alpha1.SubscriptionSpec{CatalogSource: "wares", CatalogSourceNamespace: wares, Package: "lamp"}
	source := catalogs.NewObject()
	source.SetNamespace(wares)
	source.SetName("wares")
	source.Object["spec"] = map[string]any{"sourceType": "grpc", "address": "127.0.0.1:1", "updateStrategy": map[string]any{}}
	version := fixtures.Kettle(shop, "lamp.v1")
	version.Spec.CustomResourceDefinitions.Required = []operatorsv1alpha1.CRDDescription{
		{Name: subscriptions, Version: "v1alpha1", Kind: "Subscription"}, {Name: "lamps.example.com", Version: "v1", Kind: "Lamp"},
	}
	replica := version.DeepCopy()
	replica.Namespace, replica.Labels = wares, map[string]string{operatorsv1alpha1.CopiedLabelKey: shop}
	event := func(name, kind, reason string) *corev1.Event {
		return &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: shop, Name: "lamp"},
			Type: kind, Reason: reason,
		}
	}
	w.Create(
		&operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "lamp"}, Spec: spec},
		&operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: wares, Name: "lamp"}, Spec: spec},
		source, version, replica,
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: wares, Name: api.LeaseName}},
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: wares, Name: "another"}},
		event("bad", corev1.EventTypeWarning, "Bad"), event("good", corev1.EventTypeNormal, "Good"),
	)
}

// somebody returns a client of a user who may read the kinds of operators in a namespace, and nothing else.
func somebody(w *testenv.World, namespace string) client.Client {
	w.T.Helper()
	user := "user-of-" + namespace
	w.Create(fixtures.Role(namespace, "reader", fixtures.User(user),
		rbacv1.PolicyRule{APIGroups: []string{operatorsv1alpha1.GroupName}, Resources: []string{"*"}, Verbs: []string{"get", "list"}})...)
	c, err := snapshot.NewClient(testenv.ConfigOf(w.T, user))
	if err != nil {
		w.T.Fatal(err)
	}
	// A role takes effect in the API server after a moment.
	w.Eventually(func() error {
		return c.List(w.T.Context(), &operatorsv1alpha1.SubscriptionList{}, client.InNamespace(namespace))
	}).Should(gomega.Succeed())
	return c
}
