package compat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/pause"
)

// soon bounds what takes less than five seconds on an idle machine. OLM is slower.
func soon() time.Duration { return compattest.RetryWindow() }

// yard is the namespace of one case, with ClusterServiceVersion crane.v1.
type yard struct {
	*compattest.Cluster

	t     *testing.T
	crane *operatorsv1alpha1.ClusterServiceVersion
}

func newYard(t *testing.T, c *compattest.Cluster) *yard {
	t.Helper()
	y := &yard{Cluster: c, t: t, crane: c.CSV("crane.v1")}
	c.Make(y.crane)
	return y
}

// yardKind is a kind of objects in steps.
type yardKind struct {
	// step is the kind in the step.
	step, group, version string
	namespaced           bool
	content              func(y *yard) map[string]any
}

func (k yardKind) gvk() schema.GroupVersionKind {
	kind := k.step
	if kind == "BundleSecret" {
		kind = "Secret"
	}
	return schema.GroupVersionKind{Group: k.group, Version: k.version, Kind: kind}
}

const rbacGroup = "rbac.authorization.k8s.io"

// yardKinds are the kinds that OLM decodes into Go types.
func yardKinds() []yardKind {
	rules := func(*yard) map[string]any {
		return map[string]any{"rules": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get"}}}}
	}
	binding := func(kind string) func(y *yard) map[string]any {
		return func(y *yard) map[string]any {
			return map[string]any{
				"roleRef":  map[string]any{"apiGroup": rbacGroup, "kind": kind, "name": "view"},
				"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "default", "namespace": y.Namespace}},
			}
		}
	}
	return []yardKind{
		{"ServiceAccount", "", "v1", true, func(*yard) map[string]any { return nil }},
		{"Role", rbacGroup, "v1", true, rules},
		{"RoleBinding", rbacGroup, "v1", true, binding("Role")},
		{"ClusterRole", rbacGroup, "v1", false, rules},
		{"ClusterRoleBinding", rbacGroup, "v1", false, binding("ClusterRole")},
		{"Service", "", "v1", true, func(*yard) map[string]any {
			return map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}}
		}},
		{"ConfigMap", "", "v1", true, func(*yard) map[string]any { return map[string]any{"data": map[string]any{"a": "b"}} }},
		{"BundleSecret", "", "v1", true, func(*yard) map[string]any { return map[string]any{"stringData": map[string]any{"a": "b"}} }},
		{"ClusterServiceVersion", "operators.coreos.com", "v1alpha1", true, func(y *yard) map[string]any {
			var csv map[string]any
			if err := json.Unmarshal([]byte(y.Manifest(y.CSV("hook.v1"))), &csv); err != nil {
				y.t.Fatal(err)
			}
			return map[string]any{"spec": csv["spec"]}
		}},
		{"Subscription", "operators.coreos.com", "v1alpha1", true, func(y *yard) map[string]any {
			return map[string]any{"spec": map[string]any{"name": "hook", "channel": "stable", "source": "absent", "sourceNamespace": y.Namespace}}
		}},
		{"CustomResourceDefinition", "apiextensions.k8s.io", "v1", false, func(y *yard) map[string]any { return yardDefinition(y.hookPlural()) }},
	}
}

// yardDefinition returns the content of a namespaced CustomResourceDefinition of group yard.example.
func yardDefinition(plural string) map[string]any {
	kind := strings.ToUpper(plural[:1]) + plural[1:]
	return map[string]any{"spec": map[string]any{
		"group": "yard.example", "scope": "Namespaced",
		"names": map[string]any{"plural": plural, "singular": plural, "kind": kind, "listKind": kind + "List"},
		"versions": []any{map[string]any{
			"name": "v1", "served": true, "storage": true,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"type": "string"}}}},
			}},
		}},
	}}
}

// kindNamed returns a kind by its name in steps.
func kindNamed(name string) yardKind {
	kinds := yardKinds()
	return kinds[slices.IndexFunc(kinds, func(k yardKind) bool { return k.step == name })]
}

// hookPlural is the plural of the case's definition.
func (y *yard) hookPlural() string { return "h" + strings.ReplaceAll(y.Namespace, "-", "") }

// hookName is the name of the object of a step.
func (y *yard) hookName(k yardKind) string {
	switch {
	case k.step == "CustomResourceDefinition":
		return y.hookPlural() + ".yard.example"
	case !k.namespaced:
		return "hook-" + y.Namespace
	case k.step == "ClusterServiceVersion":
		return "hook.v1"
	default:
		return "hook"
	}
}

// hook returns the complete manifest of a kind.
func (y *yard) hook(k yardKind) map[string]any {
	gvk := k.gvk()
	m := map[string]any{"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind, "metadata": map[string]any{"name": y.hookName(k)}}
	maps.Copy(m, k.content(y))
	return m
}

// step returns a complete step for a manifest. Changes make it incomplete.
func (y *yard) step(k yardKind, manifest map[string]any, change ...func(*operatorsv1alpha1.Step)) *operatorsv1alpha1.Step {
	s := &operatorsv1alpha1.Step{
		Resolving: y.crane.Name, Status: operatorsv1alpha1.StepStatusUnknown,
		Resource: operatorsv1alpha1.StepResource{
			Group: k.group, Version: k.version, Kind: k.step, Name: y.hookName(k), Manifest: y.Manifest(manifest),
		},
	}
	for _, f := range change {
		f(s)
	}
	return s
}

// withoutGroup removes the group of a step.
func withoutGroup(s *operatorsv1alpha1.Step) { s.Resource.Group = "" }

// unresolved removes the owner of a step.
func unresolved(s *operatorsv1alpha1.Step) { s.Resolving = "" }

// plan creates a plan, and deletes the cluster-scoped objects of its steps at the end.
func (y *yard) plan(name string, steps ...*operatorsv1alpha1.Step) *operatorsv1alpha1.InstallPlan {
	y.t.Helper()
	csvs := []string{}
	for _, s := range steps {
		switch s.Resource.Kind {
		case "ClusterServiceVersion":
			csvs = append(csvs, s.Resource.Name)
		case "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition":
			y.deleteAtEnd(y.object(kindNamed(s.Resource.Kind)))
		}
	}
	return y.Plan(name, csvs, steps...)
}

// deleteAtEnd deletes an object at the end of the case.
func (y *yard) deleteAtEnd(o client.Object) {
	y.t.Cleanup(func() { _ = y.Delete(context.WithoutCancel(y.t.Context()), o) })
}

// object returns the empty object of a step, to be read.
func (y *yard) object(k yardKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(k.gvk())
	u.SetName(y.hookName(k))
	if k.namespaced {
		u.SetNamespace(y.Namespace)
	}
	return u
}

// read reads the object of a step.
func (y *yard) read(k yardKind) *unstructured.Unstructured {
	y.t.Helper()
	u := y.object(k)
	if left := y.Read(u); left != "" {
		y.t.Fatal(left)
	}
	return u
}

// complete waits until a plan is complete.
func (y *yard) complete(p *operatorsv1alpha1.InstallPlan) {
	y.t.Helper()
	y.completeWithin(soon(), p)
}

func (y *yard) completeWithin(limit time.Duration, p *operatorsv1alpha1.InstallPlan) {
	y.t.Helper()
	y.Eventually(limit, func() string {
		if left := y.Read(p); left != "" {
			return left
		}
		if p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseComplete {
			return fmt.Sprintf("InstallPlan %s is in phase %q: %s", p.Name, p.Status.Phase, p.Status.Message)
		}
		return ""
	})
	for _, s := range p.Status.Plan {
		if s.Status != operatorsv1alpha1.StepStatusCreated && s.Status != operatorsv1alpha1.StepStatusPresent {
			y.t.Errorf("step %s %s has the status %q", s.Resource.Kind, s.Resource.Name, s.Status)
		}
	}
}

// retrying waits until a step is retried whose error contains texts.
func (y *yard) retrying(p *operatorsv1alpha1.InstallPlan, texts ...string) {
	y.t.Helper()
	y.Eventually(soon(), func() string {
		if left := y.Read(p); left != "" {
			return left
		}
		if p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseInstalling {
			return fmt.Sprintf("InstallPlan %s is in phase %q: %s", p.Name, p.Status.Phase, p.Status.Message)
		}
		return lacks(p.Status.Message, append(texts, "retrying execution due to error: ")...)
	})
}

// fails waits until a plan fails with texts in its message and in its condition.
func (y *yard) fails(limit time.Duration, p *operatorsv1alpha1.InstallPlan, texts ...string) {
	y.t.Helper()
	y.Eventually(limit, func() string {
		if left := y.Read(p); left != "" {
			return left
		}
		if p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseFailed {
			return fmt.Sprintf("InstallPlan %s is in phase %q: %s", p.Name, p.Status.Phase, p.Status.Message)
		}
		return ""
	})
	condition := p.Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled)
	if condition.Status != "False" || condition.Reason != operatorsv1alpha1.InstallPlanReasonComponentFailed {
		y.t.Errorf("the condition Installed is %+v", condition)
	}
	for _, message := range []string{p.Status.Message, condition.Message} {
		if left := lacks(message, texts...); left != "" {
			y.t.Error(left)
		}
	}
}

// failedAfter returns how long after its start a plan failed.
func failedAfter(p *operatorsv1alpha1.InstallPlan) time.Duration {
	return p.Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled).LastTransitionTime.Sub(p.Status.StartTime.Time)
}

// refuses waits until a plan fails without a retry.
func (y *yard) refuses(p *operatorsv1alpha1.InstallPlan, texts ...string) {
	y.t.Helper()
	y.fails(soon(), p, texts...)
	if after := failedAfter(p); after > compattest.RetryWindow()/2 {
		y.t.Errorf("InstallPlan %s failed %s after its start", p.Name, after)
	}
}

// lacks returns a text if a message lacks one of some texts.
func lacks(message string, texts ...string) string {
	for _, text := range texts {
		if !strings.Contains(message, text) {
			return fmt.Sprintf("the message %q lacks %q", message, text)
		}
	}
	return ""
}

// absent fails if an object exists.
func (y *yard) absent(o client.Object) {
	y.t.Helper()
	if y.Read(o) == "" {
		y.t.Errorf("%T %s exists", o, client.ObjectKeyFromObject(o))
	}
}

// ownersOf returns the kinds, names and UIDs of the owners of an object, sorted.
func ownersOf(o client.Object) []string {
	var list []string
	for _, ref := range o.GetOwnerReferences() {
		list = append(list, fmt.Sprintf("%s %s %s", ref.Kind, ref.Name, ref.UID))
	}
	slices.Sort(list)
	return list
}

// ownedBy fails unless exactly some ClusterServiceVersions own an object.
func (y *yard) ownedBy(o client.Object, csvs ...*operatorsv1alpha1.ClusterServiceVersion) {
	y.t.Helper()
	want := []string{}
	for _, csv := range csvs {
		want = append(want, fmt.Sprintf("ClusterServiceVersion %s %s", csv.Name, csv.UID))
	}
	slices.Sort(want)
	if got := ownersOf(o); !slices.Equal(got, want) {
		y.t.Errorf("the owners of %s are %q, want %q", o.GetName(), got, want)
	}
}

// ownerReference returns an owner reference of a manifest.
func ownerReference(csv, uid string) map[string]any {
	ref := map[string]any{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "name": csv}
	if uid != "" {
		ref["uid"] = uid
	}
	return ref
}

// setMetadata sets a field of the metadata of a manifest.
func setMetadata(manifest map[string]any, field string, value any) map[string]any {
	manifest["metadata"].(map[string]any)[field] = value //nolint:forcetypeassert // hook sets it
	return manifest
}

// withoutType removes apiVersion and kind from a manifest. OLM needs the version of a definition.
func withoutType(k yardKind, manifest map[string]any) map[string]any {
	delete(manifest, "kind")
	delete(manifest, "apiVersion")
	if k.step == "CustomResourceDefinition" {
		manifest["apiVersion"] = "v1"
	}
	return manifest
}

// TestSteps checks steps that lack something, by kind.
func TestSteps(t *testing.T) {
	t.Parallel()
	made := func(y *yard, k yardKind, manifest map[string]any) {
		p := y.plan("by-hand", y.step(k, manifest, withoutGroup))
		y.complete(p)
		if got := y.read(k).GetLabels()["olm.managed"]; got != "true" {
			t.Errorf("olm.managed is %q", got)
		}
		if s := p.Status.Plan[0].Status; s != operatorsv1alpha1.StepStatusCreated {
			t.Errorf("the step has the status %s", s)
		}
	}
	for i, k := range yardKinds() {
		compattest.Check(t, fmt.Sprintf("B%d", i+1), func(t *testing.T, c *compattest.Cluster) {
			y := newYard(t, c)
			made(y, k, y.hook(k))
		})
		compattest.Check(t, fmt.Sprintf("B%d", i+12), func(t *testing.T, c *compattest.Cluster) {
			y := newYard(t, c)
			made(y, k, withoutType(k, y.hook(k)))
		})
		if !k.namespaced {
			continue
		}
		compattest.Check(t, "B27-"+k.step, func(t *testing.T, c *compattest.Cluster) {
			y := newYard(t, c)
			elsewhere := y.NewNamespace()
			y.complete(y.plan("by-hand", y.step(k, setMetadata(y.hook(k), "namespace", elsewhere))))
			y.read(k)
			other := y.object(k)
			other.SetNamespace(elsewhere)
			y.absent(other)
		})
	}
	compattest.Check(t, "B28", func(t *testing.T, c *compattest.Cluster) {
		y, k := newYard(t, c), kindNamed("ClusterRole")
		y.complete(y.plan("by-hand", y.step(k, setMetadata(y.hook(k), "namespace", y.Namespace))))
		if ns := y.read(k).GetNamespace(); ns != "" {
			t.Errorf("the namespace of the ClusterRole is %s", ns)
		}
	})
}

// budgets is a kind that OLM does not decode.
func budgets() yardKind {
	return yardKind{"PodDisruptionBudget", "policy", "v1", true, func(*yard) map[string]any {
		return map[string]any{"spec": map[string]any{"minAvailable": int64(1), "selector": map[string]any{"matchLabels": map[string]any{"app": "hook"}}}}
	}}
}

// TestStepsOfOtherKinds checks steps whose kind OLM does not decode into a Go type.
func TestStepsOfOtherKinds(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "B23", func(t *testing.T, c *compattest.Cluster) {
		y, k := newYard(t, c), budgets()
		y.complete(y.plan("by-hand", y.step(k, y.hook(k), withoutGroup)))
		y.ownedBy(y.read(k), y.crane)
	})
	compattest.Check(t, "B24", func(t *testing.T, c *compattest.Cluster) {
		y, k := newYard(t, c), budgets()
		y.complete(y.plan("with-version", y.step(k, withoutType(k, y.hook(k)), withoutGroup)))
		y.read(k)
		p := y.plan("without-version", y.step(k, withoutType(k, y.hook(k)), withoutGroup, func(s *operatorsv1alpha1.Step) { s.Resource.Version = "" }))
		y.refuses(p, "apiVersion", "kind", "PodDisruptionBudget", "hook")
	})
	compattest.Check(t, "B40", func(t *testing.T, c *compattest.Cluster) {
		y := newYard(t, c)
		k := yardKind{"VerticalPodAutoscaler", "gone.example", "v1", true, func(*yard) map[string]any { return map[string]any{"spec": map[string]any{}} }}
		const sentence = "api-server resource not found installing VerticalPodAutoscaler hook: GroupVersionKind gone.example/v1, Kind=VerticalPodAutoscaler not found on the cluster"
		p := y.plan("by-hand", y.step(k, y.hook(k)))
		y.retrying(p, sentence)
		y.fails(retryLimit(), p, sentence)
	})
	compattest.Check(t, "B41", func(t *testing.T, c *compattest.Cluster) {
		y := newYard(t, c)
		k := yardKind{"Gadget", "shop.example", "v1", true, func(*yard) map[string]any { return nil }}
		p := y.plan("by-hand", y.step(k, y.hook(k)))
		y.refuses(p, "Gadget", "--bundle-kind=shop.example/Gadget")
		if s := p.Status.Plan[0].Status; s != operatorsv1alpha1.StepStatusUnsupportedResource {
			t.Errorf("the step has the status %s", s)
		}
	})
	compattest.Check(t, "B42", func(t *testing.T, c *compattest.Cluster) {
		y := newYard(t, c)
		y.shopDefinition("widgets", "Widget", "Namespaced")
		y.shopDefinition("signboards", "Signboard", "Cluster")
		widget := yardKind{"Widget", "shop.example", "v1", true, func(*yard) map[string]any { return nil }}
		sign := yardKind{"Signboard", "shop.example", "v1", false, func(*yard) map[string]any { return nil }}
		y.deleteAtEnd(y.object(sign))
		y.completeWithin(compattest.Patience, y.plan("by-hand", y.step(widget, y.hook(widget)), y.step(sign, y.hook(sign))))
		y.ownedBy(y.read(widget), y.crane)
		labels := y.read(sign).GetLabels()
		if labels["olm.owner"] != "crane.v1" || labels["olm.owner.namespace"] != y.Namespace || labels["olm.owner.kind"] != "ClusterServiceVersion" {
			t.Errorf("the labels of the cluster-scoped object are %v", labels)
		}
		y.Eventually(compattest.Patience, func() string {
			if left := y.Read(y.crane); left != "" {
				return left
			}
			if len(y.crane.Finalizers) == 0 {
				return "the version has no finalizer"
			}
			return ""
		})
		if err := y.Delete(t.Context(), y.crane); err != nil {
			t.Fatal(err)
		}
		y.Gone(compattest.Patience, y.object(sign), y.object(widget))
	})
}

// shopDefinition creates a CustomResourceDefinition of group shop.example, and waits until it is served.
func (y *yard) shopDefinition(plural, kind, scope string) {
	y.t.Helper()
	content := yardDefinition(plural)
	spec := content["spec"].(map[string]any) //nolint:forcetypeassert // yardDefinition sets it
	spec["group"], spec["scope"] = "shop.example", scope
	spec["names"] = map[string]any{"plural": plural, "singular": strings.ToLower(kind), "kind": kind, "listKind": kind + "List"}
	content["apiVersion"], content["kind"] = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
	content["metadata"] = map[string]any{"name": plural + ".shop.example"}
	crd := &unstructured.Unstructured{Object: content}
	y.Make(crd)
	y.Eventually(compattest.Patience, func() string {
		if left := y.Read(crd); left != "" {
			return left
		}
		conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
		for _, c := range conditions {
			if m, ok := c.(map[string]any); ok && m["type"] == "Established" && m["status"] == "True" {
				return ""
			}
		}
		return "CustomResourceDefinition " + crd.GetName() + " is not established"
	})
}

// retryLimit bounds the wait until a plan fails whose step was retried.
func retryLimit() time.Duration {
	return compattest.RetryWindow() + compattest.Patience
}

// TestStepsWithDefinitions checks steps with CustomResourceDefinitions.
func TestStepsWithDefinitions(t *testing.T) {
	t.Parallel()
	k := kindNamed("CustomResourceDefinition")
	odd := func(s *operatorsv1alpha1.Step) { s.Resource.Group, s.Resource.Version = "", "apiextensions.k8s.io/v1" }
	compattest.Check(t, "B25", func(t *testing.T, c *compattest.Cluster) {
		y := newYard(t, c)
		y.complete(y.plan("by-hand", y.step(k, y.hook(k), odd)))
		if got := installedAlongside(y.read(k)); !slices.Equal(got, []string{y.Namespace + "/crane.v1"}) {
			t.Errorf("the definition names the versions %q", got)
		}
	})
	compattest.Check(t, "B26", func(t *testing.T, c *compattest.Cluster) {
		y := newYard(t, c)
		y.complete(y.plan("by-hand", y.step(k, y.hook(k), odd)))
		y.Make(y.CSV("crane.v2", waitingUpdate))
		y.complete(y.plan("second", y.step(k, y.hook(k), odd, func(s *operatorsv1alpha1.Step) { s.Resolving = "crane.v2" })))
		if got := installedAlongside(y.read(k)); !slices.Equal(got, []string{y.Namespace + "/crane.v1", y.Namespace + "/crane.v2"}) {
			t.Errorf("the definition names the versions %q", got)
		}
	})
}

// waitingUpdate makes a version an update of crane.v1. It waits, so that crane.v1 is not deleted.
func waitingUpdate(csv *operatorsv1alpha1.ClusterServiceVersion) {
	csv.Spec.Replaces = "crane.v1"
	csv.Spec.CustomResourceDefinitions.Required = []operatorsv1alpha1.CRDDescription{{Name: "absent.yard.example", Version: "v1", Kind: "Absent"}}
}

// installedAlongside returns the versions that a definition was installed with.
func installedAlongside(crd client.Object) []string {
	var list []string
	for key, value := range crd.GetAnnotations() {
		if strings.HasPrefix(key, "operatorframework.io/installed-alongside-") {
			list = append(list, value)
		}
	}
	slices.Sort(list)
	return list
}

// TestStepsWithOwners checks the owners of the objects of steps.
func TestStepsWithOwners(t *testing.T) {
	t.Parallel()
	k := kindNamed("ConfigMap")
	compattest.Check(t, "B29", func(t *testing.T, c *compattest.Cluster) {
		y := newYard(t, c)
		y.complete(y.plan("by-hand", y.step(k, y.hook(k), unresolved)))
		y.ownedBy(y.read(k))
		if err := y.Delete(t.Context(), y.crane); err != nil {
			t.Fatal(err)
		}
		y.Gone(compattest.Patience, y.crane)
		pause.For(t.Context(), 2*time.Second)
		y.read(k)
	})
	compattest.Check(t, "B30", func(t *testing.T, c *compattest.Cluster) {
		y := newYard(t, c)
		y.complete(y.plan("by-hand", y.step(k, setMetadata(y.hook(k), "ownerReferences", []any{ownerReference("crane.v1", "")}), unresolved)))
		y.ownedBy(y.read(k), y.crane)
		if err := y.Delete(t.Context(), y.crane); err != nil {
			t.Fatal(err)
		}
		y.Gone(compattest.Patience, y.object(k))
	})
	compattest.Check(t, "B31", func(t *testing.T, c *compattest.Cluster) {
		y := newYard(t, c)
		p := y.plan("by-hand", y.step(k, setMetadata(y.hook(k), "ownerReferences", []any{ownerReference("ghost", "")}), unresolved))
		y.retrying(p, "ghost")
		y.fails(retryLimit(), p, "ghost")
	})
	compattest.Check(t, "B32", func(t *testing.T, c *compattest.Cluster) {
		y := newYard(t, c)
		p := y.plan("by-hand", y.step(k, setMetadata(y.hook(k), "ownerReferences", []any{ownerReference("ghost", "")}), unresolved))
		y.retrying(p, "ghost")
		ghost := y.CSV("ghost")
		y.Make(ghost)
		y.complete(p)
		y.ownedBy(y.read(k), ghost)
	})
	compattest.Check(t, "B33", func(t *testing.T, c *compattest.Cluster) {
		y := newYard(t, c)
		refs := []any{ownerReference("crane.v1", "00000000-0000-0000-0000-000000000000")}
		y.complete(y.plan("by-hand", y.step(k, setMetadata(y.hook(k), "ownerReferences", refs), unresolved)))
		y.ownedBy(y.read(k), y.crane)
	})
	compattest.Check(t, "B34", func(t *testing.T, c *compattest.Cluster) {
		y := newYard(t, c)
		other := y.CSV("crane.v2")
		y.Make(other)
		y.complete(y.plan("by-hand", y.step(k, setMetadata(y.hook(k), "ownerReferences", []any{ownerReference("crane.v2", "")}))))
		y.ownedBy(y.read(k), y.crane, other)
	})
	compattest.Check(t, "B35", func(t *testing.T, c *compattest.Cluster) {
		y, k := newYard(t, c), kindNamed("ServiceAccount")
		other := y.CSV("crane.v2", waitingUpdate)
		y.Make(other)
		live := &unstructured.Unstructured{Object: y.hook(k)}
		live.SetNamespace(y.Namespace)
		live.SetAnnotations(map[string]string{"site": "north"})
		live.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Name: y.crane.Name, UID: y.crane.UID}})
		live.Object["secrets"] = []any{map[string]any{"name": "token"}}
		live.Object["imagePullSecrets"] = []any{map[string]any{"name": "pull"}}
		y.Make(live)
		p := y.plan("by-hand", y.step(k, setMetadata(y.hook(k), "ownerReferences", []any{ownerReference("crane.v2", "")}), unresolved))
		y.complete(p)
		after := y.read(k)
		y.ownedBy(after, y.crane, other)
		if after.GetAnnotations()["site"] != "north" || after.Object["secrets"] == nil || after.Object["imagePullSecrets"] == nil {
			t.Errorf("the ServiceAccount lost something: %s", y.Manifest(after))
		}
		if s := p.Status.Plan[0].Status; s != operatorsv1alpha1.StepStatusPresent {
			t.Errorf("the step has the status %s", s)
		}
	})
	for _, name := range []string{"Role", "Service", "ConfigMap"} {
		compattest.Check(t, "B36-"+name, func(t *testing.T, c *compattest.Cluster) {
			y, k := newYard(t, c), kindNamed(name)
			y.complete(y.plan("first", y.step(k, y.hook(k))))
			other := y.CSV("crane.v2", waitingUpdate)
			y.Make(other)
			y.complete(y.plan("second", y.step(k, setMetadata(y.hook(k), "ownerReferences", []any{ownerReference("crane.v2", "")}), unresolved)))
			y.ownedBy(y.read(k), y.crane, other)
		})
	}
	compattest.Check(t, "B37", func(t *testing.T, c *compattest.Cluster) {
		y := newYard(t, c)
		owner := &unstructured.Unstructured{Object: y.hook(kindNamed("ServiceAccount"))}
		owner.SetNamespace(y.Namespace)
		y.Make(owner)
		refs := []any{map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "name": owner.GetName(), "uid": string(owner.GetUID())}}
		y.complete(y.plan("by-hand", y.step(k, setMetadata(y.hook(k), "ownerReferences", refs), unresolved)))
		if got, want := ownersOf(y.read(k)), fmt.Sprintf("ServiceAccount %s %s", owner.GetName(), owner.GetUID()); !slices.Equal(got, []string{want}) {
			t.Errorf("the owners are %q, want %q", got, want)
		}
	})
	compattest.Check(t, "B38", func(t *testing.T, c *compattest.Cluster) {
		y, k := newYard(t, c), kindNamed("Service")
		live := &unstructured.Unstructured{Object: y.hook(k)}
		live.SetNamespace(y.Namespace)
		y.Make(live)
		address, _, _ := unstructured.NestedString(live.Object, "spec", "clusterIP")
		p := y.plan("by-hand", y.step(k, y.hook(k), unresolved))
		y.complete(p)
		if got, _, _ := unstructured.NestedString(y.read(k).Object, "spec", "clusterIP"); got != address || address == "" {
			t.Errorf("the address was %q and is %q", address, got)
		}
		if s := p.Status.Plan[0].Status; s != operatorsv1alpha1.StepStatusPresent {
			t.Errorf("the step has the status %s", s)
		}
	})
	compattest.Check(t, "B39", func(t *testing.T, c *compattest.Cluster) {
		y := newYard(t, c)
		y.complete(y.plan("first", y.step(k, y.hook(k))))
		p := y.plan("second", y.step(k, y.hook(k), unresolved))
		y.fails(retryLimit(), p, "crane.v1")
	})
}
