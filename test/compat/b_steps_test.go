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

// soon bounds what takes a few seconds.
func soon() time.Duration { return compattest.Limit(5*time.Second, compattest.RetryWindow()) }

// stepObjects builds, reads and checks the objects of steps in the namespace of a case.
type stepObjects struct {
	*compattest.Cluster

	t *testing.T
}

// planFixture creates InstallPlans as tools do that write InstallPlans, and waits for their phases.
type planFixture struct {
	stepObjects

	// crane is the ClusterServiceVersion that owns the objects of steps. It is nil if bundles contain the objects.
	crane *operatorsv1alpha1.ClusterServiceVersion
}

// newPlanFixture creates ClusterServiceVersion crane.v1, once the OperatorGroup has its targets. Without them, OLM sets a
// condition of a plan, whose time then stays.
func newPlanFixture(t *testing.T, c *compattest.Cluster) *planFixture {
	t.Helper()
	awaitTargets(c)
	f := &planFixture{stepObjects: stepObjects{c, t}, crane: c.CSV("crane.v1")}
	c.Make(f.crane)
	return f
}

// stepKind is a kind of objects in steps.
type stepKind struct {
	// step is the kind in the step.
	step, group, version string
	namespaced           bool
	content              func(s *stepObjects) map[string]any
}

func (k stepKind) gvk() schema.GroupVersionKind {
	kind := k.step
	if kind == "BundleSecret" {
		kind = "Secret"
	}
	return schema.GroupVersionKind{Group: k.group, Version: k.version, Kind: kind}
}

const rbacGroup = "rbac.authorization.k8s.io"

// typedKinds are the kinds that OLM decodes into Go types.
func typedKinds() []stepKind {
	rules := func(*stepObjects) map[string]any {
		return map[string]any{"rules": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get"}}}}
	}
	binding := func(kind string) func(s *stepObjects) map[string]any {
		return func(s *stepObjects) map[string]any {
			return map[string]any{
				"roleRef":  map[string]any{"apiGroup": rbacGroup, "kind": kind, "name": "view"},
				"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "default", "namespace": s.Namespace}},
			}
		}
	}
	return []stepKind{
		{"ServiceAccount", "", "v1", true, func(*stepObjects) map[string]any { return nil }},
		{"Role", rbacGroup, "v1", true, rules},
		{"RoleBinding", rbacGroup, "v1", true, binding("Role")},
		{"ClusterRole", rbacGroup, "v1", false, rules},
		{"ClusterRoleBinding", rbacGroup, "v1", false, binding("ClusterRole")},
		{"Service", "", "v1", true, func(*stepObjects) map[string]any {
			return map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}}
		}},
		{"ConfigMap", "", "v1", true, func(*stepObjects) map[string]any { return map[string]any{"data": map[string]any{"a": "b"}} }},
		{"BundleSecret", "", "v1", true, func(*stepObjects) map[string]any { return map[string]any{"stringData": map[string]any{"a": "b"}} }},
		{"ClusterServiceVersion", "operators.coreos.com", "v1alpha1", true, func(s *stepObjects) map[string]any {
			var csv map[string]any
			if err := json.Unmarshal([]byte(s.Manifest(s.CSV("hook.v1"))), &csv); err != nil {
				s.t.Fatal(err)
			}
			return map[string]any{"spec": csv["spec"]}
		}},
		{"Subscription", "operators.coreos.com", "v1alpha1", true, func(s *stepObjects) map[string]any {
			return map[string]any{"spec": map[string]any{"name": "hook", "channel": "stable", "source": "absent", "sourceNamespace": s.Namespace}}
		}},
		{"CustomResourceDefinition", "apiextensions.k8s.io", "v1", false, func(s *stepObjects) map[string]any { return namespacedCRD(s.crdPlural()) }},
	}
}

// namespacedCRD returns the content of a namespaced CustomResourceDefinition of group steps.example.
func namespacedCRD(plural string) map[string]any {
	kind := strings.ToUpper(plural[:1]) + plural[1:]
	return map[string]any{"spec": map[string]any{
		"group": "steps.example", "scope": "Namespaced",
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
func kindNamed(name string) stepKind {
	kinds := typedKinds()
	return kinds[slices.IndexFunc(kinds, func(k stepKind) bool { return k.step == name })]
}

// crdPlural returns the plural name in the CustomResourceDefinition of the case.
func (s *stepObjects) crdPlural() string { return "h" + strings.ReplaceAll(s.Namespace, "-", "") }

// nameOf returns the name of the object of a kind.
func (s *stepObjects) nameOf(k stepKind) string {
	switch {
	case k.step == "CustomResourceDefinition":
		return s.crdPlural() + ".steps.example"
	case !k.namespaced:
		return "hook-" + s.Namespace
	case k.step == "ClusterServiceVersion":
		return "hook.v1"
	default:
		return "hook"
	}
}

// manifestOf returns the complete manifest of a kind.
func (s *stepObjects) manifestOf(k stepKind) map[string]any {
	gvk := k.gvk()
	m := map[string]any{"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind, "metadata": map[string]any{"name": s.nameOf(k)}}
	maps.Copy(m, k.content(s))
	return m
}

// step returns a complete step for a manifest. Changes make it incomplete.
func (f *planFixture) step(k stepKind, manifest map[string]any, change ...func(*operatorsv1alpha1.Step)) *operatorsv1alpha1.Step {
	s := &operatorsv1alpha1.Step{
		Resolving: f.crane.Name, Status: operatorsv1alpha1.StepStatusUnknown,
		Resource: operatorsv1alpha1.StepResource{
			Group: k.group, Version: k.version, Kind: k.step, Name: f.nameOf(k), Manifest: f.Manifest(manifest),
		},
	}
	for _, set := range change {
		set(s)
	}
	return s
}

// withoutGroup removes the group of a step.
func withoutGroup(s *operatorsv1alpha1.Step) { s.Resource.Group = "" }

// unresolved removes the owner of a step.
func unresolved(s *operatorsv1alpha1.Step) { s.Resolving = "" }

// plan creates a plan, and deletes the cluster-scoped objects of its steps at the end.
func (f *planFixture) plan(name string, steps ...*operatorsv1alpha1.Step) *operatorsv1alpha1.InstallPlan {
	f.t.Helper()
	csvs := []string{}
	for _, s := range steps {
		switch s.Resource.Kind {
		case "ClusterServiceVersion":
			csvs = append(csvs, s.Resource.Name)
		case "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition":
			f.deleteAtEnd(f.objectOf(kindNamed(s.Resource.Kind)))
		}
	}
	return f.Plan(name, csvs, steps...)
}

// deleteAtEnd deletes an object at the end of the case.
func (s *stepObjects) deleteAtEnd(o client.Object) {
	s.t.Cleanup(func() { _ = s.Delete(context.WithoutCancel(s.t.Context()), o) })
}

// objectOf returns an object of a kind that has only its key.
func (s *stepObjects) objectOf(k stepKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(k.gvk())
	u.SetName(s.nameOf(k))
	if k.namespaced {
		u.SetNamespace(s.Namespace)
	}
	return u
}

// read reads the object of a step.
func (s *stepObjects) read(k stepKind) *unstructured.Unstructured {
	s.t.Helper()
	u := s.objectOf(k)
	if left := s.Read(u); left != "" {
		s.t.Fatal(left)
	}
	return u
}

// complete waits until a plan is complete, and checks that it was soon after its creation.
func (f *planFixture) complete(p *operatorsv1alpha1.InstallPlan) {
	f.t.Helper()
	f.completeWithin(soon(), p.CreationTimestamp.Time, p)
}

// completeWithin waits until a plan is complete, and checks that it was not later than a limit after a time. It uses the
// time of the write, so that a delay of the test itself does not count. The time of the condition may be earlier.
func (f *planFixture) completeWithin(limit time.Duration, since time.Time, p *operatorsv1alpha1.InstallPlan) {
	f.t.Helper()
	f.completes(p)
	// Times of the API are whole seconds.
	if after := statusWritten(p).Sub(since); after > compattest.Stretched(limit) {
		f.t.Errorf("InstallPlan %s was complete after %s, want at most %s", p.Name, after, limit)
	}
}

// statusWritten returns when the status of an object was last written.
func statusWritten(o client.Object) time.Time {
	var last time.Time
	for _, entry := range o.GetManagedFields() {
		if entry.Subresource == "status" && entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}

// completes waits until a plan is complete.
func (f *planFixture) completes(p *operatorsv1alpha1.InstallPlan) {
	f.t.Helper()
	f.Eventually(compattest.Patience, func() string {
		if left := f.Read(p); left != "" {
			return left
		}
		if p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseComplete {
			return fmt.Sprintf("InstallPlan %s is in phase %q: %s", p.Name, p.Status.Phase, p.Status.Message)
		}
		return ""
	})
	for _, s := range p.Status.Plan {
		if s.Status != operatorsv1alpha1.StepStatusCreated && s.Status != operatorsv1alpha1.StepStatusPresent {
			f.t.Errorf("step %s %s has the status %q", s.Resource.Kind, s.Resource.Name, s.Status)
		}
	}
}

// retrying waits until a step is retried whose error contains texts.
func (f *planFixture) retrying(p *operatorsv1alpha1.InstallPlan, texts ...string) {
	f.t.Helper()
	f.Eventually(compattest.RetryWindow(), func() string {
		if left := f.Read(p); left != "" {
			return left
		}
		if p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseInstalling {
			return fmt.Sprintf("InstallPlan %s is in phase %q: %s", p.Name, p.Status.Phase, p.Status.Message)
		}
		if left := begins("retrying execution due to error: ")(p.Status.Message); left != "" {
			return left
		}
		return lacks(p.Status.Message, texts...)
	})
}

// fails waits until a plan fails with texts in its message and in its condition.
func (f *planFixture) fails(limit time.Duration, p *operatorsv1alpha1.InstallPlan, texts ...string) {
	f.t.Helper()
	f.Eventually(limit, func() string {
		if left := f.Read(p); left != "" {
			return left
		}
		if p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseFailed {
			return fmt.Sprintf("InstallPlan %s is in phase %q: %s", p.Name, p.Status.Phase, p.Status.Message)
		}
		return ""
	})
	condition := p.Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled)
	if condition.Status != "False" || condition.Reason != operatorsv1alpha1.InstallPlanReasonComponentFailed {
		f.t.Errorf("the condition Installed is %+v", condition)
	}
	for _, message := range []string{p.Status.Message, condition.Message} {
		if left := lacks(message, texts...); left != "" {
			f.t.Error(left)
		}
	}
}

// failedAfter returns how long after its start a plan failed.
func failedAfter(p *operatorsv1alpha1.InstallPlan) time.Duration {
	return p.Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled).LastTransitionTime.Sub(p.Status.StartTime.Time)
}

// refuses waits until a plan fails without a retry.
func (f *planFixture) refuses(p *operatorsv1alpha1.InstallPlan, texts ...string) {
	f.t.Helper()
	f.fails(compattest.Patience, p, texts...)
	if after := failedAfter(p); after > deadlineSlack() {
		f.t.Errorf("InstallPlan %s failed %s after its start", p.Name, after)
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
func (s *stepObjects) absent(o client.Object) {
	s.t.Helper()
	if s.Read(o) == "" {
		s.t.Errorf("%T %s exists", o, client.ObjectKeyFromObject(o))
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
func (s *stepObjects) ownedBy(o client.Object, csvs ...*operatorsv1alpha1.ClusterServiceVersion) {
	s.t.Helper()
	want := []string{}
	for _, csv := range csvs {
		want = append(want, fmt.Sprintf("ClusterServiceVersion %s %s", csv.Name, csv.UID))
	}
	slices.Sort(want)
	if got := ownersOf(o); !slices.Equal(got, want) {
		s.t.Errorf("the owners of %s are %q, want %q", o.GetName(), got, want)
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
	manifest["metadata"].(map[string]any)[field] = value //nolint:forcetypeassert // manifestOf sets it
	return manifest
}

// withoutType removes apiVersion and kind from a manifest. OLM needs the version of a definition.
func withoutType(k stepKind, manifest map[string]any) map[string]any {
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
	made := func(f *planFixture, k stepKind, manifest map[string]any) {
		p := f.plan("by-hand", f.step(k, manifest, withoutGroup))
		f.complete(p)
		if got := f.read(k).GetLabels()["olm.managed"]; got != "true" {
			t.Errorf("olm.managed is %q", got)
		}
		if s := p.Status.Plan[0].Status; s != operatorsv1alpha1.StepStatusCreated {
			t.Errorf("the step has the status %s", s)
		}
	}
	noGroup := []string{"B1", "B2", "B3", "B4", "B5", "B6", "B7", "B8", "B9", "B10", "B11"}
	noType := []string{"B12", "B13", "B14", "B15", "B16", "B17", "B18", "B19", "B20", "B21", "B22"}
	for i, k := range typedKinds() {
		compattest.Check(t, noGroup[i], func(t *testing.T, c *compattest.Cluster) {
			f := newPlanFixture(t, c)
			made(f, k, f.manifestOf(k))
		})
		compattest.Check(t, noType[i], func(t *testing.T, c *compattest.Cluster) {
			f := newPlanFixture(t, c)
			made(f, k, withoutType(k, f.manifestOf(k)))
		})
		if !k.namespaced {
			continue
		}
		compattest.Check(t, "B27-"+k.step, func(t *testing.T, c *compattest.Cluster) {
			f := newPlanFixture(t, c)
			elsewhere := f.NewNamespace()
			f.complete(f.plan("by-hand", f.step(k, setMetadata(f.manifestOf(k), "namespace", elsewhere))))
			f.read(k)
			other := f.objectOf(k)
			other.SetNamespace(elsewhere)
			f.absent(other)
		})
	}
	compattest.Check(t, "B28", func(t *testing.T, c *compattest.Cluster) {
		f, k := newPlanFixture(t, c), kindNamed("ClusterRole")
		f.complete(f.plan("by-hand", f.step(k, setMetadata(f.manifestOf(k), "namespace", f.Namespace))))
		if ns := f.read(k).GetNamespace(); ns != "" {
			t.Errorf("the namespace of the ClusterRole is %s", ns)
		}
	})
}

// budgets is a kind that OLM does not decode.
func budgets() stepKind {
	return stepKind{"PodDisruptionBudget", "policy", "v1", true, func(*stepObjects) map[string]any {
		return map[string]any{"spec": map[string]any{"minAvailable": int64(1), "selector": map[string]any{"matchLabels": map[string]any{"app": "hook"}}}}
	}}
}

// TestStepsOfOtherKinds checks steps whose kind OLM does not decode into a Go type.
func TestStepsOfOtherKinds(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "B23", func(t *testing.T, c *compattest.Cluster) {
		f, k := newPlanFixture(t, c), budgets()
		f.complete(f.plan("by-hand", f.step(k, f.manifestOf(k), withoutGroup)))
		f.ownedBy(f.read(k), f.crane)
	})
	compattest.Check(t, "B24", func(t *testing.T, c *compattest.Cluster) {
		f, k := newPlanFixture(t, c), budgets()
		f.complete(f.plan("with-version", f.step(k, withoutType(k, f.manifestOf(k)), withoutGroup)))
		f.read(k)
		p := f.plan("without-version", f.step(k, withoutType(k, f.manifestOf(k)), withoutGroup, func(s *operatorsv1alpha1.Step) { s.Resource.Version = "" }))
		f.refuses(p, "apiVersion", "kind", "PodDisruptionBudget", "hook")
	})
	compattest.Check(t, "B40", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		k := stepKind{"VerticalPodAutoscaler", "gone.example", "v1", true, func(*stepObjects) map[string]any { return map[string]any{"spec": map[string]any{}} }}
		const sentence = "api-server resource not found installing VerticalPodAutoscaler hook: GroupVersionKind gone.example/v1, Kind=VerticalPodAutoscaler not found on the cluster. " +
			"This API may have been deprecated and removed, see https://kubernetes.io/docs/reference/using-api/deprecation-guide/ for more information."
		p := f.plan("by-hand", f.step(k, f.manifestOf(k)))
		f.retrying(p, sentence)
		if after := statusWritten(p).Sub(p.CreationTimestamp.Time); after > compattest.Stretched(soon()) {
			t.Errorf("the message has the sentence after %s", after)
		}
		f.failsInTime(p, sentence)
	})
	compattest.Check(t, "B41", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		k := stepKind{"Gadget", "shop.example", "v1", true, func(*stepObjects) map[string]any { return nil }}
		p := f.plan("by-hand", f.step(k, f.manifestOf(k)))
		f.refuses(p, "Gadget", "--bundle-kind=shop.example/Gadget")
		if s := p.Status.Plan[0].Status; s != operatorsv1alpha1.StepStatusUnsupportedResource {
			t.Errorf("the step has the status %s", s)
		}
	})
	compattest.Check(t, "B42", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		makeShopCRD(f.Cluster, "widgets", "Widget", "Namespaced")
		makeShopCRD(f.Cluster, "signboards", "Signboard", "Cluster")
		widget := stepKind{"Widget", "shop.example", "v1", true, func(*stepObjects) map[string]any { return nil }}
		sign := stepKind{"Signboard", "shop.example", "v1", false, func(*stepObjects) map[string]any { return nil }}
		f.deleteAtEnd(f.objectOf(sign))
		f.completes(f.plan("by-hand", f.step(widget, f.manifestOf(widget)), f.step(sign, f.manifestOf(sign))))
		f.ownedBy(f.read(widget), f.crane)
		labels := f.read(sign).GetLabels()
		if labels["olm.owner"] != "crane.v1" || labels["olm.owner.namespace"] != f.Namespace || labels["olm.owner.kind"] != "ClusterServiceVersion" {
			t.Errorf("the labels of the cluster-scoped object are %v", labels)
		}
		if err := f.Delete(t.Context(), f.crane); err != nil {
			t.Fatal(err)
		}
		f.Gone(compattest.Patience, f.objectOf(sign), f.objectOf(widget))
	})
}

// makeShopCRD creates a CustomResourceDefinition of group shop.example, and waits until it is served.
func makeShopCRD(c *compattest.Cluster, plural, kind, scope string) {
	content := namespacedCRD(plural)
	spec := content["spec"].(map[string]any) //nolint:forcetypeassert // namespacedCRD sets it
	spec["group"], spec["scope"] = "shop.example", scope
	spec["names"] = map[string]any{"plural": plural, "singular": strings.ToLower(kind), "kind": kind, "listKind": kind + "List"}
	content["apiVersion"], content["kind"] = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
	content["metadata"] = map[string]any{"name": plural + ".shop.example"}
	crd := &unstructured.Unstructured{Object: content}
	c.Make(crd)
	c.Eventually(compattest.Patience, func() string {
		if left := c.Read(crd); left != "" {
			return left
		}
		conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
		for _, condition := range conditions {
			if m, ok := condition.(map[string]any); ok && m["type"] == "Established" && m["status"] == "True" {
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
		f := newPlanFixture(t, c)
		f.complete(f.plan("by-hand", f.step(k, f.manifestOf(k), odd)))
		if got := installedAlongside(f.read(k)); !slices.Equal(got, []string{f.Namespace + "/crane.v1"}) {
			t.Errorf("the definition names the versions %q", got)
		}
	})
	compattest.Check(t, "B26", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		f.complete(f.plan("by-hand", f.step(k, f.manifestOf(k), odd)))
		f.Make(f.CSV("crane.v2", waitingUpdate))
		f.complete(f.plan("second", f.step(k, f.manifestOf(k), odd, func(s *operatorsv1alpha1.Step) { s.Resolving = "crane.v2" })))
		if got := installedAlongside(f.read(k)); !slices.Equal(got, []string{f.Namespace + "/crane.v1", f.Namespace + "/crane.v2"}) {
			t.Errorf("the definition names the versions %q", got)
		}
	})
}

// waitingUpdate makes a version an update of crane.v1. It waits, so that crane.v1 is not deleted.
func waitingUpdate(csv *operatorsv1alpha1.ClusterServiceVersion) {
	csv.Spec.Replaces = "crane.v1"
	csv.Spec.CustomResourceDefinitions.Required = []operatorsv1alpha1.CRDDescription{{Name: "absent.steps.example", Version: "v1", Kind: "Absent"}}
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
		f := newPlanFixture(t, c)
		f.complete(f.plan("by-hand", f.step(k, f.manifestOf(k), unresolved)))
		f.ownedBy(f.read(k))
		if err := f.Delete(t.Context(), f.crane); err != nil {
			t.Fatal(err)
		}
		f.Gone(compattest.Patience, f.crane)
		pause.For(t.Context(), 2*time.Second)
		f.read(k)
	})
	compattest.Check(t, "B30", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		f.complete(f.plan("by-hand", f.step(k, setMetadata(f.manifestOf(k), "ownerReferences", []any{ownerReference("crane.v1", "")}), unresolved)))
		f.ownedBy(f.read(k), f.crane)
		if err := f.Delete(t.Context(), f.crane); err != nil {
			t.Fatal(err)
		}
		f.Gone(compattest.Patience, f.objectOf(k))
	})
	compattest.Check(t, "B31", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		p := f.plan("by-hand", f.step(k, setMetadata(f.manifestOf(k), "ownerReferences", []any{ownerReference("ghost", "")}), unresolved))
		f.retrying(p, "ghost")
		f.failsInTime(p, "ghost")
	})
	compattest.Check(t, "B32", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		p := f.plan("by-hand", f.step(k, setMetadata(f.manifestOf(k), "ownerReferences", []any{ownerReference("ghost", "")}), unresolved))
		f.retrying(p, "ghost")
		pause.For(t.Context(), time.Until(p.Status.StartTime.Add(compattest.RetryWindow()/2)))
		ghost := f.CSV("ghost")
		f.Make(ghost)
		f.completeWithin(compattest.Limit(10*time.Second, compattest.RetryWindow()), time.Now(), p)
		f.ownedBy(f.read(k), ghost)
	})
	compattest.Check(t, "B33", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		refs := []any{ownerReference("crane.v1", "00000000-0000-0000-0000-000000000000")}
		f.complete(f.plan("by-hand", f.step(k, setMetadata(f.manifestOf(k), "ownerReferences", refs), unresolved)))
		f.ownedBy(f.read(k), f.crane)
	})
	compattest.Check(t, "B34", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		other := f.CSV("crane.v2")
		f.Make(other)
		f.complete(f.plan("by-hand", f.step(k, setMetadata(f.manifestOf(k), "ownerReferences", []any{ownerReference("crane.v2", "")}))))
		f.ownedBy(f.read(k), f.crane, other)
	})
}

// TestStepsOfExistingObjects checks steps whose objects exist, and owners of other kinds.
func TestStepsOfExistingObjects(t *testing.T) {
	t.Parallel()
	k := kindNamed("ConfigMap")
	compattest.Check(t, "B35", func(t *testing.T, c *compattest.Cluster) {
		f, k := newPlanFixture(t, c), kindNamed("ServiceAccount")
		other := f.CSV("crane.v2", waitingUpdate)
		f.Make(other)
		live := &unstructured.Unstructured{Object: f.manifestOf(k)}
		live.SetNamespace(f.Namespace)
		live.SetAnnotations(map[string]string{"site": "north"})
		live.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Name: f.crane.Name, UID: f.crane.UID}})
		live.Object["secrets"] = []any{map[string]any{"name": "token"}}
		live.Object["imagePullSecrets"] = []any{map[string]any{"name": "pull"}}
		f.Make(live)
		p := f.plan("by-hand", f.step(k, setMetadata(f.manifestOf(k), "ownerReferences", []any{ownerReference("crane.v2", "")}), unresolved))
		f.complete(p)
		after := f.read(k)
		f.ownedBy(after, f.crane, other)
		for _, list := range []string{"secrets", "imagePullSecrets"} {
			if have, want := f.Manifest(after.Object[list]), f.Manifest(live.Object[list]); have != want {
				t.Errorf("%s are %s, want %s", list, have, want)
			}
		}
		if site := after.GetAnnotations()["site"]; site != "north" {
			t.Errorf("the annotation is %q", site)
		}
		if s := p.Status.Plan[0].Status; s != operatorsv1alpha1.StepStatusPresent {
			t.Errorf("the step has the status %s", s)
		}
	})
	for _, name := range []string{"Role", "Service", "ConfigMap"} {
		compattest.Check(t, "B36-"+name, func(t *testing.T, c *compattest.Cluster) {
			f, k := newPlanFixture(t, c), kindNamed(name)
			f.complete(f.plan("first", f.step(k, f.manifestOf(k))))
			other := f.CSV("crane.v2", waitingUpdate)
			f.Make(other)
			f.complete(f.plan("second", f.step(k, setMetadata(f.manifestOf(k), "ownerReferences", []any{ownerReference("crane.v2", "")}), unresolved)))
			f.ownedBy(f.read(k), f.crane, other)
		})
	}
	compattest.Check(t, "B37", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		owner := &unstructured.Unstructured{Object: f.manifestOf(kindNamed("ServiceAccount"))}
		owner.SetNamespace(f.Namespace)
		f.Make(owner)
		refs := []any{map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "name": owner.GetName(), "uid": string(owner.GetUID())}}
		f.complete(f.plan("by-hand", f.step(k, setMetadata(f.manifestOf(k), "ownerReferences", refs), unresolved)))
		if got, want := ownersOf(f.read(k)), fmt.Sprintf("ServiceAccount %s %s", owner.GetName(), owner.GetUID()); !slices.Equal(got, []string{want}) {
			t.Errorf("the owners are %q, want %q", got, want)
		}
	})
	compattest.Check(t, "B38", func(t *testing.T, c *compattest.Cluster) {
		f, k := newPlanFixture(t, c), kindNamed("Service")
		live := &unstructured.Unstructured{Object: f.manifestOf(k)}
		live.SetNamespace(f.Namespace)
		f.Make(live)
		address, _, _ := unstructured.NestedString(live.Object, "spec", "clusterIP")
		p := f.plan("by-hand", f.step(k, f.manifestOf(k), unresolved))
		f.complete(p)
		if got, _, _ := unstructured.NestedString(f.read(k).Object, "spec", "clusterIP"); got != address || address == "" {
			t.Errorf("the address was %q and is %q", address, got)
		}
		if s := p.Status.Plan[0].Status; s != operatorsv1alpha1.StepStatusPresent {
			t.Errorf("the step has the status %s", s)
		}
	})
	compattest.Check(t, "B39", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		f.complete(f.plan("first", f.step(k, f.manifestOf(k))))
		before := f.read(k)
		p := f.plan("second", f.step(k, field(f.manifestOf(k), "c", "data", "a"), unresolved))
		f.failsInTime(p, "hook", "crane.v1")
		if after := f.read(k); after.GetResourceVersion() != before.GetResourceVersion() {
			t.Errorf("the ConfigMap was written: %s", f.Manifest(after))
		}
	})
}
