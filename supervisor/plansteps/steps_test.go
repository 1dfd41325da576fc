package plansteps

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/chandlery/chandlery/supervisor/api"
)

const (
	csvManifest = `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion",
		"metadata":{"name":"lamp.v1.0.0","namespace":"elsewhere","annotations":{"kept":"yes"}},
		"spec":{"displayName":"Lamp","replaces":"lamp.v0.0.1","version":"1.0.0","install":{"strategy":"deployment","spec":{
			"permissions":[{"serviceAccountName":"lamp","rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]},
				{"serviceAccountName":"default","rules":[{"apiGroups":[""],"resources":["events"],"verbs":["create"]}]}],
			"clusterPermissions":[{"serviceAccountName":"lamp","rules":[{"apiGroups":[""],"resources":["nodes"],"verbs":["list"]}]}],
			"deployments":[]}}},
		"status":{"phase":"Succeeded"}}`
	crdManifest = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"lamps.shop.example"},
		"spec":{"group":"shop.example","maximum":9223372036854775807}}`
	configMapManifest = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","namespace":"elsewhere"},"data":{"a":"b"}}`
	secretManifest    = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"token"}}`
	accountManifest   = `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"lamp","labels":{"own":"yes"}}}`
	priorityManifest  = `{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"bright"},"value":7}`
	foreignManifest   = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"stray"}}`
)

func lamp(objects ...string) Bundle {
	return Bundle{
		Name: "lamp.v1.0.0", Package: "lamp", Channel: "stable",
		Catalog:    types.NamespacedName{Namespace: "olm", Name: "shop"},
		Replaces:   "lamp.v0.9.0",
		Properties: []Property{{Type: "olm.package", Value: `{"packageName":"lamp","version":"1.0.0"}`}},
		Objects:    objects,
	}
}

func mustSteps(t *testing.T, b Bundle) []*operatorsv1alpha1.Step {
	t.Helper()
	steps, err := Steps("home", b, nil)
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

// object returns the object of the step with a kind and a name.
func object(t *testing.T, steps []*operatorsv1alpha1.Step, kind, name string) *unstructured.Unstructured {
	t.Helper()
	for _, s := range steps {
		if s.Resource.Kind != kind || !strings.HasPrefix(s.Resource.Name, name) {
			continue
		}
		u, ref, err := Manifest(s)
		if err != nil || ref != nil {
			t.Fatalf("Manifest(%s %s): reference %v, error %v", kind, name, ref, err)
		}
		return u
	}
	t.Fatalf("there is no step %s %s", kind, name)
	return nil
}

func TestStepsOrder(t *testing.T) {
	b := lamp(configMapManifest, priorityManifest, accountManifest, secretManifest, crdManifest, csvManifest, foreignManifest)
	var got []string
	for _, s := range mustSteps(t, b) {
		name := s.Resource.Name
		if s.Resource.Group == groupRBAC {
			// The names end in a digest.
			name = name[:strings.LastIndex(name, "-")]
		}
		got = append(got, fmt.Sprintf("%s %s %s %s", s.Resource.Kind, name, s.Status, s.Resource.Version))
		if s.Resolving != b.Name || s.Resource.CatalogSource != "shop" || s.Resource.CatalogSourceNamespace != "olm" {
			t.Errorf("step %s %s resolves %s from %s/%s", s.Resource.Kind, name, s.Resolving, s.Resource.CatalogSourceNamespace, s.Resource.CatalogSource)
		}
	}
	want := []string{
		"ClusterServiceVersion lamp.v1.0.0 Unknown v1alpha1",
		"CustomResourceDefinition lamps.shop.example Unknown v1",
		"ServiceAccount lamp Unknown v1",
		"Role lamp.v1.0.0-lamp Unknown v1",
		"Role lamp.v1.0.0-default Unknown v1",
		"ClusterRole lamp.v1.0.0 Unknown v1",
		"RoleBinding lamp.v1.0.0-lamp Unknown v1",
		"RoleBinding lamp.v1.0.0-default Unknown v1",
		"ClusterRoleBinding lamp.v1.0.0 Unknown v1",
		"ConfigMap settings Unknown v1",
		"Deployment stray UnsupportedResource v1",
		"PriorityClass bright Unknown v1",
		"BundleSecret token Unknown v1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

func TestStepsPlaceAndLabelObjects(t *testing.T) {
	steps := mustSteps(t, lamp(csvManifest, crdManifest, configMapManifest, secretManifest, accountManifest, priorityManifest, foreignManifest))
	owner := map[string]string{api.LabelManaged: "true", api.LabelOwner: "lamp.v1.0.0", api.LabelOwnerNamespace: "home", api.LabelOwnerKind: "ClusterServiceVersion"}
	managed := map[string]string{api.LabelManaged: "true"}
	for _, tt := range []struct {
		kind, name, reason string
		namespace          string
		labels             map[string]string
	}{
		{kind: "ClusterServiceVersion", reason: "the plan's namespace wins over the manifest's", namespace: "home", labels: map[string]string{
			api.LabelManaged: "true", "operators.coreos.com/lamp.home": "", api.LabelCatalogNamespace: "olm", api.LabelCatalog: "shop",
		}},
		{kind: "CustomResourceDefinition", reason: "a definition outlives its version and is owned by none", labels: managed},
		{kind: "ConfigMap", reason: "the plan's namespace wins over the manifest's", namespace: "home", labels: managed},
		{kind: "BundleSecret", reason: "a namespace is added", namespace: "home", labels: managed},
		{kind: "ServiceAccount", reason: "the bundle's own account is kept, not the generated one", namespace: "home", labels: map[string]string{api.LabelManaged: "true", "own": "yes"}},
		{kind: "PriorityClass", reason: "what has no namespace carries its owner as labels", labels: owner},
		{kind: "Deployment", reason: "what a plan may not hold is left as it is"},
	} {
		u := object(t, steps, tt.kind, tt.name)
		if u.GetNamespace() != tt.namespace {
			t.Errorf("%s is in namespace %q, want %q: %s", tt.kind, u.GetNamespace(), tt.namespace, tt.reason)
		}
		if diff := cmp.Diff(tt.labels, u.GetLabels()); diff != "" {
			t.Errorf("labels of %s: %s (-want +got):\n%s", tt.kind, tt.reason, diff)
		}
	}
}

func TestStepsCompleteTheCSV(t *testing.T) {
	b := lamp(csvManifest)
	csv := object(t, mustSteps(t, b), "ClusterServiceVersion", "")
	if replaces, _, _ := unstructured.NestedString(csv.Object, "spec", "replaces"); replaces != b.Replaces {
		t.Errorf("spec.replaces is %q, want %q", replaces, b.Replaces)
	}
	if _, found := csv.Object["status"]; found {
		t.Error("the status in the manifest was kept")
	}
	if diff := cmp.Diff([]string{api.FinalizerCleanup}, csv.GetFinalizers()); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	want := map[string]string{
		"kept":                   "yes",
		api.AnnotationProperties: `{"properties":[{"type":"olm.package","value":{"packageName":"lamp","version":"1.0.0"}}]}`,
	}
	if diff := cmp.Diff(want, csv.GetAnnotations()); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}

	b.Replaces = ""
	csv = object(t, mustSteps(t, b), "ClusterServiceVersion", "")
	if replaces, found, _ := unstructured.NestedString(csv.Object, "spec", "replaces"); found {
		t.Errorf("spec.replaces %q was kept though nothing is replaced", replaces)
	}
}

// TestStepsDropRecords uses a bundle with labels and annotations that bound the clean-up of its version.
func TestStepsDropRecords(t *testing.T) {
	claims := `"kept":"yes","olm.targetNamespaces":"","olm.operatorGroup":"own","olm.operatorNamespace":"kitchen",` +
		`"chandlery.dev/operator-group-account":"","chandlery.dev/withdrawn":"to-return"`
	manifest := strings.Replace(csvManifest, `"kept":"yes"`, claims, 1)
	labels := `"labels":{"own":"yes","chandlery.dev/operator-group-account":"none"},"annotations"`
	b := lamp(strings.Replace(manifest, `"annotations"`, labels, 1))
	csv := object(t, mustSteps(t, b), "ClusterServiceVersion", "")
	if _, found := csv.GetLabels()[api.LabelGroupAccount]; found || csv.GetLabels()["own"] != "yes" {
		t.Errorf("labels %v", csv.GetLabels())
	}
	got := slices.Sorted(maps.Keys(csv.GetAnnotations()))
	want := []string{"kept", api.AnnotationProperties}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

func TestStepsKeepWholeNumbers(t *testing.T) {
	crd := object(t, mustSteps(t, lamp(csvManifest, crdManifest)), "CustomResourceDefinition", "")
	text, err := crd.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), ":9223372036854775807") {
		t.Errorf("a number of 64 bits was changed: %s", text)
	}
}

func TestStepsRBAC(t *testing.T) {
	steps := mustSteps(t, lamp(csvManifest))
	role := object(t, steps, "Role", "lamp.v1.0.0-lamp-")
	binding := object(t, steps, "RoleBinding", "lamp.v1.0.0-lamp-")
	cluster := object(t, steps, "ClusterRole", "lamp.v1.0.0-")
	for _, u := range []*unstructured.Unstructured{role, binding, cluster} {
		if got := u.GetLabels()[api.LabelOwner] + " " + u.GetLabels()[api.LabelOwnerNamespace] + " " + u.GetLabels()[api.LabelOwnerKind]; got != "lamp.v1.0.0 home ClusterServiceVersion" {
			t.Errorf("%s %s has the owner labels %q", u.GetKind(), u.GetName(), got)
		}
		if u.GetLabels()[api.LabelPermissionsHash] == "" {
			t.Errorf("%s %s lacks the label %s", u.GetKind(), u.GetName(), api.LabelPermissionsHash)
		}
		for key, value := range u.GetLabels() {
			if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
				t.Errorf("%s %s: label %s=%s: %v", u.GetKind(), u.GetName(), key, value, problems)
			}
		}
	}
	if role.GetNamespace() != "home" || cluster.GetNamespace() != "" {
		t.Errorf("Role in %q, ClusterRole in %q", role.GetNamespace(), cluster.GetNamespace())
	}
	subjects, _, _ := unstructured.NestedSlice(binding.Object, "subjects")
	want := []any{map[string]any{"kind": "ServiceAccount", "name": "lamp", "namespace": "home"}}
	if diff := cmp.Diff(want, subjects); diff != "" {
		t.Errorf("subjects (-want +got):\n%s", diff)
	}
	if name, _, _ := unstructured.NestedString(binding.Object, "roleRef", "name"); name != role.GetName() {
		t.Errorf("the binding refers to role %q, want %q", name, role.GetName())
	}
}

func TestRBACNamesFitIntoLabels(t *testing.T) {
	long := strings.Repeat("x", 58) // the longest name that fits into a label
	csv := strings.ReplaceAll(csvManifest, "lamp.v1.0.0", "lamp."+long)
	b := lamp(csv)
	b.Name = "lamp." + long
	for _, s := range mustSteps(t, b) {
		if s.Resource.Group == groupRBAC && len(s.Resource.Name) > 63 {
			t.Errorf("%s %s has %d characters", s.Resource.Kind, s.Resource.Name, len(s.Resource.Name))
		}
	}
	// Roles of two accounts differ even if their names are cut at the same place.
	names := map[string]bool{}
	for _, s := range mustSteps(t, b) {
		if s.Resource.Kind == "Role" {
			names[s.Resource.Name] = true
		}
	}
	if len(names) != 2 {
		t.Errorf("two roles share the names %v", names)
	}
}

func TestStepsErrors(t *testing.T) {
	second := strings.ReplaceAll(csvManifest, "lamp.v1.0.0", "other")
	longName := strings.Repeat("l", 70)
	for _, tt := range []struct {
		reason  string
		bundle  Bundle
		changed func(*Bundle)
		want    []string
	}{
		{reason: "nothing inline", bundle: lamp(), want: []string{"bundle lamp.v1.0.0 of package lamp", ErrNoInlineManifests.Error()}},
		{reason: "not JSON", bundle: lamp(csvManifest, "kind: ConfigMap"), want: []string{"manifest 2 of 2 is not a JSON object", "lamp.v1.0.0"}},
		{reason: "not an object", bundle: lamp(csvManifest, "[]"), want: []string{"manifest 2 of 2 is not a JSON object"}},
		{reason: "null", bundle: lamp("null", csvManifest), want: []string{"manifest 1 of 2: it lacks apiVersion and kind", "in the catalog"}},
		{reason: "no kind", bundle: lamp(csvManifest, `{"apiVersion":"v1"}`), want: []string{"manifest 2 of 2: it lacks kind"}},
		{reason: "no apiVersion", bundle: lamp(csvManifest, `{"kind":"PodDisruptionBudget","metadata":{"name":"shade"}}`), want: []string{"manifest 2 of 2: PodDisruptionBudget shade lacks apiVersion"}},
		{reason: "no name", bundle: lamp(csvManifest, `{"apiVersion":"v1","kind":"ConfigMap"}`), want: []string{"the ConfigMap that is manifest 2 of 2 lacks metadata.name"}},
		{reason: "two versions", bundle: lamp(csvManifest, second), want: []string{"two ClusterServiceVersions, lamp.v1.0.0 and other", "a bundle has one"}},
		{reason: "no version", bundle: lamp(configMapManifest), want: []string{"holds no ClusterServiceVersion"}},
		{reason: "no apiVersion of the version", bundle: lamp(strings.Replace(csvManifest, `"apiVersion":"operators.coreos.com/v1alpha1",`, "", 1)), want: []string{"bundle CSV lamp.v1.0.0 missing APIVersion"}},
		{reason: "no kind of the version", bundle: lamp(strings.Replace(csvManifest, `"kind":"ClusterServiceVersion",`, "", 1)), want: []string{"bundle CSV lamp.v1.0.0 missing Kind"}},
		{reason: "another version", bundle: lamp(second), want: []string{"a ClusterServiceVersion named other", "have to be the same"}},
		{reason: "a name that fits no label", bundle: lamp(strings.ReplaceAll(csvManifest, "lamp.v1.0.0", longName)), changed: func(b *Bundle) { b.Name = longName }, want: []string{"the name has 70 characters", "at most 63"}},
		{reason: "spec that is no object", bundle: lamp(`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"lamp.v1.0.0"},"spec":7}`), want: []string{"setting spec.replaces"}},
		{reason: "a field of the wrong type", bundle: lamp(strings.Replace(csvManifest, `"displayName":"Lamp"`, `"displayName":7`, 1)), want: []string{"does not have the shape of operators.coreos.com/v1alpha1"}},
		{reason: "property", bundle: lamp(csvManifest), changed: func(b *Bundle) { b.Properties = []Property{{Type: "odd", Value: "{"}} }, want: []string{"property odd: its value is not JSON"}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			if tt.changed != nil {
				tt.changed(&tt.bundle)
			}
			_, err := Steps("home", tt.bundle, nil)
			if err == nil {
				t.Fatal("there was no error")
			}
			for _, want := range append(tt.want, "bundle "+tt.bundle.Name+" of package lamp") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not contain %q", err, want)
				}
			}
		})
	}
}

func TestStepsDropDuplicates(t *testing.T) {
	steps := mustSteps(t, lamp(csvManifest, configMapManifest, accountManifest, configMapManifest))
	count := map[string]int{}
	for _, s := range steps {
		count[s.Resource.Kind+" "+s.Resource.Name]++
	}
	if count["ConfigMap settings"] != 1 || count["ServiceAccount lamp"] != 1 || count["ServiceAccount default"] != 0 {
		t.Errorf("steps: %v", count)
	}
}

// TestStepsDoNotDependOnTheOrderOfTheBundle also checks that planning twice returns the same plan.
func TestStepsDoNotDependOnTheOrderOfTheBundle(t *testing.T) {
	pool := []string{crdManifest, configMapManifest, secretManifest, accountManifest, priorityManifest, foreignManifest}
	rapid.Check(t, func(t *rapid.T) {
		chosen := rapid.SliceOfDistinct(rapid.SampledFrom(pool), func(s string) string { return s }).Draw(t, "objects")
		shuffled := rapid.Permutation(append(slices.Clone(chosen), csvManifest)).Draw(t, "shuffled")
		first, err := Steps("home", lamp(append([]string{csvManifest}, chosen...)...), nil)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Steps("home", lamp(append([]string{csvManifest}, chosen...)...), nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, again); diff != "" {
			t.Fatalf("planning twice differs:\n%s", diff)
		}
		second, err := Steps("home", lamp(shuffled...), nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatalf("the order of the bundle matters:\n%s", diff)
		}
	})
}

// FuzzSteps plans arbitrary bytes as a manifest and as the value of a property.
func FuzzSteps(f *testing.F) {
	for _, text := range []string{csvManifest, crdManifest, secretManifest, "null", "[]", `{"kind":7}`, `{"apiVersion":"v1","kind":"List","items":[]}`, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":7}}`} {
		f.Add(text, `{"packageName":"lamp"}`)
	}
	f.Fuzz(func(t *testing.T, manifest, property string) {
		b := lamp(csvManifest, manifest)
		b.Properties = []Property{{Type: "any", Value: property}}
		steps, err := Steps("home", b, nil)
		if err != nil {
			return
		}
		for _, s := range steps {
			if !json.Valid([]byte(s.Resource.Manifest)) {
				t.Errorf("step %s %s holds no JSON: %s", s.Resource.Kind, s.Resource.Name, s.Resource.Manifest)
			}
		}
		if err := ReferenceManifests(steps, []Bundle{b}, 0); err != nil {
			t.Error(err)
		}
		for _, s := range steps {
			_, ref, err := Manifest(s)
			if err != nil || ref == nil {
				t.Fatalf("step %s %s: reference %v, error %v", s.Resource.Kind, s.Resource.Name, ref, err)
			}
			if _, err := Resolve(*ref, s, "home", b, nil); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestStepsCompleteTypes plans bundles whose manifests have an incomplete or another type.
func TestStepsCompleteTypes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		version string
		warns   bool
	}{
		{version: "v1alpha1"}, {version: "operators.coreos.com/v1alpha1"}, {version: "app.example/v1alpha1"}, {version: "operators.coreos.com/v1alpha2", warns: true},
	} {
		csv := strings.Replace(csvManifest, "operators.coreos.com/v1alpha1", tt.version, 1)
		b := lamp(csv, `{"kind":"Role","metadata":{"name":"a"}}`, `{"apiVersion":"v1","kind":"PodDisruptionBudget","metadata":{"name":"a"}}`)
		kinds := map[string]bool{}
		steps := mustSteps(t, b)
		for _, s := range steps {
			kinds[s.Resource.Group+"/"+s.Resource.Version+" "+s.Resource.Kind] = true
		}
		for _, want := range []string{"operators.coreos.com/v1alpha1 ClusterServiceVersion", "rbac.authorization.k8s.io/v1 Role", "policy/v1 PodDisruptionBudget"} {
			if !kinds[want] {
				t.Errorf("%s: the steps are of %v, and none is of %s", tt.version, kinds, want)
			}
		}
		warnings, err := ManifestWarnings(steps, []Bundle{b}, nil)
		if err != nil || strings.Contains(warnings, "is read as") != tt.warns {
			t.Errorf("%s: warnings %s, error %v", tt.version, warnings, err)
		}
	}
}
