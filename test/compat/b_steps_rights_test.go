package compat_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
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

// agent creates ServiceAccount agent with rights in the namespace, and returns its Role.
func (y *yard) agent(rules ...rbacv1.PolicyRule) *rbacv1.Role {
	y.t.Helper()
	meta := metav1.ObjectMeta{Namespace: y.Namespace, Name: "agent"}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: rules}
	y.Make(&corev1.ServiceAccount{ObjectMeta: meta}, role, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacGroup, Kind: "Role", Name: "agent"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "agent", Namespace: y.Namespace}},
	})
	return role
}

// useAgent makes the OperatorGroup name ServiceAccount agent.
func (y *yard) useAgent() {
	y.t.Helper()
	group := &operatorsv1.OperatorGroup{}
	if err := y.Get(y.t.Context(), client.ObjectKey{Namespace: y.Namespace, Name: "group"}, group); err != nil {
		y.t.Fatal(err)
	}
	base := group.DeepCopy()
	group.Spec.ServiceAccountName = "agent"
	if err := y.Patch(y.t.Context(), group, client.MergeFrom(base)); err != nil {
		y.t.Fatal(err)
	}
	y.Eventually(compattest.Patience, func() string {
		if left := y.Read(group); left != "" {
			return left
		}
		if group.Status.ServiceAccountRef == nil {
			return "the OperatorGroup has no reference to its account"
		}
		return ""
	})
}

// grant adds a rule to a Role.
func (y *yard) grant(role *rbacv1.Role, rule rbacv1.PolicyRule) {
	y.t.Helper()
	base := role.DeepCopy()
	role.Rules = append(role.Rules, rule)
	if err := y.Patch(y.t.Context(), role, client.MergeFrom(base)); err != nil {
		y.t.Fatal(err)
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
		y := newYard(t, c)
		y.shopDefinition("lanterns", "Lantern", "Namespaced")
		role := y.agent(ruleFor("", "configmaps", "get"))
		y.useAgent()
		lantern := yardKind{"Lantern", "shop.example", "v1", true, func(*yard) map[string]any { return nil }}
		p := y.plan("by-hand", y.step(lantern, y.hook(lantern)))
		y.retrying(p, "forbidden")
		pause.For(t.Context(), compattest.RetryWindow())
		y.retrying(p, "forbidden")
		if left := lacks(p.Annotations["chandlery.dev/cause"], "grant ServiceAccount "+y.Namespace+"/agent"); left != "" {
			t.Error(left)
		}
		y.grant(role, ruleFor("shop.example", "lanterns", "get", "create", "update"))
		y.complete(p)
	})
	compattest.Check(t, "B44", func(t *testing.T, c *compattest.Cluster) {
		y := newYard(t, c)
		role := y.agent(ruleFor("", "configmaps", "get"))
		y.useAgent()
		p := y.plan("by-hand", y.step(definition, y.hook(definition)), y.step(service, y.hook(service)))
		y.retrying(p, "forbidden")
		y.read(definition)
		y.grant(role, allOfServices)
		y.complete(p)
	})
	compattest.Check(t, "B51", func(t *testing.T, c *compattest.Cluster) {
		y := newYard(t, c)
		y.monitorDefinition()
		y.agent(ruleFor("monitoring.coreos.com", "servicemonitors", "get", "create", "update"))
		y.useAgent()
		interval := ""
		monitor := yardKind{"ServiceMonitor", "monitoring.coreos.com", "v1", true, func(*yard) map[string]any {
			return map[string]any{"spec": map[string]any{"endpoints": []any{map[string]any{"interval": interval}}}}
		}}
		for _, interval = range []string{"10s", "20s"} {
			y.completeWithin(compattest.Patience, y.plan("with-"+interval, y.step(monitor, y.hook(monitor))))
			endpoints, _, _ := unstructured.NestedSlice(y.read(monitor).Object, "spec", "endpoints")
			if got := endpoints[0].(map[string]any)["interval"]; got != interval { //nolint:forcetypeassert // the content sets it
				t.Errorf("the interval is %v, want %s", got, interval)
			}
		}
	})
	compattest.Check(t, "B52", func(t *testing.T, c *compattest.Cluster) {
		y := newYard(t, c)
		y.agent(ruleFor("", "configmaps", "get"))
		y.useAgent()
		y.retrying(y.plan("by-hand", y.step(service, y.hook(service))), `cannot create resource "services" in API group ""`)
	})
	compattest.Check(t, "B53", func(t *testing.T, c *compattest.Cluster) {
		y := newYard(t, c)
		role := y.agent(ruleFor("", "configmaps", "get"))
		p := &operatorsv1alpha1.InstallPlan{
			ObjectMeta: metav1.ObjectMeta{Namespace: y.Namespace, Name: "by-hand"},
			Spec:       operatorsv1alpha1.InstallPlanSpec{Approval: operatorsv1alpha1.ApprovalAutomatic, Approved: true, ClusterServiceVersionNames: []string{}},
		}
		y.Make(p)
		p.Status = operatorsv1alpha1.InstallPlanStatus{
			Phase: operatorsv1alpha1.InstallPlanPhaseInstalling, CatalogSources: []string{}, Plan: []*operatorsv1alpha1.Step{y.step(service, y.hook(service))},
			AttenuatedServiceAccountRef: &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: y.Namespace, Name: "agent"},
		}
		if err := y.Status().Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		y.retrying(p, "forbidden", "agent")
		y.absent(y.object(service))
		y.grant(role, allOfServices)
		y.complete(p)
		if ref := p.Status.AttenuatedServiceAccountRef; ref == nil || ref.Name != "agent" {
			t.Errorf("status.attenuatedServiceAccountRef is %+v", ref)
		}
	})
}

// monitorDefinition creates the CustomResourceDefinition of ServiceMonitors. Several cases share it.
func (y *yard) monitorDefinition() {
	y.t.Helper()
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
	if err := y.Create(y.t.Context(), crd); err != nil && !apierrors.IsAlreadyExists(err) {
		y.t.Fatal(err)
	}
}

// TestStepsRefused checks steps that the manager refuses or passes over.
func TestStepsRefused(t *testing.T) {
	t.Parallel()
	k := kindNamed("ConfigMap")
	compattest.Check(t, "B45", func(t *testing.T, c *compattest.Cluster) {
		y := newYard(t, c)
		role := kindNamed("Role")
		misnamed := y.step(role, y.hook(role), func(s *operatorsv1alpha1.Step) { s.Resource.Name = "other" })
		y.refuses(y.plan("by-hand", y.step(k, y.hook(k)), misnamed), "other", "hook")
		y.absent(y.object(k))
	})
	compattest.Check(t, "B46", func(t *testing.T, c *compattest.Cluster) {
		y := newYard(t, c)
		y.complete(y.plan("by-hand", y.step(k, nil, func(s *operatorsv1alpha1.Step) {
			s.Status, s.Resource.Manifest = operatorsv1alpha1.StepStatusPresent, "no manifest"
		})))
		y.absent(y.object(k))
	})
	compattest.Check(t, "B47", func(t *testing.T, c *compattest.Cluster) {
		y := newYard(t, c)
		y.complete(y.plan("by-hand", y.step(k, y.hook(k), func(s *operatorsv1alpha1.Step) { s.Status = "" })))
		y.read(k)
	})
	compattest.Check(t, "B48", func(t *testing.T, c *compattest.Cluster) {
		y := newYard(t, c)
		p := &operatorsv1alpha1.InstallPlan{
			ObjectMeta: metav1.ObjectMeta{Namespace: y.Namespace, Name: "by-hand"},
			Spec:       operatorsv1alpha1.InstallPlanSpec{Approval: operatorsv1alpha1.ApprovalAutomatic, Approved: true, ClusterServiceVersionNames: []string{}},
		}
		y.Make(p)
		y.AtRest(20*time.Second, p)
		if p.Status.Phase != "" || len(p.Status.Conditions) > 0 {
			t.Errorf("the status of the empty plan is %s", y.Manifest(p.Status))
		}
		p.Status = operatorsv1alpha1.InstallPlanStatus{Phase: operatorsv1alpha1.InstallPlanPhaseInstalling, CatalogSources: []string{}, Plan: []*operatorsv1alpha1.Step{y.step(k, y.hook(k))}}
		if err := y.Status().Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		y.complete(p)
	})
	compattest.Check(t, "B49", func(t *testing.T, c *compattest.Cluster) {
		y := newYard(t, c)
		p := y.plan("by-hand", y.step(k, y.hook(k), func(s *operatorsv1alpha1.Step) { s.Resource.Name = "other" }))
		y.refuses(p, "other", "hook")
		y.absent(y.object(k))
	})
	compattest.Check(t, "B50", func(t *testing.T, c *compattest.Cluster) {
		y, k := newYard(t, c), kindNamed("Service")
		manifest := y.hook(k)
		spec := manifest["spec"].(map[string]any) //nolint:forcetypeassert // hook sets it
		spec["clusterIP"], spec["sessionAffinity"] = "None", "ClientIP"
		p := y.plan("by-hand", y.step(k, manifest))
		y.complete(p)
		var found []corev1.Event
		y.Eventually(compattest.Patience, func() string {
			found = slices.DeleteFunc(y.Events(p), func(e corev1.Event) bool { return e.Reason != "AppliedWithWarnings" })
			if len(found) == 0 {
				return "the plan has no Event AppliedWithWarnings"
			}
			return ""
		})
		const begin = `1 warning(s) generated during installation of operator "crane.v1" (Service "hook"): `
		if e := found[0]; len(found) != 1 || e.InvolvedObject.FieldPath != "status.plan[0]" || e.Type != corev1.EventTypeWarning || !strings.HasPrefix(e.Message, begin) {
			t.Errorf("the Events are %s", y.Manifest(found))
		}
	})
	compattest.Check(t, "B54", func(t *testing.T, c *compattest.Cluster) {
		y, k := newYard(t, c), kindNamed("Subscription")
		y.complete(y.plan("by-hand", y.step(k, y.hook(k))))
		if got := y.read(k).GetAnnotations()["olm.generated-by"]; got != "by-hand" {
			t.Errorf("olm.generated-by is %q", got)
		}
	})
}
