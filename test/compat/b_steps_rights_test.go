package compat_test

import (
	"slices"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/pause"
)

// installerAccount is ServiceAccount installer with permissions in the namespace of a case.
type installerAccount struct {
	*compattest.Cluster

	t    *testing.T
	role *rbacv1.Role
}

// newInstallerAccount creates the ServiceAccount with a Role that has some rules.
func newInstallerAccount(t *testing.T, c *compattest.Cluster, rules ...rbacv1.PolicyRule) *installerAccount {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: c.Namespace, Name: "installer"}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: rules}
	c.Make(&corev1.ServiceAccount{ObjectMeta: meta}, role, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacGroup, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: meta.Name, Namespace: c.Namespace}},
	})
	return &installerAccount{c, t, role}
}

// use makes the OperatorGroup name the ServiceAccount.
func (a *installerAccount) use() {
	a.t.Helper()
	group := ownGroup(a.Cluster)
	mergePatch(a.t, a.Cluster, group, `{"spec":{"serviceAccountName":"installer"}}`)
	a.Eventually(compattest.Patience, func() string {
		if left := a.Read(group); left != "" {
			return left
		}
		if group.Status.ServiceAccountRef == nil {
			return "the OperatorGroup has no reference to its account"
		}
		return ""
	})
}

// grant adds a rule to the Role.
func (a *installerAccount) grant(rule rbacv1.PolicyRule) {
	a.t.Helper()
	base := a.role.DeepCopy()
	a.role.Rules = append(a.role.Rules, rule)
	if err := a.Patch(a.t.Context(), a.role, client.MergeFrom(base)); err != nil {
		a.t.Fatal(err)
	}
}

func ruleFor(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// TestStepsWithAccounts checks with whose rights steps are applied.
func TestStepsWithAccounts(t *testing.T) {
	t.Parallel()
	service, definition := kindNamed("Service"), kindNamed("CustomResourceDefinition")
	allOfServices := ruleFor("", "services", "get", "create", "update")
	compattest.Check(t, "B43", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		makeShopCRD(f.Cluster, "lanterns", "Lantern", "Namespaced")
		account := newInstallerAccount(t, f.Cluster, ruleFor("", "configmaps", "get"))
		account.use()
		lantern := stepKind{"Lantern", "shop.example", "v1", true, func(*stepObjects) map[string]any { return nil }}
		p := f.plan("by-hand", f.step(lantern, f.manifestOf(lantern)))
		neverFailed := f.neverFails(p)
		f.retrying(p, "forbidden")
		pause.For(t.Context(), compattest.RetryWindow())
		f.retrying(p, "forbidden")
		if left := lacks(p.Annotations["chandlery.dev/cause"], "grant ServiceAccount "+f.Namespace+"/installer"); left != "" {
			t.Error(left)
		}
		account.grant(ruleFor("shop.example", "lanterns", "get", "create", "update"))
		f.completes(p)
		neverFailed()
	})
	compattest.Check(t, "B44", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		account := newInstallerAccount(t, f.Cluster, ruleFor("", "configmaps", "get"))
		account.use()
		p := f.plan("by-hand", f.step(definition, f.manifestOf(definition)), f.step(service, f.manifestOf(service)))
		f.retrying(p, "forbidden")
		f.read(definition)
		account.grant(allOfServices)
		f.completeWithin(soon(), time.Now(), p)
	})
	compattest.Check(t, "B51", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		makeServiceMonitorCRD(t, f.Cluster)
		account := newInstallerAccount(t, f.Cluster, ruleFor("monitoring.coreos.com", "servicemonitors", "get", "create", "update"))
		account.use()
		interval := ""
		monitor := stepKind{"ServiceMonitor", "monitoring.coreos.com", "v1", true, func(*stepObjects) map[string]any {
			return map[string]any{"spec": map[string]any{"endpoints": []any{map[string]any{"interval": interval}}}}
		}}
		for _, interval = range []string{"10s", "20s"} {
			f.completes(f.plan("with-"+interval, f.step(monitor, f.manifestOf(monitor))))
			endpoints, _, _ := unstructured.NestedSlice(f.read(monitor).Object, "spec", "endpoints")
			if got := endpoints[0].(map[string]any)["interval"]; got != interval { //nolint:forcetypeassert // the content sets it
				t.Errorf("the interval is %v, want %s", got, interval)
			}
		}
	})
	compattest.Check(t, "B52", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		account := newInstallerAccount(t, f.Cluster, ruleFor("", "configmaps", "get"))
		account.use()
		f.retrying(f.plan("by-hand", f.step(service, f.manifestOf(service))), `cannot create resource "services" in API group ""`)
	})
	compattest.Check(t, "B53", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		account := newInstallerAccount(t, f.Cluster, ruleFor("", "configmaps", "get"))
		p := &operatorsv1alpha1.InstallPlan{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "by-hand"},
			Spec:       operatorsv1alpha1.InstallPlanSpec{Approval: operatorsv1alpha1.ApprovalAutomatic, Approved: true, ClusterServiceVersionNames: []string{}},
		}
		f.Make(p)
		p.Status = operatorsv1alpha1.InstallPlanStatus{
			Phase: operatorsv1alpha1.InstallPlanPhaseInstalling, CatalogSources: []string{}, Plan: []*operatorsv1alpha1.Step{f.step(service, f.manifestOf(service))},
			AttenuatedServiceAccountRef: &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: f.Namespace, Name: "installer"},
		}
		if err := f.Status().Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		f.retrying(p, "forbidden", "installer")
		f.absent(f.objectOf(service))
		account.grant(allOfServices)
		f.completes(p)
		if ref := p.Status.AttenuatedServiceAccountRef; ref == nil || ref.Name != "installer" {
			t.Errorf("status.attenuatedServiceAccountRef is %+v", ref)
		}
	})
}

// makeServiceMonitorCRD creates the CustomResourceDefinition of ServiceMonitors. Several cases share it.
func makeServiceMonitorCRD(t *testing.T, c *compattest.Cluster) {
	t.Helper()
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "servicemonitors.monitoring.coreos.com"},
		"spec": map[string]any{
			"group": "monitoring.coreos.com", "scope": "Namespaced",
			"names": map[string]any{"plural": "servicemonitors", "singular": "servicemonitor", "kind": "ServiceMonitor", "listKind": "ServiceMonitorList"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "x-kubernetes-preserve-unknown-fields": true,
			}}}},
		},
	}}
	if err := c.Create(t.Context(), crd); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// TestStepsRefused checks steps that the manager refuses or passes over.
func TestStepsRefused(t *testing.T) {
	t.Parallel()
	k := kindNamed("ConfigMap")
	compattest.Check(t, "B45", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		role := kindNamed("Role")
		misnamed := f.step(role, f.manifestOf(role), func(s *operatorsv1alpha1.Step) { s.Resource.Name = "other" })
		f.refuses(f.plan("by-hand", f.step(k, f.manifestOf(k)), misnamed), "other", "hook")
		f.absent(f.objectOf(k))
	})
	compattest.Check(t, "B46", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		f.complete(f.plan("by-hand", f.step(k, nil, func(s *operatorsv1alpha1.Step) {
			s.Status, s.Resource.Manifest = operatorsv1alpha1.StepStatusPresent, "no manifest"
		})))
		f.absent(f.objectOf(k))
	})
	compattest.Check(t, "B47", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		f.complete(f.plan("by-hand", f.step(k, f.manifestOf(k), func(s *operatorsv1alpha1.Step) { s.Status = "" })))
		f.read(k)
	})
	compattest.Check(t, "B48", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		p := &operatorsv1alpha1.InstallPlan{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "by-hand"},
			Spec:       operatorsv1alpha1.InstallPlanSpec{Approval: operatorsv1alpha1.ApprovalAutomatic, Approved: true, ClusterServiceVersionNames: []string{}},
		}
		f.Make(p)
		f.AtRest(time.Minute, p)
		if p.Status.Phase != "" || len(p.Status.Conditions) > 0 {
			t.Errorf("the status of the empty plan is %s", f.Manifest(p.Status))
		}
		p.Status = operatorsv1alpha1.InstallPlanStatus{Phase: operatorsv1alpha1.InstallPlanPhaseInstalling, CatalogSources: []string{}, Plan: []*operatorsv1alpha1.Step{f.step(k, f.manifestOf(k))}}
		if err := f.Status().Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		f.completeWithin(soon(), time.Now(), p)
	})
	compattest.Check(t, "B49", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		p := f.plan("by-hand", f.step(k, f.manifestOf(k), func(s *operatorsv1alpha1.Step) { s.Resource.Name = "other" }))
		f.refuses(p, "other", "hook")
		f.absent(f.objectOf(k))
	})
	compattest.Check(t, "B50", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		p := f.planWithWarning()
		var found []corev1.Event
		f.Eventually(compattest.Patience, func() string {
			found = slices.DeleteFunc(f.Events(p), func(e corev1.Event) bool { return e.Reason != "AppliedWithWarnings" })
			if len(found) == 0 {
				return "the plan has no Event AppliedWithWarnings"
			}
			return ""
		})
		const note = `1 warning(s) generated during installation of operator "crane.v1" (Service "hook"): ` + headlessWarning
		if e := found[0]; len(found) != 1 || e.Count > 1 || e.InvolvedObject.FieldPath != "status.plan[0]" || e.Type != corev1.EventTypeWarning || e.Message != note {
			t.Errorf("the Events are %s", f.Manifest(found))
		}
	})
	compattest.Check(t, "B54", func(t *testing.T, c *compattest.Cluster) {
		f, k := newPlanFixture(t, c), kindNamed("Subscription")
		f.complete(f.plan("by-hand", f.step(k, f.manifestOf(k))))
		if got := f.read(k).GetAnnotations()["olm.generated-by"]; got != "by-hand" {
			t.Errorf("olm.generated-by is %q", got)
		}
	})
	checkBundle(t, "B54-Bundle", func(t *testing.T, b *bundleFixture) {
		k := kindNamed("Subscription")
		p := b.planOf(b.subscribe(b.entry("mill.v1", "1.0.0", b.bundleCSV("mill.v1"), b.object(k.step))))
		f := b.planFixture()
		f.refuses(p, "the InstallPlan contains invalid data", "Subscription", "hook")
		f.absent(f.objectOf(k))
	})
}

// headlessWarning is the warning of the API server about the Service of planWithWarning.
const headlessWarning = "spec.SessionAffinity is ignored for headless services"

// planWithWarning returns a complete plan. The API server answers its step with a warning.
func (f *planFixture) planWithWarning() *operatorsv1alpha1.InstallPlan {
	f.t.Helper()
	k := kindNamed("Service")
	p := f.plan("by-hand", f.step(k, field(field(f.manifestOf(k), "None", "spec", "clusterIP"), "ClientIP", "spec", "sessionAffinity")))
	f.complete(p)
	return p
}

// testWarningMetric counts the steps with a warning. No other case may run beside it.
func testWarningMetric(t *testing.T, c *compattest.Cluster) {
	t.Helper()
	const metric = "installplan_warnings_total"
	before := compattest.Metric(t, metric)
	f := newPlanFixture(t, c)
	p := f.planWithWarning()
	f.AtRest(2*time.Second, p)
	if added := compattest.Metric(t, metric) - before; added != 1 {
		t.Errorf("%s rose by %v, want 1", metric, added)
	}
}
