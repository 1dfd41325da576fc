package suite_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	"github.com/operator-framework/api/crds"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/chandlery/chandlery/supervisor/discovery"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/testenv"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

func TestMain(m *testing.M) {
	os.Exit(testenv.Main(m, controlplane.Options{Nodes: 1}))
}

// world is a test's view of the cluster.
type world struct {
	*testenv.World

	// group belongs to the definitions of the test alone.
	group string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := testenv.New(t)
	return &world{w, w.Namespace + ".example.com"}
}

// in returns the world for a subtest.
func (w *world) in(t *testing.T) *world {
	t.Helper()
	return &world{w.In(t), w.group}
}

// eventually waits until a condition holds.
func (w *world) eventually(what string, is func(context.Context) bool) {
	w.T.Helper()
	w.Eventually(func() bool { return is(w.T.Context()) }).Should(gomega.BeTrue(), what)
}

// definition returns a CustomResourceDefinition of widgets, served at versions.
func (w *world) definition(versions ...string) *apiextensionsv1.CustomResourceDefinition {
	return fixtures.CRD(w.group, "Widget", versions...)
}

// serve installs a definition, and waits until it is served.
func (w *world) serve(crd *apiextensionsv1.CustomResourceDefinition) {
	w.T.Helper()
	w.Create(crd)
	w.awaitServed(crd)
}

func (w *world) awaitServed(crd *apiextensionsv1.CustomResourceDefinition) {
	w.T.Helper()
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
	w.T.Helper()
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
	w.T.Helper()
	cfg := controlplane.Get(w.T).Config()
	cfg.QPS = -1
	if who.name != "" {
		cfg.Impersonate = rest.ImpersonationConfig{UserName: who.name, Groups: who.groups}
	}
	finder, err := discovery.New(cfg, discovery.Options{})
	if err != nil {
		w.T.Fatal(err)
	}
	return finder
}

// find checks a target as a user, with an empty cache.
func (w *world) find(who person, target discovery.Target) discovery.Result {
	w.T.Helper()
	return w.findWithin(w.T.Context(), who, target)
}

func (w *world) findWithin(ctx context.Context, who person, target discovery.Target) discovery.Result {
	w.T.Helper()
	result, err := w.finder(who).Find(ctx, discovery.Auto, target)
	if err != nil {
		w.T.Fatalf("looking for %s: %v", target, err)
	}
	return result
}

// expect compares a result and a part of its message.
func (w *world) expect(who person, target discovery.Target, want discovery.Verdict, say string) discovery.Result {
	w.T.Helper()
	got := w.find(who, target)
	if got.Verdict != want || !strings.Contains(got.Message(), say) {
		w.T.Errorf("%q looks for %s: %v: %s\nwant %v: …%s…", who.name, target, got.Verdict, got.Message(), want, say)
	}
	return got
}

// reader returns a user who may read everything.
func (w *world) reader() person {
	who := person{name: "reader-" + w.Namespace}
	w.Create(fixtures.ClusterRole(who.name, fixtures.User(who.name), reading())...)
	return who
}

func (w *world) readerHere() person {
	who := person{name: "local-reader-" + w.Namespace}
	w.Create(fixtures.Role(w.Namespace, who.name, fixtures.User(who.name), reading())...)
	return who
}

func reading() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}}
}

func (w *world) nobody() person { return person{name: "nobody-" + w.Namespace} }

// stranger returns an unauthenticated user, who may not use the discovery API.
func (w *world) stranger() person {
	return person{name: "stranger-" + w.Namespace, groups: []string{"system:unauthenticated"}}
}

// apply applies the permissions of a result, as an administrator does.
func (w *world) apply(manifest string) {
	w.T.Helper()
	cp := controlplane.Get(w.T)
	cmd := exec.CommandContext(w.T.Context(), cp.Kubectl(), "--kubeconfig", cp.Kubeconfig(), "apply", "-f", "-")
	cmd.Stdin = strings.NewReader(manifest)
	if out, err := cmd.CombinedOutput(); err != nil {
		w.T.Fatalf("applying\n%s\n%v: %s", manifest, err, out)
	}
	w.T.Cleanup(func() {
		cmd := exec.CommandContext(context.WithoutCancel(w.T.Context()), cp.Kubectl(), "--kubeconfig", cp.Kubeconfig(), "delete", "-f", "-")
		cmd.Stdin = strings.NewReader(manifest)
		if out, err := cmd.CombinedOutput(); err != nil {
			w.T.Errorf("deleting the roles: %v: %s", err, out)
		}
	})
}
