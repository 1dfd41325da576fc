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
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// kind creates a kind with one version v1. The test deletes it at its end, as other tests require.
func (w *world) kind(group, kind, schema string, scope apiextensionsv1.ResourceScope) {
	w.T.Helper()
	crd := kindOf(w.T, group, kind, schema, scope)
	w.Create(crd)
	w.goneAtEnd(crd)
	w.serves(crd)
}

// kindOf returns the definition of a kind with one version v1.
func kindOf(t *testing.T, group, kind, schema string, scope apiextensionsv1.ResourceScope) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	plural := strings.ToLower(kind) + "s"
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name:        plural + "." + group,
			Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved, it is part of a test"},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: scope,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: new(schemaOf(t, schema))},
			}},
		},
	}
}

// serves waits until the objects of a definition can be listed.
func (w *world) serves(crd *apiextensionsv1.CustomResourceDefinition) {
	w.T.Helper()
	w.Eventually(func() error {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(crd.Spec.Group + "/v1")
		list.SetKind(crd.Spec.Names.ListKind)
		return w.List(w.T.Context(), list)
	}).Should(gomega.Succeed())
}

// goneAtEnd deletes a definition when the test ends, and waits until it is gone.
func (w *world) goneAtEnd(crd *apiextensionsv1.CustomResourceDefinition) {
	w.T.Helper()
	w.T.Cleanup(func() {
		ctx := context.WithoutCancel(w.T.Context())
		w.Expect(client.IgnoreNotFound(w.Delete(ctx, crd))).To(gomega.Succeed())
		w.Eventually(func() bool {
			return apierrors.IsNotFound(w.Get(ctx, client.ObjectKeyFromObject(crd), crd.DeepCopy()))
		}).Should(gomega.BeTrue())
	})
}

// manifestOf returns an object from a manifest.
func manifestOf(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return u
}

// stored returns the stored object of a manifest.
func (w *world) stored(manifest *unstructured.Unstructured) map[string]any {
	w.T.Helper()
	live := manifest.DeepCopy()
	if scope, _ := plansteps.Kinds(nil).ScopeOf(live.GroupVersionKind().GroupKind()); scope == plansteps.Namespaced {
		live.SetNamespace(w.Namespace)
	}
	if err := w.Get(w.T.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		w.T.Error(err)
	}
	return live.Object
}

// fieldRow is an object of a bundle, and what the API server stores of it.
type fieldRow struct {
	// manifest has the name of the row as its name; NS stands for the namespace.
	manifest string
	// dropped are the paths that the API server warns about.
	dropped []string
	// says are further warnings.
	says []string
	// keeps holds stored values, by the names of the fields.
	keeps map[string]any
}

const (
	known     = `{"type":"object","properties":{"spec":{"type":"object","properties":{"known":{"type":"string"},"raw":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}`
	atTheTop  = `{"type":"object","properties":{"known":{"type":"string"}}}`
	preserves = `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`
)

func custom(apiVersion, kind, name, rest string) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q},%s}`, apiVersion, kind, name, rest)
}

// fieldRows returns the objects of one bundle. Names are those of the cases.
func fieldRows() map[string]fieldRow {
	const (
		rbac  = "rbac.authorization.k8s.io/v1"
		specs = `"spec":{"known":"a","bogus":1}`
	)
	rows := map[string]fieldRow{
		"secret":       {manifest: custom("v1", "Secret", "secret", `"stringData":{"a":"b"},"bogus":1`), dropped: []string{"bogus"}},
		"configmap":    {manifest: custom("v1", "ConfigMap", "configmap", `"data":{"a":"b"},"datas":{}`), dropped: []string{"datas"}, keeps: map[string]any{"data": map[string]any{"a": "b"}}},
		"service":      {manifest: custom("v1", "Service", "service", `"spec":{"bogus":1,"ports":[{"name":"a","port":80},{"name":"b","port":81,"colour":"red"}]}`), dropped: []string{"spec.bogus", "spec.ports[1].colour"}},
		"account":      {manifest: custom("v1", "ServiceAccount", "account", `"secretz":[]`), dropped: []string{"secretz"}},
		"role":         {manifest: custom(rbac, "Role", "role", `"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"],"nonsense":"x"}]`), dropped: []string{"rules[0].nonsense"}},
		"wrong-case":   {manifest: custom(rbac, "Role", "wrong-case", `"Rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]`), says: []string{`unknown field "Rules" (did you mean "rules"?)`}},
		"binding":      {manifest: custom(rbac, "RoleBinding", "binding", `"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"role"},"bogus":1`), dropped: []string{"bogus"}},
		"role-NS":      {manifest: custom(rbac, "ClusterRole", "role-NS", `"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"],"nonsense":"x"}]`), dropped: []string{"rules[0].nonsense"}},
		"binding-NS":   {manifest: custom(rbac, "ClusterRoleBinding", "binding-NS", `"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"role-NS"},"bogus":1`), dropped: []string{"bogus"}},
		"budget":       {manifest: custom("policy/v1", "PodDisruptionBudget", "budget", `"spec":{"bogus":1,"maxUnavailable":1,"selector":{"matchExpressions":[{"key":"a","operator":"Exists","x":1}]}}`), dropped: []string{"spec.bogus", "spec.selector.matchExpressions[0].x"}},
		"priority-NS":  {manifest: custom("scheduling.k8s.io/v1", "PriorityClass", "priority-NS", `"value":1,"bogus":1`), dropped: []string{"bogus"}},
		"network":      {manifest: custom("networking.k8s.io/v1", "NetworkPolicy", "network", `"spec":{"podSelector":{},"bogus":1}`), dropped: []string{"spec.bogus"}},
		"autoscaler":   {manifest: custom("autoscaling.k8s.io/v1", "VerticalPodAutoscaler", "autoscaler", `"spec":{"known":"a","a":1,"raw":{"b":1}}`), dropped: []string{"spec.a"}, keeps: map[string]any{"spec": map[string]any{"known": "a", "raw": map[string]any{"b": int64(1)}}}},
		"monitor":      {manifest: custom("monitoring.coreos.com/v1", "ServiceMonitor", "monitor", specs), dropped: []string{"spec.bogus"}},
		"alert":        {manifest: custom("monitoring.coreos.com/v1", "PrometheusRule", "alert", specs), dropped: []string{"spec.bogus"}},
		"sample-NS":    {manifest: custom("console.openshift.io/v1", "ConsoleYAMLSample", "sample-NS", specs), dropped: []string{"spec.bogus"}},
		"start-NS":     {manifest: custom("console.openshift.io/v1", "ConsoleQuickStart", "start-NS", specs), dropped: []string{"spec.bogus"}},
		"download-NS":  {manifest: custom("console.openshift.io/v1", "ConsoleCLIDownload", "download-NS", specs), dropped: []string{"spec.bogus"}},
		"link-NS":      {manifest: custom("console.openshift.io/v1", "ConsoleLink", "link-NS", specs), dropped: []string{"spec.bogus"}},
		"plugin-NS":    {manifest: custom("console.openshift.io/v1", "ConsolePlugin", "plugin-NS", `"known":"a","bogus":1`), dropped: []string{"bogus"}, keeps: map[string]any{"known": "a"}},
		"metadata":     {manifest: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"metadata","bogus":1},"data":{}}`, dropped: []string{"metadata.bogus"}},
		"metadata-too": {manifest: `{"apiVersion":"monitoring.coreos.com/v1","kind":"ServiceMonitor","metadata":{"name":"metadata-too","bogus":1},"spec":{}}`, dropped: []string{"metadata.bogus"}},
		// Null fields count as absent.
		"null-field":  {manifest: custom("v1", "Service", "null-field", `"spec":{"clusterIP":null,"ports":[{"port":80}]}`)},
		"null-list":   {manifest: custom("v1", "ServiceAccount", "null-list", `"imagePullSecrets":null`)},
		"null-custom": {manifest: custom("monitoring.coreos.com/v1", "ServiceMonitor", "null-custom", `"spec":{"known":null}`), keeps: map[string]any{"spec": map[string]any{}}},
		"generated":   {manifest: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"generated","creationTimestamp":null},"data":{},"status":{}}`},
	}
	return rows
}

const (
	// unknownInDefinition has fields of v1beta1, and some that never were.
	unknownInDefinition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"bulbs.NS.example"},"spec":{
		"bogus":1,"group":"NS.example","scope":"Namespaced","preserveUnknownFields":false,"version":"v1","validation":{"openAPIV3Schema":{"type":"object"}},
		"additionalPrinterColumns":[{"name":"a","type":"string","JSONPath":".a"}],"names":{"plural":"bulbs","kind":"Bulb","bogus":1},
		"versions":[{"name":"v1","served":true,"storage":true,"bogus":1,"schema":{"openAPIV3Schema":{"type":"object","properties":{"x":{"type":"string","bogus":1}}}}}]}}`
	// extendedDefinition has the extensions of schemas.
	extendedDefinition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"lenses.NS.example"},"spec":{
		"group":"NS.example","scope":"Namespaced","names":{"plural":"lenses","kind":"Lens"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{
			"raw":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
			"port":{"x-kubernetes-int-or-string":true},
			"pod":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true},
			"list":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"}}}},
			"map":{"type":"object","x-kubernetes-map-type":"atomic","properties":{"a":{"type":"string"}}},
			"rule":{"type":"integer","x-kubernetes-validations":[{"rule":"self > 0"}]}}}}}]}}`
)

// TestUnknownFieldsOfEveryKind installs a bundle with objects of all kinds that a plan may hold.
// Unknown fields are dropped and named; all others are stored.
func TestUnknownFieldsOfEveryKind(t *testing.T) {
	w := newWorld(t)
	w.kind("autoscaling.k8s.io", "VerticalPodAutoscaler", known, apiextensionsv1.NamespaceScoped)
	w.kind("monitoring.coreos.com", "ServiceMonitor", known, apiextensionsv1.NamespaceScoped)
	w.kind("monitoring.coreos.com", "PrometheusRule", known, apiextensionsv1.NamespaceScoped)
	for _, kind := range []string{"ConsoleYAMLSample", "ConsoleQuickStart", "ConsoleCLIDownload", "ConsoleLink"} {
		w.kind("console.openshift.io", kind, known, apiextensionsv1.ClusterScoped)
	}
	w.kind("console.openshift.io", "ConsolePlugin", atTheTop, apiextensionsv1.ClusterScoped)
	w.Create(w.group("group"))
	w.supervise(time.Second)

	rows := fieldRows()
	rows["bulbs.NS.example"] = fieldRow{manifest: unknownInDefinition, dropped: []string{
		"spec.additionalPrinterColumns", "spec.bogus", "spec.names.bogus", "spec.validation", "spec.version",
		"spec.versions[0].bogus", "spec.versions[0].schema.openAPIV3Schema.properties.x.bogus",
	}}
	rows["lenses.NS.example"] = fieldRow{manifest: extendedDefinition}
	var objects []string
	want := map[string][]string{"lamp.v1": {`unknown field "spec.bogus"`}}
	for name, row := range rows {
		objects = append(objects, strings.ReplaceAll(row.manifest, "NS", w.Namespace))
		says := slices.Clone(row.says)
		for _, path := range row.dropped {
			says = append(says, fmt.Sprintf("unknown field %q", path))
		}
		slices.Sort(says)
		if len(says) > 0 {
			want[strings.ReplaceAll(name, "NS", w.Namespace)] = says
		}
	}
	b := w.bundle(objects...)
	b.Objects[0] = strings.Replace(b.Objects[0], `"displayName"`, `"bogus":1,"displayName"`, 1)
	counted := w.counters()
	w.plan(b, true, plansteps.MaxInline)
	p := w.reaches(complete)

	names := map[string]string{}
	for i, s := range p.Status.Plan {
		names[fmt.Sprintf("status.plan[%d]", i)] = s.Resource.Name
	}
	got := map[string][]string{}
	for path, note := range w.warningEvents(len(want)) {
		_, after, _ := strings.Cut(note, "): ")
		texts := strings.Split(after, ", ")
		slices.Sort(texts)
		got[names[path]] = texts
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings by object (-want +got):\n%s", diff)
	}
	after := w.counters()
	for kind, n := range map[string]float64{"": float64(len(want)), "Service": 2, "CustomResourceDefinition": 7, "BundleSecret": 1} {
		if got := after[kind] - counted[kind]; got != n {
			t.Errorf("%v are counted of kind %q, want %v", got, kind, n)
		}
	}
	for name, row := range rows {
		manifest := manifestOf(t, strings.ReplaceAll(row.manifest, "NS", w.Namespace))
		stored := w.stored(manifest)
		for _, path := range row.dropped {
			if _, found, _ := unstructured.NestedFieldNoCopy(stored, strings.Split(path, ".")...); found {
				t.Errorf("%s: %s is stored", name, path)
			}
		}
		for field, value := range row.keeps {
			if diff := cmp.Diff(value, stored[field]); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", name, field, diff)
			}
		}
	}
	w.extensionsAreKept()
}

// counters returns how many fields were dropped by kind, and how many steps had warnings as "".
func (w *world) counters() map[string]float64 {
	w.T.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		w.T.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		switch family.GetName() {
		case "installplan_warnings_total":
			found[""] = family.GetMetric()[0].GetCounter().GetValue()
		case "chandlery_installplan_dropped_fields_total":
			for _, m := range family.GetMetric() {
				found[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	return found
}

// extensionsAreKept compares the schema of a definition in the cluster with its manifest.
func (w *world) extensionsAreKept() {
	w.T.Helper()
	manifest := manifestOf(w.T, strings.ReplaceAll(extendedDefinition, "NS", w.Namespace))
	schema := func(o map[string]any) any {
		versions, _, _ := unstructured.NestedSlice(o, "spec", "versions")
		first, _ := versions[0].(map[string]any)
		return first["schema"]
	}
	if diff := cmp.Diff(schema(manifest.Object), schema(w.stored(manifest))); diff != "" {
		w.T.Errorf("schema (-want +got):\n%s", diff)
	}
}

// TestFieldsThatTheClusterLearns brings a definition with an object that has an unknown field, and
// adds the field to the definition later.
func TestFieldsThatTheClusterLearns(t *testing.T) {
	w := newWorld(t)
	w.Create(w.group("group"))
	crd := kindOf(t, "autoscaling.k8s.io", "VerticalPodAutoscaler", known, apiextensionsv1.NamespaceScoped)
	bundled := text(t, crd)
	approval := `"metadata":{"annotations":{"api-approved.kubernetes.io":"unapproved, it is part of a test"},`
	bundled = strings.Replace(bundled, `"metadata":{`, approval, 1)
	w.goneAtEnd(crd)
	stop := w.supervise(time.Second)
	w.plan(w.bundle(bundled, lampAutoscaler), true, plansteps.MaxInline)
	p := w.reaches(complete)
	w.warningEvents(1)
	before := w.versions()

	learns := func(schema, manifest string) {
		t.Helper()
		w.Eventually(func() error {
			live := &apiextensionsv1.CustomResourceDefinition{}
			if err := w.Get(t.Context(), client.ObjectKeyFromObject(crd), live); err != nil {
				return err
			}
			live.Spec.Versions[0].Schema.OpenAPIV3Schema = new(schemaOf(t, schema))
			return w.Update(t.Context(), live)
		}).Should(gomega.Succeed())
		// The API server applies the definition after a moment.
		w.Eventually(func() int64 {
			heard := w.warningCount()
			probe := manifestOf(t, manifest)
			probe.SetName("probe")
			probe.SetNamespace(w.Namespace)
			if err := w.Client.Create(t.Context(), probe, client.DryRunAll); err != nil {
				return -1
			}
			return w.warningCount() - heard
		}).Should(gomega.BeZero())
	}
	learns(strings.Replace(known, `"known":`, `"targetRef":{"type":"object","properties":{"name":{"type":"string"}}},"known":`, 1), lampAutoscaler)
	stop()
	w.supervise(time.Second)
	w.Consistently(w.versions).WithTimeout(time.Second).Should(gomega.Equal(before))

	field := func(path ...string) any {
		got, _, _ := unstructured.NestedFieldNoCopy(w.stored(manifestOf(t, lampAutoscaler)), path...)
		return got
	}
	w.Expect(field("spec", "targetRef")).To(gomega.BeNil())
	again := func(manifest string) {
		t.Helper()
		w.Expect(w.Delete(t.Context(), p)).To(gomega.Succeed())
		w.plan(w.bundle(manifest), true, plansteps.MaxInline)
		p = w.reaches(complete)
	}
	again(lampAutoscaler)
	w.Expect(field("spec", "targetRef", "name")).To(gomega.Equal("lamp"))

	// Fields that the definition preserves are stored.
	more := strings.Replace(lampAutoscaler, `"spec":{`, `"top":1,"spec":{"new":"x",`, 1)
	learns(preserves, more)
	again(more)
	w.Expect(field("spec", "new")).To(gomega.Equal("x"))
	w.Expect(field("top")).To(gomega.Equal(int64(1)))
	w.warningEvents(1)
}

// TestValuesThatACreateRefuses has objects that a create refuses: their plans fail with the message
// of the API server.
func TestValuesThatACreateRefuses(t *testing.T) {
	w := newWorld(t)
	w.kind("monitoring.coreos.com", "ServiceMonitor", known, apiextensionsv1.NamespaceScoped)
	w.Create(w.group("group"))
	w.supervise(time.Millisecond)
	warned := 0
	for _, tt := range []struct {
		name, manifest, says, warns string
	}{
		{"a number is a text", custom("v1", "Service", "x", `"spec":{"ports":[{"port":"x"}]}`), `json: cannot unmarshal string into Go struct field ServicePort.spec.ports.port of type int32`, ""},
		{"a text is a number", custom("monitoring.coreos.com/v1", "ServiceMonitor", "x", `"spec":{"known":1}`), `spec.known: Invalid value: "integer": spec.known in body must be of type string: "integer"`, ""},
		{"a required field is null", custom("rbac.authorization.k8s.io/v1", "RoleBinding", "x", `"roleRef":null`), `roleRef.name: Required value`, ""},
		{"a required field is in wrong case", custom("rbac.authorization.k8s.io/v1", "RoleBinding", "x", `"RoleRef":{"kind":"Role","name":"x"}`), `roleRef.name: Required value`, `unknown field "RoleRef" (did you mean "roleRef"?)`},
	} {
		w.plan(w.bundle(tt.manifest), true, plansteps.MaxInline)
		p := w.reaches(failed)
		if !strings.Contains(p.Status.Message, tt.says) {
			t.Errorf("%s: message %q", tt.name, p.Status.Message)
		}
		if tt.warns != "" {
			warned++
			for _, note := range w.warningEvents(warned) {
				if !strings.HasSuffix(note, tt.warns) {
					t.Errorf("%s: Event %q", tt.name, note)
				}
			}
		}
		w.Expect(w.Delete(t.Context(), p)).To(gomega.Succeed())
	}
	w.warningEvents(warned)
}

// TestRefusedPlanReportsItsWarnings has a definition that ends the plan before a step is applied.
// Events still report the fields that the other objects would lose.
func TestRefusedPlanReportsItsWarnings(t *testing.T) {
	w := newWorld(t)
	w.ownNamespace()
	w.served(w.lamps(map[string]string{"v1": anything}))
	w.supervise(time.Second)
	service := custom("v1", "Service", "lamp", `"spec":{"bogus":1,"ports":[{"port":80}]}`)
	w.plan(w.bundle(text(t, w.lamps(map[string]string{"v1": coloured})), service), true, plansteps.MaxInline)
	w.reaches(failed)
	for _, note := range w.warningEvents(1) {
		if want := `1 warning(s) generated during installation of operator "lamp.v1" (Service "lamp"): unknown field "spec.bogus"`; note != want {
			t.Errorf("Event %q, want %q", note, want)
		}
	}
	w.expectNothingCreated()
	live := manifestOf(t, service)
	live.SetNamespace(w.Namespace)
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(live), live); !apierrors.IsNotFound(err) {
		t.Errorf("Service: error %v", err)
	}
}
