package compat_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/fakecatalog"
)

// field sets a field below a path of a manifest. A number in the path is an index.
func field(manifest map[string]any, value any, path ...any) map[string]any {
	var at any = manifest
	for i, step := range path[:len(path)-1] {
		switch key := step.(type) {
		case int:
			at = at.([]any)[key] //nolint:forcetypeassert // the path fits the manifest
		case string:
			m := at.(map[string]any) //nolint:forcetypeassert // the path fits the manifest
			if m[key] == nil {
				m[key] = map[string]any{}
			}
			at = m[key]
		default:
			panic(fmt.Sprintf("element %d of the path is %v", i, step))
		}
	}
	at.(map[string]any)[path[len(path)-1].(string)] = value //nolint:forcetypeassert // the path fits the manifest
	return manifest
}

// planFixture returns the objects of steps for the namespace of the case.
func (b *bundleFixture) planFixture() *planFixture {
	return &planFixture{stepObjects: stepObjects{b.Cluster, b.t}}
}

// object returns a complete manifest of a kind.
func (b *bundleFixture) object(name string) map[string]any {
	b.t.Helper()
	f := b.planFixture()
	for _, k := range otherKinds() {
		if k.step == name {
			if !k.namespaced {
				b.deleteAtEnd(k)
			}
			return f.manifestOf(k)
		}
	}
	k := kindNamed(name)
	if !k.namespaced {
		b.deleteAtEnd(k)
	}
	return f.manifestOf(k)
}

func (b *bundleFixture) deleteAtEnd(k stepKind) {
	b.planFixture().deleteAtEnd(b.planFixture().objectOf(k))
}

// otherKinds are kinds of bundles that OLM does not decode.
func otherKinds() []stepKind {
	spec := func(content map[string]any) func(*stepObjects) map[string]any {
		return func(*stepObjects) map[string]any { return map[string]any{"spec": content} }
	}
	return []stepKind{
		budgets(),
		{"PriorityClass", "scheduling.k8s.io", "v1", false, func(*stepObjects) map[string]any { return map[string]any{"value": int64(7)} }},
		{"NetworkPolicy", "networking.k8s.io", "v1", true, spec(map[string]any{"podSelector": map[string]any{}})},
		{"VerticalPodAutoscaler", "autoscaling.k8s.io", "v1", true, spec(map[string]any{"a": "b"})},
		{"ServiceMonitor", "monitoring.coreos.com", "v1", true, spec(map[string]any{"a": "b"})},
		{"PrometheusRule", "monitoring.coreos.com", "v1", true, spec(map[string]any{"a": "b"})},
		// Cases of F need a control plane without console.openshift.io/v1, and run beside these.
		{"ConsoleLink", "console.openshift.io", "v1alpha1", false, spec(map[string]any{"a": "b"})},
	}
}

// structural is a schema with only spec.a, and spec.raw for anything.
func structural() map[string]any {
	return map[string]any{"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object", "properties": map[string]any{
		"a": map[string]any{"type": "string"}, "raw": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
	}}}}
}

// definitionOf returns the manifest of the CustomResourceDefinition of a kind.
func definitionOf(k stepKind, schema map[string]any) map[string]any {
	plural, scope := strings.ToLower(k.step)+"s", "Namespaced"
	if !k.namespaced {
		scope = "Cluster"
	}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": plural + "." + k.group},
		"spec": map[string]any{
			"group": k.group, "scope": scope, "names": map[string]any{"plural": plural, "singular": strings.ToLower(k.step), "kind": k.step, "listKind": k.step + "List"},
			"versions": []any{map[string]any{"name": k.version, "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": schema}}},
		},
	}
}

// serve creates the CustomResourceDefinition of a kind. Cases share it.
func (b *bundleFixture) serve(name string) stepKind {
	b.t.Helper()
	all := otherKinds()
	k := all[slices.IndexFunc(all, func(k stepKind) bool { return k.step == name })]
	schema := structural()
	if name == "ServiceMonitor" {
		makeServiceMonitorCRD(b.t, b.Cluster)
		return k
	}
	crd := &unstructured.Unstructured{Object: definitionOf(k, schema)}
	crd.SetAnnotations(map[string]string{"api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/1"})
	if err := b.Create(b.t.Context(), crd); err != nil && !apierrors.IsAlreadyExists(err) {
		b.t.Fatal(err)
	}
	return k
}

// installTime bounds the time between the creation of a plan and its completion. A bundle without unknown fields needs less
// than half a second on a machine without other work, and 8 s on a busy one; 2 s more are allowed.
func installTime() time.Duration { return compattest.Limit(10*time.Second, compattest.Patience) }

// install installs a bundle with some objects in time, and returns its plan.
func (b *bundleFixture) install(objects ...any) *operatorsv1alpha1.InstallPlan {
	b.t.Helper()
	p := b.installed(b.subscribe(b.entry("mill.v1", "1.0.0", append([]any{b.bundleCSV("mill.v1")}, objects...)...)), "mill.v1")
	if after := statusWritten(p).Sub(p.CreationTimestamp.Time); after > compattest.Stretched(installTime()) {
		b.t.Errorf("InstallPlan %s was complete after %s, want at most %s", p.Name, after, installTime())
	}
	return p
}

// warnings returns the messages of the Events about warnings of a plan.
func (b *bundleFixture) warnings(p *operatorsv1alpha1.InstallPlan) []string {
	b.t.Helper()
	var list []string
	for _, e := range b.Events(p) {
		if e.Reason == "AppliedWithWarnings" && e.Type == corev1.EventTypeWarning {
			list = append(list, e.Message)
		}
	}
	return list
}

// warned waits for an Event about an object of a kind, with exactly OLM's note, and checks that no other Event is about
// the object. The field path of the Event names the step.
func (b *bundleFixture) warned(p *operatorsv1alpha1.InstallPlan, kind string, texts ...string) {
	b.t.Helper()
	i := slices.IndexFunc(p.Status.Plan, func(s *operatorsv1alpha1.Step) bool { return s.Resource.Kind == kind })
	if i < 0 {
		b.t.Fatalf("the plan has no step for a %s", kind)
	}
	about := fmt.Sprintf("(%s %q): ", kind, p.Status.Plan[i].Resource.Name)
	note := fmt.Sprintf("%d warning(s) generated during installation of operator \"mill.v1\" %s%s", len(texts), about, strings.Join(texts, ", "))
	b.Eventually(compattest.Patience, func() string {
		var seen []string
		exact := false
		for _, e := range b.Events(p) {
			if e.Reason == "AppliedWithWarnings" && strings.Contains(e.Message, about) {
				seen = append(seen, e.InvolvedObject.FieldPath+" "+e.Message)
				exact = exact || e.Message == note && e.InvolvedObject.FieldPath == fmt.Sprintf("status.plan[%d]", i) && e.Count <= 1
			}
		}
		if !exact || len(seen) != 1 && !compattest.RepeatsEvents() {
			return fmt.Sprintf("the Events are %q, want %q", seen, note)
		}
		return ""
	})
}

// silent fails if a plan has warnings.
func (b *bundleFixture) silent(p *operatorsv1alpha1.InstallPlan) {
	b.t.Helper()
	if list := b.warnings(p); len(list) > 0 {
		b.t.Errorf("the plan has the warnings %q", list)
	}
}

// stored reads the object of a kind.
func (b *bundleFixture) stored(name string) map[string]any {
	b.t.Helper()
	f := b.planFixture()
	for _, k := range append(otherKinds(), typedKinds()...) {
		if k.step == name {
			return f.read(k).Object
		}
	}
	b.t.Fatalf("no kind is named %s", name)
	return nil
}

// unknown is the API server's warning about a field.
func unknown(path string) string { return fmt.Sprintf("unknown field %q", path) }

// TestUnknownFields checks bundles with fields that the cluster does not know.
func TestUnknownFields(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "ConfigMap", "BundleSecret", "PriorityClass"} {
		checkBundle(t, "H1-"+name, func(t *testing.T, b *bundleFixture) {
			object := name
			if name == "BundleSecret" {
				object = "Secret"
			}
			p := b.install(field(b.object(name), "1", "bogus"))
			b.warned(p, name, unknown("bogus"))
			if _, found := b.stored(name)["bogus"]; found {
				t.Errorf("the field of %s is stored", object)
			}
		})
	}
	for _, name := range []string{"Service", "PodDisruptionBudget", "NetworkPolicy", "CustomResourceDefinition"} {
		checkBundle(t, "H1-"+name, func(t *testing.T, b *bundleFixture) {
			p := b.install(field(b.object(name), "1", "spec", "bogus"))
			b.warned(p, name, unknown("spec.bogus"))
			if _, found, _ := unstructured.NestedFieldNoCopy(b.stored(name), "spec", "bogus"); found {
				t.Error("the field is stored")
			}
		})
	}
	for _, k := range append(typedKinds(), budgets()) {
		if k.step == "ClusterServiceVersion" || k.step == "Subscription" {
			continue
		}
		checkBundle(t, "H2-"+k.step, func(t *testing.T, b *bundleFixture) {
			b.warned(b.install(field(b.object(k.step), "x", "metadata", "bogus")), k.step, unknown("metadata.bogus"))
			b.lacksField(k.step, "metadata", "bogus")
		})
	}
	checkBundle(t, "H15", func(_ *testing.T, b *bundleFixture) {
		p := b.install(field(b.object("ConfigMap"), true, "Immutable"))
		b.warned(p, "ConfigMap", unknown("Immutable")+` (did you mean "immutable"?)`)
		b.lacksField("ConfigMap", "immutable")
	})
}

// lacksField fails if the stored object of a kind has a field. A number in the path is an index.
func (b *bundleFixture) lacksField(kind string, path ...any) {
	b.t.Helper()
	var at any = b.stored(kind)
	for _, step := range path {
		switch key := step.(type) {
		case int:
			list, _ := at.([]any)
			if key >= len(list) {
				return
			}
			at = list[key]
		case string:
			m, _ := at.(map[string]any)
			value, found := m[key]
			if !found {
				return
			}
			at = value
		}
	}
	b.t.Errorf("the %s has the field %v: %v", kind, path, at)
}

// TestNestedUnknownFields checks unknown fields at several places of objects.
func TestNestedUnknownFields(t *testing.T) {
	t.Parallel()
	for id, tt := range map[string]struct {
		kind  string
		value any
		path  []any
		text  string
	}{
		"H3-Role":       {"Role", "x", []any{"rules", 0, "nonsense"}, "rules[0].nonsense"},
		"H3-Cluster":    {"ClusterRole", "x", []any{"rules", 0, "nonsense"}, "rules[0].nonsense"},
		"H4-Service":    {"Service", "red", []any{"spec", "ports", 1, "colour"}, "spec.ports[1].colour"},
		"H4-Budget":     {"PodDisruptionBudget", "x", []any{"spec", "selector", "matchExpressions", 0, "x"}, "spec.selector.matchExpressions[0].x"},
		"H5":            {"ConfigMap", map[string]any{}, []any{"datas"}, "datas"},
		"H6":            {"ServiceAccount", []any{}, []any{"secretz"}, "secretz"},
		"H7-version":    {definitions, "v1", []any{"spec", "version"}, "spec.version"},
		"H7-names":      {definitions, "x", []any{"spec", "names", "bogus"}, "spec.names.bogus"},
		"H7-validation": {definitions, map[string]any{}, []any{"spec", "validation"}, "spec.validation"},
		"H7-columns":    {definitions, []any{}, []any{"spec", "additionalPrinterColumns"}, "spec.additionalPrinterColumns"},
		"H7-list":       {definitions, "x", []any{"spec", "versions", 0, "bogus"}, "spec.versions[0].bogus"},
		"H7-schema": {
			definitions, "x",
			[]any{"spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec", "bogus"},
			"spec.versions[0].schema.openAPIV3Schema.properties.spec.bogus",
		},
	} {
		checkBundle(t, id, func(t *testing.T, b *bundleFixture) {
			object := b.object(tt.kind)
			switch id {
			case "H4-Service":
				ports := []any{map[string]any{"name": "a", "port": int64(80)}, map[string]any{"name": "b", "port": int64(81)}}
				object = field(object, ports, "spec", "ports")
			case "H4-Budget":
				object = field(object, []any{map[string]any{"key": "app", "operator": "Exists"}}, "spec", "selector", "matchExpressions")
			}
			known := b.known(object)
			b.warned(b.install(field(object, tt.value, tt.path...)), tt.kind, unknown(tt.text))
			b.lacksField(tt.kind, tt.path...)
			b.keeps(tt.kind, known)
			if tt.kind == definitions {
				b.established()
			}
		})
	}
	checkBundle(t, "H7-preserve", func(_ *testing.T, b *bundleFixture) {
		b.silent(b.install(field(b.object(definitions), false, "spec", "preserveUnknownFields")))
		b.established()
	})
}

const definitions = "CustomResourceDefinition"

// known returns a copy of the data or the rules of a manifest; nil for another one.
func (b *bundleFixture) known(manifest map[string]any) map[string]any {
	kept := map[string]any{}
	for _, part := range []string{"data", "rules"} {
		if value, found := manifest[part]; found {
			kept[part] = b.Manifest(value)
		}
	}
	return kept
}

// keeps fails unless the stored object of a kind has some data and rules.
func (b *bundleFixture) keeps(kind string, known map[string]any) {
	b.t.Helper()
	for part, want := range known {
		if have := b.Manifest(b.stored(kind)[part]); have != want {
			b.t.Errorf("%s of the %s is %s, want %s", part, kind, have, want)
		}
	}
}

// established waits until the CustomResourceDefinition of the bundle is established.
func (b *bundleFixture) established() {
	b.t.Helper()
	b.Eventually(compattest.Patience, func() string {
		conditions, _, _ := unstructured.NestedSlice(b.stored(definitions), "status", "conditions")
		for _, condition := range conditions {
			if m, is := condition.(map[string]any); is && m["type"] == "Established" && m["status"] == "True" {
				return ""
			}
		}
		return fmt.Sprintf("the conditions are %v", conditions)
	})
}

// TestFieldsOfSchemas checks fields that a CustomResourceDefinition knows or not, and fields that appear twice.
func TestFieldsOfSchemas(t *testing.T) {
	t.Parallel()
	checkBundle(t, "H8", func(_ *testing.T, b *bundleFixture) {
		path := []any{"spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec", "x-kubernetes-preserve-unknown-fields"}
		b.silent(b.install(field(b.object("CustomResourceDefinition"), true, path...)))
	})
	checkBundle(t, "H9", func(t *testing.T, b *bundleFixture) {
		b.serve("VerticalPodAutoscaler")
		b.warned(b.install(field(b.object("VerticalPodAutoscaler"), "x", "spec", "bogus")), "VerticalPodAutoscaler", unknown("spec.bogus"))
		if _, found, _ := unstructured.NestedFieldNoCopy(b.stored("VerticalPodAutoscaler"), "spec", "bogus"); found {
			t.Error("the field is stored")
		}
	})
	checkBundle(t, "H10", func(t *testing.T, b *bundleFixture) {
		b.serve("ServiceMonitor")
		b.silent(b.install(field(b.object("ServiceMonitor"), "x", "spec", "bogus")))
		if value, _, _ := unstructured.NestedString(b.stored("ServiceMonitor"), "spec", "bogus"); value != "x" {
			t.Errorf("the field is %q", value)
		}
	})
	checkBundle(t, "H11", func(t *testing.T, b *bundleFixture) {
		b.serve("PrometheusRule")
		object := field(field(b.object("PrometheusRule"), "x", "spec", "bogus"), "y", "spec", "raw", "b")
		b.warned(b.install(object), "PrometheusRule", unknown("spec.bogus"))
		if value, _, _ := unstructured.NestedString(b.stored("PrometheusRule"), "spec", "raw", "b"); value != "y" {
			t.Errorf("the field below raw is %q", value)
		}
	})
	checkBundle(t, "H12", func(_ *testing.T, b *bundleFixture) {
		all := otherKinds()
		definition := definitionOf(all[len(all)-1], structural())
		b.planFixture().deleteAtEnd(&unstructured.Unstructured{Object: map[string]any{"apiVersion": definition["apiVersion"], "kind": definition["kind"], "metadata": definition["metadata"]}})
		b.warned(b.install(definition, field(b.object("ConsoleLink"), "x", "spec", "bogus")), "ConsoleLink", unknown("spec.bogus"))
	})
	checkBundle(t, "H13", testLearnedField)
	checkBundle(t, "H14", func(_ *testing.T, b *bundleFixture) {
		sub := b.subscribe(b.entry("mill.v1", "1.0.0", b.bundleCSV("mill.v1"), field(b.object("PodDisruptionBudget"), map[string]any{}, "spec", "minAvailable")))
		b.planFixture().fails(compattest.Patience+compattest.RetryWindow(), b.planOf(sub), "minAvailable")
	})
	checkBundle(t, "H16", func(_ *testing.T, b *bundleFixture) {
		b.silent(b.install(field(field(b.object("ConfigMap"), nil, "immutable"), nil, "binaryData")))
		b.lacksField("ConfigMap", "immutable")
		b.lacksField("ConfigMap", "binaryData")
	})
	checkBundle(t, "H16-Required", func(_ *testing.T, b *bundleFixture) {
		sub := b.subscribe(b.entry("mill.v1", "1.0.0", b.bundleCSV("mill.v1"), field(b.object("Service"), nil, "spec", "ports", 0, "port")))
		b.planFixture().fails(retryLimit(), b.planOf(sub), "spec.ports[0].port")
	})
	checkBundle(t, "H16-List", func(t *testing.T, b *bundleFixture) {
		b.silent(b.install(field(b.object("Role"), nil, "rules")))
		if rules, _, _ := unstructured.NestedSlice(b.stored("Role"), "rules"); len(rules) > 0 {
			t.Errorf("the rules are %v", rules)
		}
	})
	checkBundle(t, "H17", func(t *testing.T, b *bundleFixture) {
		text := strings.Replace(b.Manifest(b.object("ConfigMap")), `"data":{`, `"data":{"a":"first",`, 1)
		p := b.installed(b.subscribe(b.imageEntry(b.bundleCSV("mill.v1"), text)), "mill.v1")
		b.warned(p, "ConfigMap", `duplicate field "data.a"`)
		if value, _, _ := unstructured.NestedString(b.stored("ConfigMap"), "data", "a"); value != "b" {
			t.Errorf("the value is %q", value)
		}
	})
	checkBundle(t, "H18", func(t *testing.T, b *bundleFixture) {
		text := strings.Replace(b.Manifest(b.object("ConfigMap")), `"data":{`, `"data":{"a":"first",`, 1)
		b.warned(b.install(text), "ConfigMap", `duplicate field "data.a"`)
		if value, _, _ := unstructured.NestedString(b.stored("ConfigMap"), "data", "a"); value != "b" {
			t.Errorf("the value is %q", value)
		}
	})
}

// testLearnedField has a definition that knows a field only after an object with this field was installed.
func testLearnedField(t *testing.T, b *bundleFixture) {
	t.Helper()
	k := b.serve("VerticalPodAutoscaler")
	definition := &unstructured.Unstructured{Object: definitionOf(k, structural())}
	manifest := field(b.object(k.step), "x", "spec", "learned")
	first := b.entry("mill.v1", "1.0.0", b.bundleCSV("mill.v1"), manifest)
	server := b.Catalog("shelf", fakecatalog.Simple("mill", first))
	sub := b.Subscribe("shelf", "mill")
	b.warned(b.installed(sub, "mill.v1"), k.step, unknown("spec.learned"))
	object := b.planFixture().read(k)
	before := object.GetResourceVersion()
	const path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/learned"
	change := func(text string) {
		if err := b.Patch(background(b.Cluster), definition, client.RawPatch(types.JSONPatchType, []byte(text))); err != nil {
			t.Error(err)
		}
	}
	change(`[{"op":"add","path":"` + path + `","value":{"type":"string"}}]`)
	// Other cases share the definition.
	t.Cleanup(func() { change(`[{"op":"remove","path":"` + path + `"}]`) })
	b.AtRest(restTime, object)
	if object.GetResourceVersion() != before {
		t.Errorf("the object was written: %s", b.Manifest(object.GetManagedFields()))
	}
	next := b.entry("mill.v2", "2.0.0", b.bundleCSV("mill.v2"), manifest)
	next.Replaces = "mill.v1"
	replaceContent(server, fakecatalog.Simple("mill", first, next))
	b.installed(sub, "mill.v2")
	b.Eventually(compattest.Patience, func() string {
		if value, _, _ := unstructured.NestedString(b.stored(k.step), "spec", "learned"); value != "x" {
			return fmt.Sprintf("the field is %q", value)
		}
		return ""
	})
}

// podSpec is the path of the pod's specification in a ClusterServiceVersion.
func podSpec(path ...any) []any {
	return append([]any{"spec", "install", "spec", "deployments", 0, "spec", "template", "spec"}, path...)
}

// container is the path of the container in a ClusterServiceVersion.
func container(path ...any) []any { return append(podSpec("containers", 0), path...) }

// TestUnknownFieldsOfVersions checks ClusterServiceVersions, exported manifests and updates.
func TestUnknownFieldsOfVersions(t *testing.T) {
	t.Parallel()
	withCSV := func(b *bundleFixture, csv map[string]any) *operatorsv1alpha1.InstallPlan {
		return b.installed(b.subscribe(b.entry("mill.v1", "1.0.0", csv)), "mill.v1")
	}
	checkBundle(t, "H19-env", func(t *testing.T, b *bundleFixture) {
		variables := []any{map[string]any{"name": "A", "value": "1"}, map[string]any{"name": "A", "value": "2"}}
		withCSV(b, field(b.bundleCSV("mill.v1"), variables, container("env")...))
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "mill-v1"}}
		if left := b.Read(d); left != "" {
			t.Fatal(left)
		}
		last := ""
		for _, v := range d.Spec.Template.Spec.Containers[0].Env {
			if v.Name == "A" {
				last = v.Value
			}
		}
		if last != "2" {
			t.Errorf("the environment is %s", b.Manifest(d.Spec.Template.Spec.Containers[0].Env))
		}
	})
	checkBundle(t, "H19-port", func(_ *testing.T, b *bundleFixture) {
		ports := []any{map[string]any{"containerPort": int64(80)}, map[string]any{"containerPort": int64(80)}}
		withCSV(b, field(b.bundleCSV("mill.v1"), ports, container("ports")...))
	})
	checkBundle(t, "H19-mount", func(_ *testing.T, b *bundleFixture) {
		mounts := []any{map[string]any{"name": "a", "mountPath": "/x"}, map[string]any{"name": "b", "mountPath": "/x"}}
		volumes := []any{map[string]any{"name": "a", "emptyDir": map[string]any{}}, map[string]any{"name": "b", "emptyDir": map[string]any{}}}
		csv := field(field(b.bundleCSV("mill.v1"), mounts, container("volumeMounts")...), volumes, podSpec("volumes")...)
		b.planFixture().fails(compattest.Patience+compattest.RetryWindow(), b.planOf(b.subscribe(b.entry("mill.v1", "1.0.0", csv))), "volumeMounts[1]: Duplicate value", "/x")
	})
	checkBundle(t, "H20", func(_ *testing.T, b *bundleFixture) {
		p := withCSV(b, field(b.bundleCSV("mill.v1"), "x", container("bogus")...))
		b.warned(p, "ClusterServiceVersion", unknown("spec.install.spec.deployments[0].spec.template.spec.containers[0].bogus"))
	})
	exported := func(manifest map[string]any) map[string]any {
		for key, value := range map[string]any{
			"uid": "11111111-1111-1111-1111-111111111111", "resourceVersion": "1", "generation": int64(3), "creationTimestamp": "2020-01-01T00:00:00Z", "selfLink": "/x",
			"managedFields": []any{map[string]any{"manager": "kubectl", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{}}},
		} {
			setMetadata(manifest, key, value)
		}
		return manifest
	}
	checkBundle(t, "H22", func(_ *testing.T, b *bundleFixture) {
		service := field(exported(b.object("Service")), map[string]any{"loadBalancer": map[string]any{}}, "status")
		b.silent(b.install(service, exported(b.object("ConfigMap"))))
	})
	checkBundle(t, "H23", func(_ *testing.T, b *bundleFixture) {
		service := field(setMetadata(b.object("Service"), "creationTimestamp", nil), map[string]any{}, "status")
		b.silent(b.install(service, setMetadata(b.object("Role"), "creationTimestamp", nil)))
	})
	checkBundle(t, "H24", func(_ *testing.T, b *bundleFixture) {
		k := b.serve("VerticalPodAutoscaler")
		before := field(field(b.object(k.step), "x", "spec", "raw", "known"), "y", "spec", "bogus")
		next := b.entry("mill.v2", "2.0.0", b.bundleCSV("mill.v2"), b.object(k.step))
		next.Replaces = "mill.v1"
		first := b.entry("mill.v1", "1.0.0", b.bundleCSV("mill.v1"), before)
		server := b.Catalog("shelf", fakecatalog.Simple("mill", first))
		sub := b.Subscribe("shelf", "mill")
		b.installed(sub, "mill.v1")
		replaceContent(server, fakecatalog.Simple("mill", first, next))
		b.installed(sub, "mill.v2")
		// OLM's Subscription may still refer to the first plan.
		b.Eventually(compattest.Patience, func() string {
			spec, _, _ := unstructured.NestedMap(b.stored(k.step), "spec")
			if len(spec) != 1 || spec["a"] != "b" {
				return fmt.Sprintf("the specification is %v", spec)
			}
			return ""
		})
	})
}

// TestUnknownFieldsOfPlans checks existing objects, and plans that wait, fail or use an account.
func TestUnknownFieldsOfPlans(t *testing.T) {
	t.Parallel()
	checkBundle(t, "H25", func(t *testing.T, b *bundleFixture) {
		live := &unstructured.Unstructured{Object: field(b.object("ConfigMap"), "theirs", "data", "own")}
		live.SetNamespace(b.Namespace)
		if err := b.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(live), client.FieldOwner("kubectl")); err != nil {
			t.Fatal(err)
		}
		b.warned(b.install(field(b.object("ConfigMap"), "1", "bogus")), "ConfigMap", unknown("bogus"))
		data, _, _ := unstructured.NestedStringMap(b.stored("ConfigMap"), "data")
		if data["own"] != "theirs" || data["a"] != "b" {
			t.Errorf("the data is %v", data)
		}
	})
	checkBundle(t, "H26", func(t *testing.T, b *bundleFixture) {
		p := b.install(field(b.object("ConfigMap"), "1", "bogus"))
		b.warned(p, "ConfigMap", unknown("bogus"))
		b.AtRest(b.Rest(), b.planFixture().objectOf(kindNamed("ConfigMap")))
		if list := b.warnings(p); len(list) != 1 {
			t.Errorf("the plan has the warnings %q", list)
		}
	})
	checkBundle(t, "H27", func(t *testing.T, b *bundleFixture) {
		b.serve("VerticalPodAutoscaler")
		f := b.planFixture()
		account := newInstallerAccount(
			t, f.Cluster,
			ruleFor("operators.coreos.com", "clusterserviceversions", "get", "create", "update"), ruleFor("apps", "deployments", "*"),
			ruleFor("autoscaling.k8s.io", "verticalpodautoscalers", "get", "create", "update"),
		)
		account.use()
		b.warned(b.install(field(b.object("VerticalPodAutoscaler"), "x", "spec", "bogus")), "VerticalPodAutoscaler", unknown("spec.bogus"))
	})
	checkBundle(t, "H28", func(_ *testing.T, b *bundleFixture) {
		f, k := b.planFixture(), kindNamed("CustomResourceDefinition")
		live := &unstructured.Unstructured{Object: b.object(k.step)}
		f.Make(live)
		unsafe := strings.Replace(b.Manifest(b.object(k.step)), `"name":"v1"`, `"name":"v2"`, 1)
		sub := b.subscribe(b.entry("mill.v1", "1.0.0", b.bundleCSV("mill.v1"), unsafe, field(b.object("ConfigMap"), "1", "bogus")))
		p := b.planOf(sub)
		f.fails(retryLimit(), p)
		b.warned(p, "ConfigMap", unknown("bogus"))
		f.absent(f.objectOf(kindNamed("ConfigMap")))
	})
	checkBundle(t, "H29", func(t *testing.T, b *bundleFixture) {
		p := b.planOf(b.subscribe(b.entry("mill.v1", "1.0.0", b.bundleCSV("mill.v1"), field(b.object("ConfigMap"), "1", "bogus")), approvedByHand))
		b.inPhase(p, operatorsv1alpha1.InstallPlanPhaseRequiresApproval)
		out, code := compattest.Supervisor(t, "approve", p.Name, "-n", b.Namespace, "--dry-run")
		if left := lacks(out, "ConfigMap", unknown("bogus")); code != 0 || left != "" {
			t.Errorf("exit code %d; %s", code, left)
		}
		b.inPhase(p, operatorsv1alpha1.InstallPlanPhaseRequiresApproval)
		b.planFixture().absent(b.planFixture().objectOf(kindNamed("ConfigMap")))
	})
	checkBundle(t, "H30", func(_ *testing.T, b *bundleFixture) {
		object := b.object("ConfigMap")
		for i := range 200 {
			object = field(object, "x", fmt.Sprintf("bogus%03d", i))
		}
		p := b.install(object)
		const note = `200 warning(s) generated during installation of operator "mill.v1" (ConfigMap "hook"): `
		b.Eventually(compattest.Patience, func() string {
			list := b.warnings(p)
			if len(list) != 1 || strings.Count(list[0], "unknown field") != 10 {
				return fmt.Sprintf("the warnings are %q", list)
			}
			return matches(regexp.QuoteMeta(note) + `(unknown field "bogus\d{3}", ){10}and 190 more`)(list[0])
		})
	})
}
