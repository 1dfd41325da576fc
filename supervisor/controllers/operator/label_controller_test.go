package operator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// labelling returns a reconciler whose cache has some objects.
func labelling(t *testing.T, cached ...client.Object) *labelReconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := operatorsv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return &labelReconciler{readers: readers{shared: fake.NewClientBuilder().WithScheme(scheme).WithObjects(cached...).Build()}}
}

// ownedBy makes the version of these tests the owner of an object.
func ownedBy[O client.Object](o O, labels map[string]string) O {
	o.SetNamespace("kitchen")
	o.SetLabels(labels)
	o.SetOwnerReferences([]metav1.OwnerReference{{Kind: operatorsv1alpha1.ClusterServiceVersionKind, Name: "kettle.v1", UID: "v1"}})
	return o
}

// TestOwningVersions has events of owned objects. Most objects are created with their labels, and then
// need no reconciliation, however much time passes between their events.
func TestOwningVersions(t *testing.T) {
	labelled := map[string]string{kettle: ""}
	mounting := &appsv1.Deployment{}
	mounting.Spec.Template.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "key"}}}}
	installed := subscription("kettle", "kettle.v1", "")
	deleted := version(labelled)
	deleted.Finalizers, deleted.DeletionTimestamp = []string{"example.com/stay"}, new(metav1.Now())
	for name, tt := range map[string]struct {
		cached []client.Object
		object client.Object
		want   bool
	}{
		"labelled":                              {cached: []client.Object{version(labelled)}, object: ownedBy(&corev1.ConfigMap{}, labelled)},
		"without the label of the version":      {cached: []client.Object{version(labelled)}, object: ownedBy(&corev1.ConfigMap{}, nil), want: true},
		"without that of the Subscription":      {cached: []client.Object{version(nil), &installed}, object: ownedBy(&corev1.ConfigMap{}, nil), want: true},
		"of a version without a package":        {cached: []client.Object{version(nil)}, object: ownedBy(&corev1.ConfigMap{}, nil)},
		"of a version that is not cached yet":   {object: ownedBy(&corev1.ConfigMap{}, nil)},
		"of a version that is being deleted":    {cached: []client.Object{deleted}, object: ownedBy(&corev1.ConfigMap{}, nil)},
		"labelled, and refers to a Secret":      {cached: []client.Object{version(labelled)}, object: ownedBy(mounting.DeepCopy(), labelled), want: true},
		"labelled, and refers to no Secret":     {cached: []client.Object{version(labelled)}, object: ownedBy(&appsv1.Deployment{}, labelled)},
		"refers to a Secret, without a package": {cached: []client.Object{version(nil)}, object: ownedBy(mounting.DeepCopy(), nil)},
	} {
		t.Run(name, func(t *testing.T) {
			requested(t, labelling(t, tt.cached...).owningVersions(t.Context(), tt.object), tt.want)
		})
	}
}

// TestInstalledVersion has events of a Subscription whose plan created a version.
func TestInstalledVersion(t *testing.T) {
	installed, pending := subscription("kettle", "kettle.v1", ""), subscription("kettle", "", "")
	for name, tt := range map[string]struct {
		cached []client.Object
		sub    operatorsv1alpha1.Subscription
		want   bool
	}{
		"the version has the label":   {cached: []client.Object{version(map[string]string{kettle: ""})}, sub: installed},
		"the version lacks the label": {cached: []client.Object{version(map[string]string{lid: ""})}, sub: installed, want: true},
		"the version is not cached":   {sub: installed},
		"no version is installed":     {cached: []client.Object{version(nil)}, sub: pending},
	} {
		t.Run(name, func(t *testing.T) {
			r := labelling(t, append(tt.cached, tt.sub.DeepCopy())...)
			requested(t, r.installedVersion(t.Context(), &tt.sub), tt.want)
		})
	}
}

// requested checks for a request for the version of these tests.
func requested(t *testing.T, got []reconcile.Request, wanted bool) {
	t.Helper()
	var want []reconcile.Request
	if wanted {
		want = []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: "kitchen", Name: "kettle.v1"}}}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// TestLabelsOrDefinitionsChanged updates a version, as its installation does several times.
func TestLabelsOrDefinitionsChanged(t *testing.T) {
	type csv = operatorsv1alpha1.ClusterServiceVersion
	for name, tt := range map[string]struct {
		change func(*csv)
		want   bool
	}{
		"a phase":             {change: func(c *csv) { c.Status.Phase = operatorsv1alpha1.CSVPhaseSucceeded }},
		"a label of an API":   {change: func(c *csv) { c.Labels["olm.api.abc"] = "provided" }},
		"a description":       {change: func(c *csv) { c.Generation, c.Spec.Description = 2, "Boils water." }},
		"the component label": {change: func(c *csv) { c.Labels[lid] = "" }, want: true},
		"its definitions": {change: func(c *csv) {
			c.Spec.CustomResourceDefinitions.Owned = []operatorsv1alpha1.CRDDescription{{Name: "cups.example.com"}}
		}, want: true},
		"now a copy": {change: func(c *csv) { c.Labels[operatorsv1alpha1.CopiedLabelKey] = "elsewhere" }, want: true},
		"recreated":  {change: func(c *csv) { c.UID = "v2" }, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			before := version(map[string]string{kettle: ""})
			after := before.DeepCopy()
			tt.change(after)
			if got := labelsOrDefinitionsChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != tt.want {
				t.Errorf("admitted: %v, want %v", got, tt.want)
			}
		})
	}
	copied := version(map[string]string{operatorsv1alpha1.CopiedLabelKey: "elsewhere"})
	if labelsOrDefinitionsChanged().Create(event.CreateEvent{Object: copied}) {
		t.Error("the creation of a copy without component labels is admitted")
	}
	copied.Labels[kettle] = ""
	for _, o := range []client.Object{copied, version(nil)} {
		if !labelsOrDefinitionsChanged().Create(event.CreateEvent{Object: o}) {
			t.Errorf("the creation of a version with labels %v is not admitted", o.GetLabels())
		}
	}
}
