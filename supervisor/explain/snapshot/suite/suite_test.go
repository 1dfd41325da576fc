package suite_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/explain"
	"github.com/chandlery/chandlery/supervisor/explain/snapshot"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/pause"
)

func TestMain(m *testing.M) {
	logf.SetLogger(logr.FromSlogHandler(slog.DiscardHandler))
	os.Exit(controlplane.Main(m, controlplane.Options{Nodes: -1}))
}

const (
	patience = controlplane.Timeout
	polling  = 50 * time.Millisecond
)

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
	if err := supervisor.InstallCRDs(t.Context(), cp.Config(), io.Discard); err != nil {
		t.Fatal(err)
	}
	if admin, err = snapshot.NewClient(cp.Config()); err != nil {
		t.Fatal(err)
	}
	shop, wares := controlplane.Namespace(t), controlplane.Namespace(t)
	fill(t, admin, shop, wares)
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
	t.Run("OLM is seen wherever it is", func(t *testing.T) { seesOLM(t, admin) })
	t.Run("a namespace and the catalogs that it draws from", func(t *testing.T) {
		o := take(t, admin, snapshot.Options{Namespaces: []string{shop}})
		counts(t, o, 1, 1, 1)
	})
	t.Run("a user of a namespace", func(t *testing.T) { seesNamespace(t, somebody(t, admin, shop), shop, wares) })
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
		if err == nil || !strings.Contains(err.Error(), "namespace no-such-namespace does not exist") {
			t.Errorf("error is %v, want that it is not there: all would seem to be well", err)
		}
	})
}

// seesOLM creates Deployments of OLM in an otherwise empty namespace.
func seesOLM(t *testing.T, admin client.Client) {
	t.Helper()
	elsewhere := controlplane.Namespace(t)
	labels := map[string]string{"app": "catalog-operator"}
	for _, d := range []*appsv1.Deployment{
		{ObjectMeta: metav1.ObjectMeta{Namespace: elsewhere, Name: "olm-operator"}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: elsewhere, Name: "renamed", Labels: labels}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: elsewhere, Name: "another"}},
	} {
		d.Spec = appsv1.DeploymentSpec{Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels}}
		d.Spec.Template.Labels = labels
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "registry.example.com/c:v1"}}
		if err := admin.Create(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, d := range take(t, admin, snapshot.Options{}).Deployments {
		got = append(got, d.Name)
	}
	slices.Sort(got)
	if !slices.Equal(got, []string{"olm-operator", "renamed"}) {
		t.Errorf("Deployments %v", got)
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
func fill(t *testing.T, c client.Client, shop, wares string) {
	t.Helper()
	spec := &operatorsv1alpha1.SubscriptionSpec{CatalogSource: "wares", CatalogSourceNamespace: wares, Package: "lamp"}
	source := catalogs.NewObject()
	source.SetNamespace(wares)
	source.SetName("wares")
	source.Object["spec"] = map[string]any{"sourceType": "grpc", "address": "127.0.0.1:1", "updateStrategy": map[string]any{}}
	version := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "lamp.v1"}}
	version.Spec.InstallStrategy.StrategyName = "deployment"
	version.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []operatorsv1alpha1.StrategyDeploymentSpec{}
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
	for _, o := range []client.Object{
		&operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "lamp"}, Spec: spec},
		&operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: wares, Name: "lamp"}, Spec: spec},
		source, version, replica,
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: wares, Name: api.LeaseName}},
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: wares, Name: "another"}},
		event("bad", corev1.EventTypeWarning, "Bad"), event("good", corev1.EventTypeNormal, "Good"),
	} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatalf("creating %T: %v", o, err)
		}
		t.Cleanup(func() {
			if err := client.IgnoreNotFound(c.Delete(context.WithoutCancel(t.Context()), o)); err != nil {
				t.Error(err)
			}
		})
	}
}

// somebody returns a client of a user who may read the kinds of operators in a namespace, and nothing else.
func somebody(t *testing.T, admin client.Client, namespace string) client.Client {
	t.Helper()
	user := "user-of-" + namespace
	for _, o := range []client.Object{
		&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "reader"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{operatorsv1alpha1.GroupName}, Resources: []string{"*"}, Verbs: []string{"get", "list"}}},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "reader"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: user}},
		},
	} {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	path, err := controlplane.Get(t).NewKubeconfig(user)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := snapshot.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	// A role takes effect in the API server after a moment.
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := pause.Until(ctx, polling, func() string {
		if err := c.List(ctx, &operatorsv1alpha1.SubscriptionList{}, client.InNamespace(namespace)); err != nil {
			return err.Error()
		}
		return ""
	}); err != nil {
		t.Fatal(err)
	}
	return c
}
