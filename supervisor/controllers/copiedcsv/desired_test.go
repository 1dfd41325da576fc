package copiedcsv

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chandlery/chandlery/supervisor/api"
)

func TestTemplateOf(t *testing.T) {
	csv := kettle("")
	before := csv.DeepCopy()
	template := templateOf(csv)
	want := map[string]string{api.LabelCopiedFrom: home, "olm.api.abc": "provided"}
	if diff := cmp.Diff(want, template.Labels); diff != "" {
		t.Errorf("labels: -want, +got:\n%s", diff)
	}
	want = map[string]string{"olm.operatorGroup": "group", "olm.operatorNamespace": home, "alm-examples": "[]"}
	if diff := cmp.Diff(want, template.Annotations); diff != "" {
		t.Errorf("annotations: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(csv.Spec, template.Spec); diff != "" {
		t.Errorf("spec: -want, +got:\n%s", diff)
	}
	status := csv.Status
	status.Reason, status.Message = operatorsv1alpha1.CSVReasonCopied, "The operator is running in kitchen but is managing this namespace"
	if diff := cmp.Diff(status, template.Status); diff != "" {
		t.Errorf("status: -want, +got:\n%s", diff)
	}
	if template.UID != "" || template.ResourceVersion != "" || template.Namespace != "" {
		t.Errorf("the image has metadata of its origin: %+v", template.ObjectMeta)
	}
	if diff := cmp.Diff(before, csv); diff != "" {
		t.Errorf("the version was changed:\n%s", diff)
	}
	if !operatorsv1alpha1.IsCopied(template) {
		t.Error("clients do not take the image for a copy")
	}
}

func TestFingerprintSeparatesStatus(t *testing.T) {
	of := func(change func(*operatorsv1alpha1.ClusterServiceVersion)) fingerprint {
		csv := kettle("")
		change(csv)
		want, err := fingerprintOf(templateOf(csv))
		if err != nil {
			t.Fatal(err)
		}
		return want
	}
	first := of(func(*operatorsv1alpha1.ClusterServiceVersion) {})
	for name, tc := range map[string]struct {
		change          func(*operatorsv1alpha1.ClusterServiceVersion)
		content, status bool
	}{
		"Nothing":    {func(*operatorsv1alpha1.ClusterServiceVersion) {}, true, true},
		"Metadata":   {func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.ResourceVersion, csv.UID = "11", "other" }, true, true},
		"NotShown":   {func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.Labels["operators.coreos.com/x"] = "" }, true, true},
		"Label":      {func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.Labels["x"] = "y" }, false, true},
		"Annotation": {func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.Annotations["x"] = "y" }, false, true},
		"Spec":       {func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.Spec.Description = "hot" }, false, true},
		"Phase": {func(csv *operatorsv1alpha1.ClusterServiceVersion) {
			csv.Status.Phase = operatorsv1alpha1.CSVPhaseFailed
		}, true, false},
		"Reason": {func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.Status.Reason = "other" }, true, true},
	} {
		got := of(tc.change)
		if (got.content == first.content) != tc.content || (got.status == first.status) != tc.status {
			t.Errorf("%s: same content %t, same status %t; want %t, %t", name,
				got.content == first.content, got.status == first.status, tc.content, tc.status)
		}
	}
}

// TestManifestMatchesStoredCopy encodes and decodes a copy.
func TestManifestMatchesStoredCopy(t *testing.T) {
	template := templateOf(kettle(""))
	u, err := manifestFor(template, "pantry")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := u.Object["status"]; ok || u.GetNamespace() != "pantry" {
		t.Errorf("applied %v in namespace %q, want no status, in pantry", u.Object["status"], u.GetNamespace())
	}
	if path := firstNull(u.Object, ""); path != "" {
		t.Errorf("%s is null, which an apply would set", path)
	}
	var live operatorsv1alpha1.ClusterServiceVersion
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &live); err != nil {
		t.Fatal(err)
	}
	if !sameContent(&live, template) {
		t.Errorf("what is read back differs:\n%s", cmp.Diff(template.Spec, live.Spec))
	}
	if sameStatus(&live, template) {
		t.Error("a copy without a status is taken for one that has it")
	}
	live.Labels["x"] = "y"
	if sameContent(&live, template) {
		t.Error("a label that was added goes unnoticed")
	}
}

func firstNull(value any, path string) string {
	switch v := value.(type) {
	case nil:
		return path
	case map[string]any:
		for key, inner := range v {
			if found := firstNull(inner, path+"."+key); found != "" {
				return found
			}
		}
	case []any:
		for _, inner := range v {
			if found := firstNull(inner, path+"[]"); found != "" {
				return found
			}
		}
	}
	return ""
}

func TestStripMetadataKeepsIdentity(t *testing.T) {
	meta := copyIn("pantry")
	want := meta.DeepCopy()
	meta.Labels["olm.api.abc"], meta.Annotations = "provided", map[string]string{"alm-examples": "[…]"}
	meta.Finalizers, meta.Generation = []string{"x"}, 7
	meta.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x"}}
	got, err := stripMetadata(meta)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
