package webhook

import (
	"encoding/json"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
)

func converter(t *testing.T) Conversion {
	t.Helper()
	csv := fixture()
	servers := mustServers(t, csv)
	if none := Conversions(csv, servers, nil); len(none) != 0 {
		t.Fatalf("conversions without certificates: %v", none)
	}
	all := Conversions(csv, servers, certsFor(t, servers))
	if len(all) != 1 || all[0].CRD != "etcds.example.com" || all[0].Deployment != "etcd.operator" {
		t.Fatalf("conversions are %v", all)
	}
	return all[0]
}

func definition(conversion *apiextensionsv1.CustomResourceConversion, held string) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "etcds.example.com", ResourceVersion: "7"}}
	if held != "" {
		crd.Annotations = map[string]string{api.AnnotationStorageVersion: StorageVersionValue(types.NamespacedName{Namespace: "ns", Name: "etcd.v1"}, held)}
	}
	crd.Spec.Conversion = conversion
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true}, {Name: "v2", Served: true}}
	return crd
}

func none() *apiextensionsv1.CustomResourceConversion {
	return &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
}

// TestNextConversion checks the change to a definition before the new webhook answers and after it has.
func TestNextConversion(t *testing.T) {
	c := converter(t)
	with := func(change func(*apiextensionsv1.WebhookClientConfig)) *apiextensionsv1.CustomResourceConversion {
		out := c.Want.DeepCopy()
		change(out.Webhook.ClientConfig)
		return out
	}
	elsewhere := with(func(w *apiextensionsv1.WebhookClientConfig) { w.Service.Name = "old-service" })
	oldBundle := with(func(w *apiextensionsv1.WebhookClientConfig) { w.CABundle = []byte("old") })
	oldPath := with(func(w *apiextensionsv1.WebhookClientConfig) { w.Service.Path = new("/old") })
	oldBoth := with(func(w *apiextensionsv1.WebhookClientConfig) { w.Service.Path, w.CABundle = new("/old"), []byte("old") })
	byURL := with(func(w *apiextensionsv1.WebhookClientConfig) {
		w.Service, w.URL = nil, new("https://registry.example/convert")
	})
	all := &Change{Conversion: c.Want}
	for name, tt := range map[string]struct {
		live     *apiextensionsv1.CustomResourceConversion
		held     string
		orphaned bool
		before   *Change
		waits    bool
		after    *Change
	}{
		"as wanted":               {live: c.Want.DeepCopy()},
		"none, said":              {live: none(), before: all, after: all},
		"none":                    {before: all, after: all},
		"half a webhook":          {live: &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}, before: all, after: all},
		"one that works":          {live: elsewhere, waits: true, after: all},
		"one that is gone":        {live: elsewhere, orphaned: true, before: all, after: all},
		"one outside the cluster": {live: byURL, waits: true, after: all},
		"another authority":       {live: oldBundle, before: all, after: all},
		"another path":            {live: oldPath, waits: true, after: all},
		"authority and path":      {live: oldBoth, before: &Change{Conversion: oldPath}, waits: true, after: all},
		"storage to come":         {live: c.Want.DeepCopy(), held: "v2", waits: true, after: &Change{Storage: "v2", RemovedAnnotations: []string{api.AnnotationStorageVersion}}},
		"both":                    {live: elsewhere, held: "v2", waits: true, after: &Change{Conversion: c.Want, Storage: "v2", RemovedAnnotations: []string{api.AnnotationStorageVersion}}},
		"none, storage to come":   {live: none(), held: "v2", before: all, waits: true, after: &Change{Conversion: c.Want, Storage: "v2", RemovedAnnotations: []string{api.AnnotationStorageVersion}}},
		"storage that is":         {live: c.Want.DeepCopy(), held: "v1"},
		"storage unknown":         {live: c.Want.DeepCopy(), held: "v9"},
	} {
		t.Run(name, func(t *testing.T) {
			live := definition(tt.live, tt.held)
			change, waits := c.Next(live, ConversionState{ServiceMissing: tt.orphaned})
			if diff := cmp.Diff(tt.before, change); diff != "" || waits != tt.waits {
				t.Errorf("before it answers, waits is %t, want %t; change (-want +got):\n%s", waits, tt.waits, diff)
			}
			change, waits = c.Next(live, ConversionState{Answers: true, ServiceMissing: tt.orphaned})
			if diff := cmp.Diff(tt.after, change); diff != "" || waits {
				t.Errorf("when it answers, waits is %t; change (-want +got):\n%s", waits, diff)
			}
			if change == nil {
				return
			}
			done := patched(t, live, change)
			if again, waits := c.Next(done, ConversionState{Answers: true}); again != nil || waits {
				t.Errorf("after the change there is another: %v", again)
			}
		})
	}
}

// TestStorageIsForOneWebhook checks that a storage version for another ClusterServiceVersion is not set,
// whether that exists or not: the answering webhook does not know the version.
func TestStorageIsForOneWebhook(t *testing.T) {
	c := converter(t)
	for _, noted := range []string{"ns/etcd.v2:v2", "other/etcd.v1:v2", "ns/etcd.v1:v9", "ns/etcd.v1:v1", "v2"} {
		live := definition(c.Want.DeepCopy(), "")
		live.Annotations = map[string]string{api.AnnotationStorageVersion: noted}
		for _, answers := range []bool{false, true} {
			if change, waits := c.Next(live, ConversionState{Answers: answers}); change != nil || waits {
				t.Errorf("noted is %q, answers %t: change is %v, waits is %t", noted, answers, change, waits)
			}
		}
	}
}

// TestGoesOnWithoutConversion checks that a definition with the annotation has no conversion until the webhook
// answers.
func TestGoesOnWithoutConversion(t *testing.T) {
	c := converter(t)
	for name, tt := range map[string]struct {
		live   *apiextensionsv1.CustomResourceConversion
		noted  string
		before *Change
		waits  bool
		after  *Change
	}{
		"for it": {live: none(), noted: "ns/etcd.v1", waits: true, after: &Change{Conversion: c.Want, RemovedAnnotations: []string{api.AnnotationConversion}}},
		"for another": {
			live: none(), noted: "ns/etcd.v2", before: &Change{Conversion: c.Want}, after: &Change{Conversion: c.Want},
		},
		"converted already": {live: c.Want.DeepCopy(), noted: "ns/etcd.v1"},
	} {
		t.Run(name, func(t *testing.T) {
			live := definition(tt.live, "")
			live.Annotations = map[string]string{api.AnnotationConversion: tt.noted}
			change, waits := c.Next(live, ConversionState{})
			if diff := cmp.Diff(tt.before, change); diff != "" || waits != tt.waits {
				t.Errorf("before it answers, waits is %t; change (-want +got):\n%s", waits, diff)
			}
			change, waits = c.Next(live, ConversionState{Answers: true})
			if diff := cmp.Diff(tt.after, change); diff != "" || waits {
				t.Errorf("when it answers, waits is %t; change (-want +got):\n%s", waits, diff)
			}
			if change == nil {
				return
			}
			if again, waits := c.Next(patched(t, live, change), ConversionState{Answers: true}); again != nil || waits {
				t.Errorf("after the change there is another: %v", again)
			}
		})
	}
}

// TestServesWhenConverted checks that delayed versions are served as soon as the webhook is set up for them,
// and no other versions.
func TestServesWhenConverted(t *testing.T) {
	c := converter(t)
	for name, tt := range map[string]struct {
		live  *apiextensionsv1.CustomResourceConversion
		noted string
		want  *Change
	}{
		"with its conversion": {live: none(), noted: "ns/etcd.v1:v2", want: &Change{Conversion: c.Want, Serve: []string{"v2"}, RemovedAnnotations: []string{api.AnnotationServedVersions}}},
		"after it":            {live: c.Want.DeepCopy(), noted: "ns/etcd.v1:v2", want: &Change{Serve: []string{"v2"}, RemovedAnnotations: []string{api.AnnotationServedVersions}}},
		"for another":         {live: none(), noted: "ns/etcd.v2:v2", want: &Change{Conversion: c.Want}},
		"one that is gone":    {live: none(), noted: "ns/etcd.v1:v3", want: &Change{Conversion: c.Want}},
	} {
		t.Run(name, func(t *testing.T) {
			live := definition(tt.live, "")
			live.Annotations, live.Spec.Versions[1].Served = map[string]string{api.AnnotationServedVersions: tt.noted}, false
			change, waits := c.Next(live, ConversionState{})
			if diff := cmp.Diff(tt.want, change); diff != "" || waits {
				t.Fatalf("waits is %t; change (-want +got):\n%s", waits, diff)
			}
			done := patched(t, live, change)
			if served := len(tt.want.Serve) > 0; done.Spec.Versions[1].Served != served {
				t.Errorf("served is %t, want %t", !served, served)
			}
			if again, _ := c.Next(done, ConversionState{}); again != nil {
				t.Errorf("after the change there is another: %v", again)
			}
		})
	}
}

// TestRemoveDeferralAnnotations checks that the annotations for a deleted version are removed, and no others.
func TestRemoveDeferralAnnotations(t *testing.T) {
	c := converter(t)
	live := definition(none(), "v2")
	live.Annotations["other"], live.Annotations[api.AnnotationConversion] = "kept", "ns/etcd.v1"
	live.Annotations[api.AnnotationServedVersions] = "ns/etcd.v1:v2"
	if change := RemoveAnnotations(live, types.NamespacedName{Namespace: "ns", Name: "etcd"}); change != nil {
		t.Errorf("what is noted for another version is taken back: %v", change)
	}
	done := patched(t, live, RemoveAnnotations(live, c.CSV))
	if diff := cmp.Diff(map[string]string{"other": "kept"}, done.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if RemoveAnnotations(done, c.CSV) != nil {
		t.Error("nothing is noted any more, and taken back again")
	}
}

// patched returns a definition after a change, by way of the patch.
func patched(t *testing.T, live *apiextensionsv1.CustomResourceDefinition, change *Change) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	body, err := change.Patch(live)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(live)
	if err != nil {
		t.Fatal(err)
	}
	if text, err = patch.Apply(text); err != nil {
		t.Fatal(err)
	}
	out := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(text, out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(body), `"path":"/metadata/resourceVersion","value":"7"`) {
		t.Error("the patch changes a definition that has changed since it was read")
	}
	return out
}

// TestRemoveConversion checks the change to a conversion whose webhook is deleted.
func TestRemoveConversion(t *testing.T) {
	c := converter(t)
	servers := mustServers(t, fixture())
	other := c.Want.DeepCopy()
	other.Webhook.ClientConfig.Service.Name = "other-service"
	toNone := &Change{Conversion: none()}
	for name, tt := range map[string]struct {
		live      *apiextensionsv1.CustomResourceConversion
		namespace string
		stored    []string
		empty     bool
		want      *Change
		left      string
	}{
		"one form":                {live: c.Want, stored: []string{"v1"}, want: toNone},
		"no objects":              {live: c.Want, stored: []string{"v1", "v2"}, empty: true, want: toNone},
		"two forms":               {live: c.Want, stored: []string{"v1", "v2"}, left: "stored in the versions [v1 v2]"},
		"stored in an old form":   {live: c.Want, stored: []string{"v2"}, left: "stored in the versions [v2]"},
		"converted by another":    {live: other, stored: []string{"v1"}},
		"of another namespace":    {live: c.Want, namespace: "other", stored: []string{"v1"}},
		"not converted":           {live: none(), stored: []string{"v1"}},
		"not converted, unspoken": {stored: []string{"v1"}},
	} {
		t.Run(name, func(t *testing.T) {
			live := definition(tt.live, "")
			live.Status.StoredVersions = tt.stored
			if tt.namespace == "" {
				tt.namespace = "ns"
			}
			change, left := RemoveConversion(live, tt.namespace, servers, tt.empty)
			if diff := cmp.Diff(tt.want, change); diff != "" {
				t.Errorf("change (-want +got):\n%s", diff)
			}
			if (left == "") != (tt.left == "") || !strings.Contains(left, tt.left) {
				t.Errorf("left is %q, want %q", left, tt.left)
			}
			if change != nil {
				if done := patched(t, live, change); done.Spec.Conversion.Webhook != nil {
					t.Error("the webhook stays beside the strategy None, which the API server refuses")
				}
			}
		})
	}
}
