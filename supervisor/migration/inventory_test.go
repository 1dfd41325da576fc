package migration

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestReadInventory checks that the inventory has operators and their pods, and no copies and no other objects.
func TestReadInventory(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, operatorsv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	owned := map[string]string{"olm.owner": "lamp.v1", "olm.owner.namespace": "lamps", "olm.owner.kind": "ClusterServiceVersion"}
	app := map[string]string{"app": "lamp"}
	deployment := func(name string, labels map[string]string) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "lamps", Name: name, UID: "d1", Generation: 3, Labels: labels},
			Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: app}},
		}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "lamps", Name: "lamp-x", UID: "p1", Labels: app,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "lamp", Controller: new(true)}},
		},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{RestartCount: 2}, {RestartCount: 1}}},
	}
	csv := &operatorsv1alpha1.ClusterServiceVersion{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lamps", Name: "lamp.v1", UID: "v1"},
		Status:     operatorsv1alpha1.ClusterServiceVersionStatus{Phase: operatorsv1alpha1.CSVPhaseSucceeded},
	}
	copied := csv.DeepCopy()
	copied.Namespace, copied.Labels = "elsewhere", map[string]string{operatorsv1alpha1.CopiedLabelKey: "lamps"}
	sub := &operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lamps", Name: "lamp"},
		Status:     operatorsv1alpha1.SubscriptionStatus{State: operatorsv1alpha1.SubscriptionStateAtLatest, InstalledCSV: "lamp.v1"},
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(deployment("lamp", owned), deployment("other", nil), pod, csv, copied, sub).Build()
	found, err := ReadInventory(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	want := Inventory{
		"Deployment lamps/lamp":               {Namespace: "lamps", State: "generation 3, UID d1", Version: "lamps/lamp.v1"},
		"Pod lamps/lamp-x":                    {Namespace: "lamps", State: "3 restarts, UID p1", Version: "lamps/lamp.v1"},
		"ClusterServiceVersion lamps/lamp.v1": {Namespace: "lamps", State: "Succeeded, UID v1", UID: "v1", Version: "lamps/lamp.v1"},
		"Subscription lamps/lamp":             {Namespace: "lamps", State: "AtLatestKnown of lamp.v1"},
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("inventory (-want +got):\n%s", diff)
	}
	if rest := found.Without([]string{"lamps/lamp.v1"}); len(rest) != 1 || len(found) != len(want) {
		t.Errorf("without the version: %v", rest)
	}
}

// TestPackagesMoveUnseen checks that the API of packages is the same object for OLM and for supervisors, and that it may come
// and go with the supervisors.
func TestPackagesMoveUnseen(t *testing.T) {
	service := func(uid string, labels map[string]any) Inventory {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
			"metadata": map[string]any{"name": "v1.packages.operators.coreos.com", "uid": uid, "labels": labels},
		}}
		scheme := runtime.NewScheme()
		for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, operatorsv1alpha1.AddToScheme} {
			if err := add(scheme); err != nil {
				t.Fatal(err)
			}
		}
		found, err := ReadInventory(t.Context(), fake.NewClientBuilder().WithScheme(scheme).WithObjects(o).Build())
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	olm := service("a", map[string]any{"olm.owner": "packageserver", "olm.owner.namespace": "olm", "olm.owner.kind": "ClusterServiceVersion"})
	own := service("a", map[string]any{"app.kubernetes.io/part-of": "chandlery"})
	recreated := service("b", map[string]any{"app.kubernetes.io/part-of": "chandlery"})
	for name, tt := range map[string]struct {
		before, after Inventory
		want          int
	}{
		"TakenOver": {olm, own, 0}, "Returned": {own, olm, 0}, "New": {Inventory{}, own, 0}, "Removed": {own, Inventory{}, 0},
		"Recreated": {olm, recreated, 1}, "LostByOLM": {olm, Inventory{}, 1}, "NewOfOLM": {Inventory{}, olm, 1},
	} {
		if got := tt.after.Differences(tt.before, nil); len(got) != tt.want {
			t.Errorf("%s: %v, want %d differences", name, got, tt.want)
		}
	}
}

// TestRecovered checks that a version or an API that works again is no unexpected difference.
func TestRecovered(t *testing.T) {
	failed := Item{Namespace: "lamps", State: "Failed, UID v1", UID: "v1", Broken: true}
	succeeded := Item{Namespace: "lamps", State: "Succeeded, UID v1", UID: "v1"}
	recreated := Item{Namespace: "lamps", State: "Succeeded, UID v2", UID: "v2"}
	pending := Item{Namespace: "lamps", State: "Pending, UID v1", UID: "v1", Broken: true}
	pod := func(restarts string) Item { return Item{Namespace: "lamps", State: restarts + " restarts, UID p1"} }
	for name, tt := range map[string]struct {
		before, after Item
		want          bool
	}{
		"Recovered": {failed, succeeded, true}, "Recreated": {failed, recreated, false}, "Failed": {succeeded, failed, false},
		"StillBroken": {failed, pending, false}, "Restarted": {pod("0"), pod("1"), false},
	} {
		got := Inventory{"o": tt.after}.Differences(Inventory{"o": tt.before}, nil)
		if len(got) != 1 || got[0].Recovered != tt.want {
			t.Errorf("%s: %+v, want recovered %t", name, got, tt.want)
		}
	}
	for name, tt := range map[string]struct {
		object       *unstructured.Unstructured
		works, knows bool
	}{
		"Succeeded": {object("ClusterServiceVersion", "lamps/lamp.v1", map[string]any{"status|phase": "Succeeded"}), true, true},
		"Replacing": {object("ClusterServiceVersion", "lamps/lamp.v1", map[string]any{"status|phase": "Replacing"}), true, true},
		"Failed":    {object("ClusterServiceVersion", "lamps/lamp.v1", map[string]any{"status|phase": "Failed"}), false, true},
		"Available": {object("APIService", "/v1.lamps", map[string]any{"status|conditions": []any{map[string]any{"type": "Available", "status": "True"}}}), true, true},
		"Missing":   {object("APIService", "/v1.lamps", nil), false, true},
		"Pod":       {object("Pod", "lamps/lamp", nil), false, false},
	} {
		if works, knows := working(tt.object); works != tt.works || knows != tt.knows {
			t.Errorf("%s: works %t, knows %t", name, works, knows)
		}
	}
}

// TestDifferences checks the comparison of two inventories.
func TestDifferences(t *testing.T) {
	before := Inventory{
		"Deployment lamps/lamp": {Namespace: "lamps", State: "generation 1"},
		"Deployment buoys/buoy": {Namespace: "buoys", State: "generation 1"},
		"Pod lamps/lamp-x":      {Namespace: "lamps", State: "0 restarts"},
	}
	after := Inventory{
		"Deployment lamps/lamp": {Namespace: "lamps", State: "generation 1"},
		"Deployment buoys/buoy": {Namespace: "buoys", State: "generation 2"},
		"Pod buoys/buoy-y":      {Namespace: "buoys", State: "0 restarts"},
	}
	want := []Difference{
		{Object: "Deployment buoys/buoy", Before: "generation 1", After: "generation 2", Expected: true},
		{Object: "Pod lamps/lamp-x", Before: "0 restarts"},
		{Object: "Pod buoys/buoy-y", After: "0 restarts", Expected: true},
	}
	if diff := cmp.Diff(want, after.Differences(before, []string{"buoys/install-abc"})); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
	if same := before.Differences(before, nil); len(same) > 0 {
		t.Errorf("equal inventories differ: %v", same)
	}
}

// TestNewFinishPlan checks when OLM is removed, and what the plan states.
func TestNewFinishPlan(t *testing.T) {
	for _, tt := range []struct {
		reason  string
		phase   Phase
		running bool
		want    Verdict
	}{
		{"after a takeover", TakenOver, false, Possible},
		{"OLM was started again", TakenOver, true, Blocked},
		{"the takeover is incomplete", TakingOver, false, Blocked},
		{"a handback was begun", HandingBack, false, Blocked},
	} {
		p := NewFinishPlan(&Record{Phase: tt.phase}, tt.running, PackageServer{Deployment: "olm/packageserver"}, nil)
		if p.Verdict != tt.want || (len(p.Blockers) > 0) != (tt.want == Blocked) || (len(p.Steps) > 0) != (tt.want == Possible) || len(p.Left) != 2 {
			t.Errorf("%s: %+v", tt.reason, p)
		}
	}
}

// TestIsUnpackedBundle checks which ConfigMaps a removal of OLM deletes.
func TestIsUnpackedBundle(t *testing.T) {
	managed := map[string]any{"metadata|labels": map[string]any{"olm.managed": "true"}}
	name := "olm/" + strings.Repeat("0a", 31) + "0"
	unpacked := ownedBy(object("ConfigMap", name, managed), "CatalogSource", "shop", "s1")
	if !isUnpackedBundle(unpacked) {
		t.Error("a bundle that OLM unpacked")
	}
	for reason, o := range map[string]*unstructured.Unstructured{
		"a copy by a supervisor":   by(unpacked.DeepCopy(), "chandlery-supervisor", `{}`),
		"the content of a catalog": ownedBy(object("ConfigMap", "olm/content", managed), "CatalogSource", "shop", "s1"),
		"without an owner":         object("ConfigMap", name, managed),
		"without OLM's label":      ownedBy(object("ConfigMap", name, nil), "CatalogSource", "shop", "s1"),
		"a ConfigMap of a version": ownedBy(object("ConfigMap", name, managed), "ClusterServiceVersion", "lamp.v1", "v1"),
	} {
		if isUnpackedBundle(o) {
			t.Error(reason)
		}
	}
}
