package suite_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/blang/semver/v4"
	"github.com/onsi/gomega"
	"github.com/operator-framework/api/pkg/lib/version"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// global is the namespace of global catalogs and of the supervisor's Lease.
const global = "olm"

// prepare creates what all tests share: the permissions of users, a catalog, and the Lease of a
// running supervisor.
func prepare(ctx context.Context, cp *controlplane.ControlPlane) error {
	scheme, err := supervisor.NewScheme()
	if err != nil {
		return err
	}
	c, err := client.New(cp.Config(), client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	root, err := buildcache.SourceDir(".")
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, "deploy", "prerequisites", "users.yaml"))
	if err != nil {
		return err
	}
	source := fixtures.ServedCatalog(global, "wares", "wares.example.com:50051")
	now := metav1.NowMicro()
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: global}},
		source,
		&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: global, Name: api.LeaseName},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: new("supervisor-0_12345678"), LeaseDurationSeconds: new(int32(60)), AcquireTime: &now, RenewTime: &now,
			},
		},
	}
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		role := &rbacv1.ClusterRole{}
		if err := yaml.UnmarshalStrict(document, role); err != nil {
			return fmt.Errorf("reading the rights of users: %w", err)
		}
		objects = append(objects, role)
	}
	for _, o := range objects {
		if err := c.Create(ctx, o); err != nil {
			return fmt.Errorf("creating %s: %w", o.GetName(), err)
		}
	}
	source.Status.GRPCConnectionState = &operatorsv1alpha1.GRPCConnectionState{Address: source.Spec.Address, LastObservedState: "READY"}
	return c.Status().Update(ctx, source)
}

// renewLease renews the Lease until the test ends, as its holder would.
func renewLease(w *world) {
	w.T.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: global, Name: api.LeaseName}}
	renew := func(ctx context.Context) error {
		patch := fmt.Sprintf(`{"spec":{"renewTime":%q}}`, metav1.NowMicro().UTC().Format(metav1.RFC3339Micro))
		return w.Patch(ctx, lease.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))
	}
	if err := renew(w.T.Context()); err != nil {
		w.T.Fatalf("renewing the Lease: %v", err)
	}
	const interval = 5 * time.Second
	// The API server may be unreachable in between; the next renewal succeeds.
	go wait.UntilWithContext(w.T.Context(), func(ctx context.Context) { _ = renew(ctx) }, interval)
}

// well gives the Subscription of the world a healthy status.
func (w *world) well() {
	w.T.Helper()
	renewLease(w)
	csv := &operatorsv1alpha1.ClusterServiceVersion{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "lamp.v1"},
		Spec: operatorsv1alpha1.ClusterServiceVersionSpec{
			DisplayName: "Lamp",
			Version:     version.OperatorVersion{Version: semver.MustParse("1.0.0")},
			InstallStrategy: operatorsv1alpha1.NamedInstallStrategy{
				StrategyName: operatorsv1alpha1.InstallStrategyNameDeployment,
				StrategySpec: operatorsv1alpha1.StrategyDetailsDeployment{DeploymentSpecs: []operatorsv1alpha1.StrategyDeploymentSpec{}},
			},
			InstallModes: []operatorsv1alpha1.InstallMode{{Type: operatorsv1alpha1.InstallModeTypeAllNamespaces, Supported: true}},
		},
	}
	group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "group"}}
	w.Create(csv, group)
	group.Status = operatorsv1.OperatorGroupStatus{Namespaces: []string{""}, LastUpdated: new(metav1.Now())}
	w.status(group)
	csv.Status.Phase, csv.Status.Reason = operatorsv1alpha1.CSVPhaseSucceeded, operatorsv1alpha1.CSVReasonInstallSuccessful
	w.status(csv)
	w.phase(operatorsv1alpha1.InstallPlanPhaseComplete)
	w.change("my-lamp", func(o client.Object) error { return w.Status().Update(w.T.Context(), o) }, func(sub *operatorsv1alpha1.Subscription) {
		sub.Status.State, sub.Status.InstalledCSV, sub.Status.Conditions = operatorsv1alpha1.SubscriptionStateAtLatest, "lamp.v1", nil
		sub.Status.CatalogHealth = []operatorsv1alpha1.SubscriptionCatalogHealth{{
			CatalogSourceRef: &corev1.ObjectReference{Namespace: "olm", Name: "wares"}, Healthy: true, LastUpdated: new(metav1.Now()),
		}}
	})
}

// phase sets the phase of the world's InstallPlan.
func (w *world) phase(phase operatorsv1alpha1.InstallPlanPhase) {
	w.T.Helper()
	p := w.plan()
	p.Status.Phase = phase
	if p.Status.CatalogSources == nil {
		p.Status.CatalogSources = []string{}
	}
	w.status(p)
}

func (w *world) plan() *operatorsv1alpha1.InstallPlan {
	w.T.Helper()
	p := &operatorsv1alpha1.InstallPlan{}
	if err := w.Get(w.T.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "install-aaa"}, p); err != nil {
		w.T.Fatal(err)
	}
	return p
}

func (w *world) status(o client.Object) {
	w.T.Helper()
	if err := w.Status().Update(w.T.Context(), o); err != nil {
		w.T.Fatalf("writing the status of %T %s: %v", o, o.GetName(), err)
	}
}

// user is a user with permissions.
type user struct{ name, kubeconfig string }

// createUsers creates users with different permissions in the namespace of a world.
func createUsers(w *world) []user {
	w.T.Helper()
	cp := controlplane.Get(w.T)
	viewer, reader, nobody := "viewer-"+w.Namespace, "reader-"+w.Namespace, "nobody-"+w.Namespace
	subject := func(name string) []rbacv1.Subject {
		return []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}}
	}
	view := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: viewer}, RoleRef: view, Subjects: subject(viewer)}
	w.Create(
		binding,
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: reader}, RoleRef: view, Subjects: subject(reader)},
	)
	w.T.Cleanup(func() { _ = w.Delete(context.WithoutCancel(w.T.Context()), binding) })
	all := []user{{name: "admin", kubeconfig: w.kubeconfig}}
	for kind, name := range map[string]string{"viewer": viewer, "reader": reader, "nobody": nobody} {
		kubeconfig, err := cp.NewKubeconfig(name)
		if err != nil {
			w.T.Fatal(err)
		}
		all = append(all, user{name: kind, kubeconfig: kubeconfig})
	}
	w.EventuallySucceeds(func(g gomega.Gomega) {
		for _, name := range []string{viewer, reader} {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: name,
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: w.Namespace, Verb: "list", Group: operatorsv1alpha1.GroupName, Resource: "subscriptions",
				},
			}}
			g.Expect(w.Client.Create(w.T.Context(), review)).To(gomega.Succeed())
			g.Expect(review.Status.Allowed).To(gomega.BeTrue(), "%s may list Subscriptions", name)
		}
	})
	return all
}
