package suite_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// warningEvents waits until there are n Events about warnings, and returns them by the path of their
// step.
func (w *world) warningEvents(n int) map[string]string {
	w.T.Helper()
	notes := map[string]string{}
	w.Eventually(func(g gomega.Gomega) {
		list := &eventsv1.EventList{}
		g.Expect(w.List(w.T.Context(), list, client.InNamespace(w.Namespace))).To(gomega.Succeed())
		clear(notes)
		seen := 0
		for i := range list.Items {
			if e := &list.Items[i]; e.Reason == "AppliedWithWarnings" {
				seen++
				notes[e.Regarding.FieldPath] = e.Note
			}
		}
		g.Expect(seen).To(gomega.Equal(n))
	}).Should(gomega.Succeed())
	return notes
}

// autoscalers creates the kind VerticalPodAutoscaler with a definition that declares only some of
// its fields. All tests share the group.
func (w *world) autoscalers() {
	w.T.Helper()
	w.kind("autoscaling.k8s.io", "VerticalPodAutoscaler", known, apiextensionsv1.NamespaceScoped)
}

func autoscalerList() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("autoscaling.k8s.io/v1")
	list.SetKind("VerticalPodAutoscalerList")
	return list
}

const lampAutoscaler = `{"apiVersion":"autoscaling.k8s.io/v1","kind":"VerticalPodAutoscaler","metadata":{"name":"lamp"},"spec":{"known":"a","targetRef":{"name":"lamp"},"raw":{"b":1}}}`

// TestUnknownFieldsAreDropped installs a bundle that has one unknown field in each of its objects.
// The plan ends in time, and one Event for each object names the field.
func TestUnknownFieldsAreDropped(t *testing.T) {
	w := newWorld(t)
	w.autoscalers()
	w.Create(w.group("group"))
	stop := w.supervise(time.Second)
	deployment := `{"name":"lamp","spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"i","bogus":1}]}}}}`
	b := w.bundle(
		strings.Replace(w.crd(), `"scope"`, `"bogus":1,"scope"`, 1),
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"dims"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"],"nonsense":"x"}]}`,
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"lamp"},"spec":{"ports":[{"name":"a","port":80},{"name":"b","port":81,"colour":"red"}]}}`,
		lampAutoscaler,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"exported","uid":"1","resourceVersion":"7","creationTimestamp":null,"managedFields":[{"manager":"x"}]},"data":{"a":"b"},"status":{}}`,
	)
	b.Objects[0] = strings.Replace(b.Objects[0], `"deployments":[]`, `"deployments":[`+deployment+`]`, 1)
	w.plan(b, true, plansteps.MaxInline)
	p := w.reaches(complete)
	paths := map[string]string{}
	for i, s := range p.Status.Plan {
		paths[fmt.Sprintf("status.plan[%d]", i)] = s.Resource.Kind
	}
	got := map[string]string{}
	for path, note := range w.warningEvents(5) {
		got[paths[path]] = note
	}
	crd := "lamps." + w.Namespace + ".example"
	if diff := cmp.Diff(map[string]string{
		"ClusterServiceVersion":    `1 warning(s) generated during installation of operator "lamp.v1" (ClusterServiceVersion "lamp.v1"): unknown field "spec.install.spec.deployments[0].spec.template.spec.containers[0].bogus"`,
		"CustomResourceDefinition": `1 warning(s) generated during installation of operator "lamp.v1" (CustomResourceDefinition "` + crd + `"): unknown field "spec.bogus"`,
		"Role":                     `1 warning(s) generated during installation of operator "lamp.v1" (Role "dims"): unknown field "rules[0].nonsense"`,
		"Service":                  `1 warning(s) generated during installation of operator "lamp.v1" (Service "lamp"): unknown field "spec.ports[1].colour"`,
		"VerticalPodAutoscaler":    `1 warning(s) generated during installation of operator "lamp.v1" (VerticalPodAutoscaler "lamp"): unknown field "spec.targetRef"`,
	}, got); diff != "" {
		t.Errorf("Events (-want +got):\n%s", diff)
	}
	list := autoscalerList()
	if err := w.List(t.Context(), list, client.InNamespace(w.Namespace)); err != nil || len(list.Items) != 1 {
		t.Fatalf("%d objects, error %v", len(list.Items), err)
	}
	if diff := cmp.Diff(map[string]any{"known": "a", "raw": map[string]any{"b": int64(1)}}, list.Items[0].Object["spec"]); diff != "" {
		t.Errorf("what is stored (-want +got):\n%s", diff)
	}
	// Another process finds everything done.
	stop()
	before := w.versions()
	w.supervise(time.Second)
	w.Consistently(w.versions).WithTimeout(time.Second).Should(gomega.Equal(before))
	w.warningEvents(5)
}

// versions returns the resource versions of the objects of the bundle.
func (w *world) versions() []string {
	var found []string
	for _, kind := range []schemaKind{{"v1", "Service"}, {"rbac.authorization.k8s.io/v1", "Role"}, {"autoscaling.k8s.io/v1", "VerticalPodAutoscaler"}, {"operators.coreos.com/v1alpha1", "ClusterServiceVersion"}} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(kind.version)
		list.SetKind(kind.kind + "List")
		if err := w.List(context.WithoutCancel(w.T.Context()), list, client.InNamespace(w.Namespace)); err != nil {
			found = append(found, err.Error())
		}
		for i := range list.Items {
			found = append(found, kind.kind+" "+list.Items[i].GetName()+" "+list.Items[i].GetResourceVersion())
		}
	}
	return found
}

type schemaKind struct{ version, kind string }

// TestManyUnknownFieldsAreCounted has one object with 200 unknown fields.
func TestManyUnknownFieldsAreCounted(t *testing.T) {
	w := newWorld(t)
	w.autoscalers()
	w.Create(w.group("group"))
	w.supervise(time.Second)
	var fields []string
	for i := range 200 {
		fields = append(fields, fmt.Sprintf(`"bogus%03d":1`, i))
	}
	w.plan(w.bundle(
		strings.Replace(lampAutoscaler, `"targetRef":{"name":"lamp"}`, strings.Join(fields, ","), 1),
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"lamp"},"spec":{"ports":[{"port":80}],`+strings.Join(fields, ",")+`}}`,
	), true, plansteps.MaxInline)
	w.reaches(complete)
	for _, note := range w.warningEvents(2) {
		if !strings.HasPrefix(note, "200 warning(s)") || !strings.HasSuffix(note, ", and 190 more") || strings.Count(note, "unknown field") != 10 {
			t.Error(note)
		}
	}
}

// TestFieldsOfTheNextVersion installs a version that lacks fields of the version before it, known
// and unknown. It also takes over an object that a user applied.
func TestFieldsOfTheNextVersion(t *testing.T) {
	w := newWorld(t)
	w.Create(w.group("group"))
	theirs := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"namespace": w.Namespace, "name": "lamp", "annotations": map[string]any{"theirs": "kept"}},
		"spec": map[string]any{"ports": []any{map[string]any{"port": int64(80), "protocol": "TCP"}}},
	}}
	if err := w.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(theirs), client.FieldOwner("kubectl")); err != nil {
		t.Fatal(err)
	}
	w.supervise(time.Second)
	w.plan(w.bundle(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"lamp"},"spec":{"bogus":1,"publishNotReadyAddresses":true,"ports":[{"port":80}]}}`), true, plansteps.MaxInline)
	p := w.reaches(complete)
	w.warningEvents(1)
	service := func() *corev1.Service {
		found := &corev1.Service{}
		if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "lamp"}, found); err != nil {
			t.Fatal(err)
		}
		return found
	}
	if got := service(); !got.Spec.PublishNotReadyAddresses || got.Annotations["theirs"] != "kept" {
		t.Errorf("after the first version: %+v", got)
	}
	if err := w.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.plan(w.bundle(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"lamp"},"spec":{"ports":[{"port":80}]}}`), true, plansteps.MaxInline)
	w.reaches(complete)
	if got := service(); got.Spec.PublishNotReadyAddresses || got.Annotations["theirs"] != "kept" {
		t.Errorf("after the second version: %+v", got)
	}
}

// TestAccountNeedsNoPatch has an account of an OperatorGroup that may only create and update one
// kind. It brings an object with an unknown field, first new and then changed.
func TestAccountNeedsNoPatch(t *testing.T) {
	w := newWorld(t)
	w.autoscalers()
	group := w.group("group")
	group.Spec.ServiceAccountName = "installer"
	w.Create(group, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "installer"}})
	w.grant("versions", rule(operatorsv1alpha1.GroupName, "clusterserviceversions", "create"))
	w.grant("accounts", rule("", "serviceaccounts", "create"), rule(rbacv1.GroupName, "roles", "create", "escalate"), rule(rbacv1.GroupName, "rolebindings", "create"), rule("", "pods", "get"))
	w.grant("autoscalers", rule("autoscaling.k8s.io", "verticalpodautoscalers", "create", "update"))
	w.supervise(time.Second)
	for i, known := range []string{"a", "b"} {
		w.plan(w.bundle(strings.Replace(lampAutoscaler, `"known":"a"`, `"known":"`+known+`"`, 1)), true, plansteps.MaxInline)
		p := w.reaches(complete)
		w.warningEvents(i + 1)
		list := autoscalerList()
		if err := w.List(t.Context(), list, client.InNamespace(w.Namespace)); err != nil || len(list.Items) != 1 {
			t.Fatalf("%d objects, error %v", len(list.Items), err)
		}
		if got, _, _ := unstructured.NestedString(list.Items[0].Object, "spec", "known"); got != known {
			t.Errorf("spec.known is %q, want %q", got, known)
		}
		if !slices.ContainsFunc(p.Status.Plan, func(s *operatorsv1alpha1.Step) bool { return s.Resource.Kind == "VerticalPodAutoscaler" }) {
			t.Errorf("steps %v", statuses(p))
		}
		if err := w.Delete(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDuplicateFields has duplicate keys in a mapping: the last counts. The Event of the step names
// them once, beside the fields that the API server drops.
func TestDuplicateFields(t *testing.T) {
	for name, inline := range map[string]int{"in the plan": plansteps.MaxInline, "in the catalog": 0} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Create(w.group("group"))
			stop := w.supervise(time.Second)
			b := w.bundle(
				strings.Replace(w.crd(), `"scope"`, `"scope":"Cluster","scope"`, 1),
				`{"apiVersion":"v1","kind":"Service","metadata":{"name":"lamp"},"spec":{"bogus":1,"ports":[{"port":80,"port":81}]}}`,
				strings.Replace(settings, `"a":"b"`, `"a":"first","a":"b"`, 1),
			)
			b.Objects[0] = strings.Replace(b.Objects[0], `"displayName"`, `"displayName":"Candle","displayName"`, 1)
			w.shelf.put(b)
			w.plan(b, true, inline)
			p := w.reaches(complete)
			got := map[string]string{}
			for path, note := range w.warningEvents(4) {
				var i int
				if _, err := fmt.Sscanf(path, "status.plan[%d]", &i); err != nil {
					t.Fatal(err)
				}
				got[p.Status.Plan[i].Resource.Kind] = note
			}
			if diff := cmp.Diff(map[string]string{
				"ClusterServiceVersion":    `1 warning(s) generated during installation of operator "lamp.v1" (ClusterServiceVersion "lamp.v1"): duplicate field "spec.displayName"`,
				"CustomResourceDefinition": `1 warning(s) generated during installation of operator "lamp.v1" (CustomResourceDefinition "lamps.` + w.Namespace + `.example"): duplicate field "spec.scope"`,
				"ConfigMap":                `1 warning(s) generated during installation of operator "lamp.v1" (ConfigMap "settings"): duplicate field "data.a"`,
				"Service":                  `2 warning(s) generated during installation of operator "lamp.v1" (Service "lamp"): unknown field "spec.bogus", duplicate field "spec.ports[0].port"`,
			}, got); diff != "" {
				t.Errorf("Events (-want +got):\n%s", diff)
			}
			if got := w.settings().Data["a"]; got != "b" {
				t.Errorf("a is %q, want the last value", got)
			}
			stop()
			before := w.versions()
			w.supervise(time.Second)
			w.Consistently(w.versions).WithTimeout(time.Second).Should(gomega.Equal(before))
			w.warningEvents(4)
		})
	}
}

// TestDuplicateFieldsOfARefusedPlan has a plan that fails before its steps are applied.
func TestDuplicateFieldsOfARefusedPlan(t *testing.T) {
	w := newWorld(t)
	w.Create(w.group("group"))
	w.supervise(time.Second)
	w.plan(w.bundle(
		strings.Replace(settings, `"a":"b"`, `"a":"first","a":"b"`, 1),
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"lamp"}}`,
	), true, plansteps.MaxInline)
	w.reaches(operatorsv1alpha1.InstallPlanPhaseFailed)
	for _, note := range w.warningEvents(1) {
		if want := `1 warning(s) generated during installation of operator "lamp.v1" (ConfigMap "settings"): duplicate field "data.a"`; note != want {
			t.Errorf("Event %q, want %q", note, want)
		}
	}
}
