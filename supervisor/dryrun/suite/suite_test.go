package suite_test

import (
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/dryrun"
	"github.com/chandlery/chandlery/supervisor/dryrun/inputs"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/testenv"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

func TestMain(m *testing.M) {
	os.Exit(testenv.Main(m, controlplane.Options{}, testenv.InstallCRDs))
}

// world is a namespace with an operator, and a user who may read it.
type world struct {
	*testenv.World

	viewer *rest.Config
}

func newWorld(t *testing.T, rules ...rbacv1.PolicyRule) *world {
	t.Helper()
	w := &world{World: testenv.New(t)}
	user := "viewer-of-" + w.Namespace
	w.viewer = testenv.ConfigOf(t, user)
	w.viewer.Wrap(w.Requests.Record)
	w.Create(fixtures.Role(w.Namespace, "viewer", fixtures.User(user), rules...)...)
	return w
}

// may returns a rule that permits reading objects.
func may(group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"get", "list"}}
}

// looking returns all permissions that a dry run requires, except those for hosted catalogs.
func looking() rbacv1.PolicyRule {
	return may(operatorsv1alpha1.GroupName, "subscriptions", "clusterserviceversions", "installplans", "operatorgroups", "catalogsources")
}

// furnish creates the objects of the namespace.
func (w *world) furnish(address string) {
	w.T.Helper()
	csv := fixtures.Kettle(w.Namespace, "lamp.v1")
	csv.Annotations = map[string]string{"operatorframework.io/properties": `{"properties":[{"type":"olm.package","value":{"packageName":"lamp","version":"1.0.0"}}]}`}
	// A copy of a version from another namespace is not installed, and no plan may replace it.
	copied := csv.DeepCopy()
	copied.Name, copied.Labels = "lamp.v3", map[string]string{operatorsv1alpha1.CopiedLabelKey: "elsewhere"}
	w.Create(
		copied,
		fixtures.OperatorGroup(w.Namespace, "group", w.Namespace),
		fixtures.ServedCatalog(w.Namespace, "shop", address), fixtures.ServedCatalog(w.Namespace, "dead", "127.0.0.1:1"),
		csv,
		fixtures.Subscription(w.Namespace, "my-lamp", "lamp", "shop"), fixtures.Subscription(w.Namespace, "my-fan", "fan", "dead"),
	)
	csv.Status.Phase = operatorsv1alpha1.CSVPhaseSucceeded
	if err := w.Status().Update(w.T.Context(), csv); err != nil {
		w.T.Fatal(err)
	}
}

// look makes a dry run as the viewer.
func (w *world) look(change func(*inputs.Options)) ([]string, error) {
	w.T.Helper()
	o := inputs.Options{
		Namespace: w.Namespace, Global: w.Namespace, Now: metav1.Now(),
		Connect:  func() (*inputs.Cluster, error) { return inputs.NewCluster(w.viewer, w.Scheme()) },
		Progress: func(string) func() { return func() {} },
	}
	if change != nil {
		change(&o)
	}
	requests, err := inputs.Gather(w.T.Context(), o)
	if err != nil {
		return nil, err
	}
	f, err := dryrun.Run(w.T.Context(), requests[0].Request)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, s := range f.Steps {
		out = append(out, string(s.Action)+" "+s.Bundle+" for "+strings.Join(s.Subscriptions, "+")+", "+string(s.Approval))
	}
	for _, r := range f.HeldBack {
		out = append(out, "held back "+r.Subscription+": "+strings.ReplaceAll(r.Reason, w.Namespace, "NAMESPACE"))
	}
	for _, r := range append(f.Refusals, f.Unknown...) {
		text, _, _ := strings.Cut(r.Reason, ": nothing")
		text, _, _ = strings.Cut(text, ": catalog at")
		out = append(out, "no "+r.Subscription+": "+strings.ReplaceAll(text, w.Namespace, "NAMESPACE"))
	}
	return out, nil
}

// versions returns the versions of the objects that a dry run must not change.
func (w *world) versions() map[string]string {
	w.T.Helper()
	out := map[string]string{}
	for _, list := range []client.ObjectList{
		&operatorsv1alpha1.SubscriptionList{}, &operatorsv1alpha1.ClusterServiceVersionList{}, &operatorsv1alpha1.InstallPlanList{},
		&operatorsv1alpha1.CatalogSourceList{}, &operatorsv1.OperatorGroupList{}, &corev1.PodList{}, &corev1.ServiceList{},
	} {
		if err := w.List(w.T.Context(), list, client.InNamespace(w.Namespace)); err != nil {
			w.T.Fatal(err)
		}
		items, err := metaList(list)
		if err != nil {
			w.T.Fatal(err)
		}
		maps.Copy(out, items)
	}
	return out
}

func lamps() fakecatalog.Package {
	return fakecatalog.Simple("lamp",
		fakecatalog.Entry{Name: "lamp.v1", Version: "1.0.0", Image: "registry.example/lamp:1"},
		fakecatalog.Entry{Name: "lamp.v2", Version: "2.0.0", Image: "registry.example/lamp:2", Replaces: "lamp.v1"},
		fakecatalog.Entry{Name: "lamp.v3", Version: "3.0.0", Image: "registry.example/lamp:3", Replaces: "lamp.v2"},
	)
}

// TestNamespaceIsOnlyRead makes a dry run of a namespace with read permissions only, without and with a file.
func TestNamespaceIsOnlyRead(t *testing.T) {
	w := newWorld(t, looking())
	w.furnish(fakecatalog.Start(t, lamps(), fakecatalog.Simple("radio", fakecatalog.Entry{Name: "radio.v1", Version: "1.0.0", Image: "registry.example/radio:1"})).Address())
	before := w.versions()
	got, err := w.look(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"update lamp.v2 for my-lamp, automatic",
		"held back my-lamp: ClusterServiceVersion NAMESPACE/lamp.v3 is a copy: the operator is installed in namespace elsewhere and also serves this namespace",
		"no my-fan: not known: catalog NAMESPACE/dead cannot be read: no registry client established",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	const radio = `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"Subscription","metadata":{"name":"my-radio"},"spec":{"name":"radio","source":"shop","sourceNamespace":"NAMESPACE","installPlanApproval":"Manual"}}`
	got, err = w.look(func(o *inputs.Options) {
		o.Files, o.Stdin = []string{"-"}, strings.NewReader(strings.ReplaceAll(radio, "NAMESPACE", w.Namespace))
	})
	if err != nil {
		t.Fatal(err)
	}
	want = []string{want[0], "install radio.v1 for my-radio, manual", want[1], want[2]}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("with the file (-want +got):\n%s", diff)
	}

	if writes := w.Requests.Writes(); len(writes) > 0 {
		t.Errorf("requests that write: %q", writes)
	}
	if diff := cmp.Diff(before, w.versions()); diff != "" {
		t.Errorf("the namespace was changed (-before +after):\n%s", diff)
	}
}

// TestCatalogIsReadByPages reads a catalog in pages.
func TestCatalogIsReadByPages(t *testing.T) {
	w := newWorld(t, looking())
	server := fakecatalog.StartExtended(t, lamps())
	server.Paginate(2)
	w.furnish(server.Address())
	got, err := w.look(nil)
	if err != nil || len(got) == 0 || got[0] != "update lamp.v2 for my-lamp, automatic" {
		t.Errorf("%q, %v", got, err)
	}
	if server.Pages() < 2 || server.Listed() != 0 {
		t.Errorf("%d pages and %d whole lists were read", server.Pages(), server.Listed())
	}
}

// TestMissingRights checks the messages for a user who may not read the namespace, or not the replicas of a
// catalog.
func TestMissingRights(t *testing.T) {
	w := newWorld(t, may(operatorsv1alpha1.GroupName, "subscriptions"))
	_, err := w.look(nil)
	if want := "permission to list clusterserviceversions.operators.coreos.com in namespace " + w.Namespace + " is missing"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}

	w = newWorld(t, looking(), may("", "pods"))
	w.Create(
		fixtures.OperatorGroup(w.Namespace, "group"),
		fixtures.ImageCatalog(w.Namespace, "shop", "registry.example/shop:1"), fixtures.Subscription(w.Namespace, "my-lamp", "lamp", "shop"),
	)
	got, err := w.look(nil)
	want := []string{"no my-lamp: not known: catalog NAMESPACE/shop cannot be read: no registry client established: no replica of it is ready (of 0)"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}

	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "shop-1", Labels: map[string]string{"olm.catalogSource": "shop"}},
		Spec:       corev1.PodSpec{NodeName: "nowhere", Containers: []corev1.Container{{Name: "registry", Image: "registry.example/shop:1"}}},
	}
	w.Create(pod)
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if err := w.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	got, err = w.look(nil)
	if err != nil || len(got) != 1 || !strings.Contains(got[0], "grant permission to create pods/portforward in namespace NAMESPACE, or set --catalog NAMESPACE/shop=SOURCE") {
		t.Errorf("%q, %v", got, err)
	}
}

// TestMissingNamespace makes a dry run of a missing namespace, without and with a file.
func TestMissingNamespace(t *testing.T) {
	w := newWorld(t)
	w.viewer, w.Namespace = controlplane.Get(t).Config(), w.Namespace+"-gone"
	_, err := w.look(nil)
	if want := "looking at namespace " + w.Namespace + ": the cluster has no such namespace"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
	const radio = `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"Subscription","metadata":{"name":"my-radio"},"spec":{"name":"radio","source":"shop","sourceNamespace":"olm"}}`
	var blocked string
	_, err = w.look(func(o *inputs.Options) {
		o.Files, o.Stdin = []string{"-"}, strings.NewReader(radio)
		requests, err := inputs.Gather(t.Context(), *o)
		if err != nil {
			t.Fatal(err)
		}
		blocked, o.Stdin = requests[0].Blocked, strings.NewReader(radio)
	})
	if want := "the cluster has no such namespace; check --namespace, or create it, with an OperatorGroup in it"; err != nil || !strings.Contains(blocked, want) {
		t.Errorf("blocked %q, error %v, want %q", blocked, err, want)
	}
}
