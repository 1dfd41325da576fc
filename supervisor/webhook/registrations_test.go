package webhook

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chandlery/chandlery/supervisor/api"
)

func TestDesiredRegistrations(t *testing.T) {
	group := allNamespaces()
	group.Spec.TargetNamespaces = []string{"ns"}
	o, certs := desired(t, group)
	d := fixture().Spec.WebhookDefinitions[0]
	labels := map[string]string{api.LabelWebhook: "vetcd.example.com", api.LabelWebhookHash: hash(&d)}
	maps.Copy(labels, ours)
	want := &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: o.Validating[0].Name, Labels: labels},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "vetcd.example.com", Rules: d.Rules, SideEffects: d.SideEffects, AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"olm.operatorgroup.uid/group-uid": ""}},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				Service:  &admissionregistrationv1.ServiceReference{Namespace: "ns", Name: "etcd-operator-service", Port: new(int32(443))},
				CABundle: certs["etcd.operator"].Bundle(),
			},
		}},
	}
	if diff := cmp.Diff(want, o.Validating[0]); diff != "" {
		t.Errorf("validating (-want +got):\n%s", diff)
	}
	if len(o.Mutating) != 1 || o.Mutating[0].Labels[api.LabelWebhook] != "metcd.example.com" || o.Mutating[0].Webhooks[0].ClientConfig.Service.Name != "etcd-operator-service" {
		t.Errorf("mutating is %v", o.Mutating)
	}
	service := map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": "v1.backup.example.com", "labels": map[string]any{
			"olm.managed": "true", "olm.owner": "etcd.v1", "olm.owner.namespace": "ns", "olm.owner.kind": "ClusterServiceVersion",
		}},
		"spec": map[string]any{
			"group": "backup.example.com", "version": "v1", "groupPriorityMinimum": int64(2000), "versionPriority": int64(15),
			"caBundle": base64.StdEncoding.EncodeToString(certs["etcd-api"].Bundle()),
			"service":  map[string]any{"namespace": "ns", "name": "etcd-api-service", "port": int64(8443)},
		},
	}
	if len(o.APIServices) != 1 {
		t.Fatalf("%d APIServices for one version of a group", len(o.APIServices))
	}
	if diff := cmp.Diff(service, o.APIServices[0].Object); diff != "" {
		t.Errorf("APIService (-want +got):\n%s", diff)
	}
}

// TestNamespaceSelector checks in which namespaces webhooks are called, for different OperatorGroups.
func TestNamespaceSelector(t *testing.T) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	for name, tt := range map[string]struct {
		spec operatorsv1.OperatorGroupSpec
		want *metav1.LabelSelector
	}{
		"all":         {},
		"by selector": {spec: operatorsv1.OperatorGroupSpec{Selector: selector}, want: selector},
		"by name": {
			spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{"a", "b"}},
			want: &metav1.LabelSelector{MatchLabels: map[string]string{"olm.operatorgroup.uid/group-uid": ""}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			group := allNamespaces()
			group.Spec = tt.spec
			o, _ := desired(t, group)
			if diff := cmp.Diff(tt.want, o.Mutating[0].Webhooks[0].NamespaceSelector); diff != "" {
				t.Errorf("selector (-want +got):\n%s", diff)
			}
		})
	}
}

// TestConfigurationNames checks that names are always the same, differ between namespaces, and are valid for a
// description of any length.
func TestConfigurationNames(t *testing.T) {
	long := strings.Repeat("long.", 60) + "example.com"
	for _, name := range []string{"vetcd.example.com", "Upper.example.com", long} {
		d := &operatorsv1alpha1.WebhookDescription{GenerateName: name}
		here, there := configurationName("ns", d), configurationName("other", d)
		if here == there || here != configurationName("ns", d) {
			t.Errorf("%s: names are %s and %s", name, here, there)
		}
		if errs := validation.IsDNS1123Subdomain(here); len(errs) > 0 {
			t.Errorf("%s: %v", here, errs)
		}
		if errs := validation.IsValidLabelValue(labelValue(name)); len(errs) > 0 {
			t.Errorf("%s: %v", labelValue(name), errs)
		}
	}
}

func TestWebhookHash(t *testing.T) {
	d := fixture().Spec.WebhookDefinitions[0]
	other := d
	other.WebhookPath = new("/other")
	if hash(&d) == hash(&other) || len(validation.IsValidLabelValue(hash(&d))) > 0 {
		t.Errorf("hashes are %s and %s", hash(&d), hash(&other))
	}
}

func lives(names ...string) func(types.NamespacedName) bool {
	return func(n types.NamespacedName) bool { return slices.Contains(names, n.String()) }
}

func ownedBy(namespace, name string) map[string]string {
	return map[string]string{"olm.owner": name, "olm.owner.namespace": namespace, "olm.owner.kind": "ClusterServiceVersion"}
}

// TestAdopt checks which existing configuration becomes the wanted one, and which are surplus.
func TestAdopt(t *testing.T) {
	csv := fixture()
	const made = "made"
	live := func(name, description, namespace, owner string) ExistingConfiguration {
		labels := ownedBy(namespace, owner)
		labels[api.LabelWebhook] = description
		return ExistingConfiguration{Name: name, Labels: labels}
	}
	for name, tt := range map[string]struct {
		live    []ExistingConfiguration
		want    string
		surplus []string
	}{
		"none":                  {want: made},
		"ours":                  {live: []ExistingConfiguration{live(made, "hook", "ns", "etcd.v1")}, want: made},
		"another manager's":     {live: []ExistingConfiguration{live("hook-x7k2p", "hook", "ns", "etcd.v1")}, want: "hook-x7k2p"},
		"the predecessor's":     {live: []ExistingConfiguration{live("hook-x7k2p", "hook", "ns", "etcd.v0")}, want: "hook-x7k2p"},
		"one whose owner went":  {live: []ExistingConfiguration{live("hook-x7k2p", "hook", "ns", "gone")}, want: "hook-x7k2p"},
		"that of a stranger":    {live: []ExistingConfiguration{live("hook-x7k2p", "hook", "ns", "stranger")}, want: made},
		"of another namespace":  {live: []ExistingConfiguration{live("hook-x7k2p", "hook", "other", "etcd.v1")}, want: made},
		"another description":   {live: []ExistingConfiguration{live("other-x7k2p", "other", "ns", "etcd.v1")}, want: made},
		"one before the others": {live: []ExistingConfiguration{live("a", "hook", "ns", "etcd.v0"), live("b", "hook", "ns", "etcd.v1")}, want: "b", surplus: []string{"a"}},
		"ours before all":       {live: []ExistingConfiguration{live("a", "hook", "ns", "etcd.v1"), live(made, "hook", "ns", "etcd.v0")}, want: made, surplus: []string{"a"}},
		"two of another manager": {
			live: []ExistingConfiguration{live("z", "hook", "ns", "etcd.v1"), live("a", "hook", "ns", "etcd.v1")}, want: "a", surplus: []string{"z"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			labels := ownedBy("ns", "etcd.v1")
			labels[api.LabelWebhook] = "hook"
			want := &metav1.ObjectMeta{Name: made, Labels: labels}
			k := OwnerCheck{CSV: csv, Predecessors: []string{"etcd.v0"}, Exists: lives("ns/stranger", "ns/etcd.v0", "ns/etcd.v1", "other/etcd.v1")}
			surplus := Adopt(want, tt.live, k)
			if want.Name != tt.want || !slices.Equal(surplus, tt.surplus) {
				t.Errorf("name is %s, surplus %v; want %s and %v", want.Name, surplus, tt.want, tt.surplus)
			}
		})
	}
}

// TestOtherOwner checks the owners of objects.
func TestOtherOwner(t *testing.T) {
	k := OwnerCheck{CSV: fixture(), Predecessors: []string{"etcd.v0"}, Exists: lives("ns/stranger", "ns/etcd.v0", "ns/etcd.v1", "other/etcd.v1")}
	ref := func(name, uid string) metav1.OwnerReference {
		return metav1.OwnerReference{Kind: "ClusterServiceVersion", Name: name, UID: types.UID(uid)}
	}
	for name, tt := range map[string]struct {
		obj  metav1.ObjectMeta
		want string
	}{
		"nobody's":                  {want: "no ClusterServiceVersion"},
		"own, by label":             {obj: metav1.ObjectMeta{Labels: ownedBy("ns", "etcd.v1")}},
		"own, by reference":         {obj: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{ref("etcd.v1", "uid-1")}}},
		"the predecessor's":         {obj: metav1.ObjectMeta{Labels: ownedBy("ns", "etcd.v0")}},
		"the predecessor's, by ref": {obj: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{ref("etcd.v0", "0")}}},
		"gone":                      {obj: metav1.ObjectMeta{Labels: ownedBy("ns", "gone")}},
		"gone, elsewhere":           {obj: metav1.ObjectMeta{Labels: ownedBy("other", "gone")}},
		"a namesake elsewhere":      {obj: metav1.ObjectMeta{Labels: ownedBy("other", "etcd.v1")}, want: "csv other/etcd.v1"},
		"a stranger's":              {obj: metav1.ObjectMeta{Labels: ownedBy("ns", "stranger")}, want: "csv ns/stranger"},
		"a stranger's, by ref": {
			obj: metav1.ObjectMeta{Labels: ownedBy("ns", "etcd.v1"), OwnerReferences: []metav1.OwnerReference{ref("stranger", "9")}}, want: "csv ns/stranger",
		},
		"shared": {obj: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{ref("stranger", "9"), ref("etcd.v0", "0")}}},
		"a Deployment's": {
			obj:  metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: "Deployment", Name: "etcd.v1"}}},
			want: "no ClusterServiceVersion",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tt.obj.Namespace = "ns"
			if got := k.OtherOwner(&tt.obj); got != tt.want {
				t.Errorf("foreign is %q, want %q", got, tt.want)
			}
		})
	}
	if got, want := ConflictMessage("APIService", "v1.x", "csv a/b"), `APIService "v1.x" exists and belongs to csv a/b; delete or rename one of the two`; got != want {
		t.Errorf("obstacle reads %q, want %q", got, want)
	}
}

func TestAvailable(t *testing.T) {
	with := func(status string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
			map[string]any{"type": "Other", "status": "True"},
			map[string]any{
				"type": "Available", "status": status, "reason": "MissingEndpoints", "message": "no endpoints",
				"lastTransitionTime": now.Format(time.RFC3339),
			},
		}}}}
	}
	for name, tt := range map[string]struct {
		obj *unstructured.Unstructured
		ok  bool
		why string
	}{
		"not looked at": {obj: &unstructured.Unstructured{Object: map[string]any{}}, why: "it does not report availability yet"},
		"away":          {obj: with("False"), why: "MissingEndpoints: no endpoints"},
		"there":         {obj: with("True"), ok: true, why: "MissingEndpoints: no endpoints"},
	} {
		ok, since, why := Available(tt.obj)
		if ok != tt.ok || why != tt.why || since.IsZero() != (name == "not looked at") {
			t.Errorf("%s: available %t since %s, %q; want %t, %q", name, ok, since, why, tt.ok, tt.why)
		}
	}
}

// TestNeedsUpdate checks when an object must be applied again.
func TestNeedsUpdate(t *testing.T) {
	o, _ := desired(t, allNamespaces())
	want, err := Manifest(o.Services[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		change func(live *unstructured.Unstructured)
		stale  bool
	}{
		"as applied": {change: func(*unstructured.Unstructured) {}},
		"what the API server adds": {change: func(live *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(live.Object, "10.0.0.1", "spec", "clusterIP")
			live.SetResourceVersion("7")
		}},
		"what others add": {change: func(live *unstructured.Unstructured) {
			live.SetAnnotations(map[string]string{"theirs": "x", api.AnnotationAppliedHash: live.GetAnnotations()[api.AnnotationAppliedHash]})
			live.SetOwnerReferences(append([]metav1.OwnerReference{{UID: "other"}}, live.GetOwnerReferences()...))
		}},
		"no owner": {stale: true, change: func(live *unstructured.Unstructured) { live.SetOwnerReferences(nil) }},
		"no label": {stale: true, change: func(live *unstructured.Unstructured) { live.SetLabels(nil) }},
		"another value": {stale: true, change: func(live *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(live.Object, "other", "spec", "selector", "app")
		}},
		"something else applied": {stale: true, change: func(live *unstructured.Unstructured) {
			live.SetAnnotations(map[string]string{api.AnnotationAppliedHash: "x"})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			live := want.DeepCopy()
			tt.change(live)
			if got := NeedsUpdate(want, live); got != tt.stale {
				t.Errorf("stale is %t, want %t", got, tt.stale)
			}
		})
	}
	if !NeedsUpdate(want, nil) {
		t.Error("what is not there need not be applied")
	}
}
