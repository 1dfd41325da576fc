package suite_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/operator-framework/api/crds"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/discovery"
	"github.com/chandlery/chandlery/test/controlplane"
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

// world is a test's view of the cluster.
type world struct {
	client.Client

	t *testing.T
	// namespace belongs to the test alone. group belongs to its definitions alone.
	namespace, group string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	namespace := controlplane.Namespace(t)
	return &world{Client: controlplane.Client(t), t: t, namespace: namespace, group: namespace + ".example.com"}
}

// create creates an object that is deleted at the end of the test.
func (w *world) create(obj client.Object) {
	w.t.Helper()
	if err := w.Create(w.t.Context(), obj); err != nil {
		w.t.Fatalf("creating %T %s: %v", obj, obj.GetName(), err)
	}
	w.t.Cleanup(func() {
		if err := client.IgnoreNotFound(w.Delete(context.WithoutCancel(w.t.Context()), obj)); err != nil {
			w.t.Errorf("deleting %T %s: %v", obj, obj.GetName(), err)
		}
	})
}

// eventually waits until a condition holds.
func (w *world) eventually(what string, is func(context.Context) bool) {
	w.t.Helper()
	err := wait.PollUntilContextTimeout(w.t.Context(), poll, patience, true, func(ctx context.Context) (bool, error) { return is(ctx), nil })
	if err != nil {
		w.t.Fatalf("waiting until %s: %v", what, err)
	}
}

// definition returns a CustomResourceDefinition of widgets, served at versions.
func (w *world) definition(versions ...string) *apiextensionsv1.CustomResourceDefinition {
	keep := true
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets." + w.group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: w.group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
		},
	}
	for i, version := range versions {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: i == 0,
			Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep},
			},
		})
	}
	return crd
}

// serve installs a definition, and waits until it is served.
func (w *world) serve(crd *apiextensionsv1.CustomResourceDefinition) {
	w.t.Helper()
	w.create(crd)
	w.awaitServed(crd)
}

func (w *world) awaitServed(crd *apiextensionsv1.CustomResourceDefinition) {
	w.t.Helper()
	finder := w.finder(person{})
	target := discovery.Target{
		GroupVersionKind: schema.GroupVersionKind{Group: crd.Spec.Group, Version: crd.Spec.Versions[0].Name, Kind: crd.Spec.Names.Kind},
	}
	w.eventually(crd.Name+" is served", func(ctx context.Context) bool {
		finder.Invalidate()
		result, err := finder.Find(ctx, discovery.Auto, target)
		return err == nil && result.Outcome == discovery.Installed
	})
}

// withVersions installs the definition of ClusterServiceVersions.
func (w *world) withVersions() {
	w.t.Helper()
	crd := crds.ClusterServiceVersion()
	crd.ResourceVersion = ""
	w.serve(crd)
}

// widgets returns the target of tests.
func (w *world) widgets(version string) discovery.Target {
	return discovery.Target{
		GroupVersionKind: schema.GroupVersionKind{Group: w.group, Version: version, Kind: "Widget"}, Resource: "widgets",
	}
}

// A person is a user who asks. The zero person is an administrator.
type person struct {
	name   string
	groups []string
}

// finder returns a Finder that asks as a user.
func (w *world) finder(who person) *discovery.Finder {
	w.t.Helper()
	cfg := controlplane.Get(w.t).Config()
	cfg.QPS = -1
	if who.name != "" {
		cfg.Impersonate = rest.ImpersonationConfig{UserName: who.name, Groups: who.groups}
	}
	finder, err := discovery.New(cfg, discovery.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	return finder
}

// find checks a target as a user, with an empty cache.
func (w *world) find(who person, target discovery.Target) discovery.Result {
	w.t.Helper()
	return w.findWithin(w.t.Context(), who, target)
}

func (w *world) findWithin(ctx context.Context, who person, target discovery.Target) discovery.Result {
	w.t.Helper()
	result, err := w.finder(who).Find(ctx, discovery.Auto, target)
	if err != nil {
		w.t.Fatalf("looking for %s: %v", target, err)
	}
	return result
}

// expect compares a result and a part of its message.
func (w *world) expect(who person, target discovery.Target, want discovery.Verdict, say string) discovery.Result {
	w.t.Helper()
	got := w.find(who, target)
	if got.Verdict != want || !strings.Contains(got.Message(), say) {
		w.t.Errorf("%q looks for %s: %v: %s\nwant %v: …%s…", who.name, target, got.Verdict, got.Message(), want, say)
	}
	return got
}

// reader returns a user who may read everything.
func (w *world) reader() person {
	who := person{name: "reader-" + w.namespace}
	w.create(&rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: who.name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}}},
	})
	w.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: who.name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: who.name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: who.name}},
	})
	return who
}

func (w *world) readerHere() person {
	who := person{name: "local-reader-" + w.namespace}
	w.create(&rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: who.name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}}},
	})
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: who.name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: who.name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: who.name}},
	})
	return who
}

func (w *world) nobody() person { return person{name: "nobody-" + w.namespace} }

// stranger returns an unauthenticated user, who may not use the discovery API.
func (w *world) stranger() person {
	return person{name: "stranger-" + w.namespace, groups: []string{"system:unauthenticated"}}
}

// apply applies the permissions of a result, as an administrator does.
func (w *world) apply(manifest string) {
	w.t.Helper()
	cp := controlplane.Get(w.t)
	cmd := exec.CommandContext(w.t.Context(), cp.Kubectl(), "--kubeconfig", cp.Kubeconfig(), "apply", "-f", "-")
	cmd.Stdin = strings.NewReader(manifest)
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("applying\n%s\n%v: %s", manifest, err, out)
	}
	w.t.Cleanup(func() {
		cmd := exec.CommandContext(context.WithoutCancel(w.t.Context()), cp.Kubectl(), "--kubeconfig", cp.Kubeconfig(), "delete", "-f", "-")
		cmd.Stdin = strings.NewReader(manifest)
		if out, err := cmd.CombinedOutput(); err != nil {
			w.t.Errorf("deleting the roles: %v: %s", err, out)
		}
	})
}
