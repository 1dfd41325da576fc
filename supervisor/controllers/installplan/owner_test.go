package installplan

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// TestDeletesOnlyWhatItRead replaces the object whose labels were read, just before its deletion.
func TestDeletesOnlyWhatItRead(t *testing.T) {
	scheme := fixtures.Scheme(t)
	mine := plansteps.OwnerLabels("kettle.v1", "kitchen")
	other := plansteps.OwnerLabels("kettle.v1", "elsewhere")
	for name, tt := range map[string]struct {
		reason string
		labels map[string]string
		// uid and version replace those of the object before it is deleted; empty for the same.
		uid     types.UID
		version string
		stays   bool
	}{
		"Same":     {"an object of the deleted version is deleted", mine, "", "", false},
		"Other":    {"an object of another version stays", other, "", "", true},
		"Unowned":  {"an object without an owner stays", nil, "", "", true},
		"Replaced": {"another object with the name stays", mine, "another", "", true},
		"Changed":  {"an object that has changed since it was read stays", mine, "", "another", true},
	} {
		t.Run(name, func(t *testing.T) {
			class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "kettle", UID: "read", Labels: tt.labels}}
			plain := fake.NewClientBuilder().WithScheme(scheme).WithObjects(class).Build()
			a := &objectApplier{observer: &observer{namespace: "kitchen", live: plain}, own: interceptor.NewClient(plain, interceptor.Funcs{
				Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
					var options client.DeleteOptions
					options.ApplyOptions(opts)
					uid, version := o.GetUID(), o.GetResourceVersion()
					if tt.uid != "" {
						uid = tt.uid
					}
					if tt.version != "" {
						version = tt.version
					}
					only := options.Preconditions
					if only != nil && (only.UID != nil && *only.UID != uid || only.ResourceVersion != nil && *only.ResourceVersion != version) {
						return apierrors.NewConflict(schema.GroupResource{Resource: "priorityclasses"}, o.GetName(), errors.New("the object has been replaced"))
					}
					return c.Delete(ctx, o)
				},
			})}
			step := &operatorsv1alpha1.Step{
				Resolving: "kettle.v1",
				Resource:  operatorsv1alpha1.StepResource{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass", Name: "kettle"},
			}
			if err := a.deleteOwned(t.Context(), step, schedulingv1.SchemeGroupVersion.WithKind("PriorityClass")); err != nil {
				t.Errorf("%s: %v", tt.reason, err)
			}
			err := plain.Get(t.Context(), client.ObjectKeyFromObject(class), class)
			if stays := err == nil; stays != tt.stays {
				t.Errorf("%s: the object stays: %t, want %t (%v)", tt.reason, stays, tt.stays, err)
			}
		})
	}
}

// TestVersionOwnsWhileItExists reads a version again for which objects were applied.
func TestVersionOwnsWhileItExists(t *testing.T) {
	scheme := fixtures.Scheme(t)
	for name, tc := range map[string]struct {
		reason string
		change func(*operatorsv1alpha1.ClusterServiceVersion) // nil for a version that was deleted
		gone   bool
	}{
		"Same":    {"it has not changed", func(*operatorsv1alpha1.ClusterServiceVersion) {}, false},
		"Deleted": {"nothing would delete the objects", nil, true},
		"Leaving": {"its clean-up may have searched for the objects already", func(csv *operatorsv1alpha1.ClusterServiceVersion) {
			csv.DeletionTimestamp, csv.Finalizers = &metav1.Time{Time: begin}, []string{"example.com/keep"}
		}, true},
		"Recreated": {"the new version does not own the objects", func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.UID = "2" }, true},
		"Copy": {"a copy owns nothing", func(csv *operatorsv1alpha1.ClusterServiceVersion) {
			csv.Labels = map[string]string{operatorsv1alpha1.CopiedLabelKey: "elsewhere"}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(scheme)
			if tc.change != nil {
				csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: "kettle.v1", UID: "1"}}
				tc.change(csv)
				c.WithObjects(csv)
			}
			o := &owners{
				observer: &observer{namespace: "kitchen", live: c.Build()},
				byName:   map[string]*owner{"kettle.v1": {reference: metav1.OwnerReference{UID: "1"}}},
			}
			if err := o.confirm(t.Context(), "kettle.v1"); errors.Is(err, errOwnerDeleted) != tc.gone || err != nil && !tc.gone {
				t.Errorf("%s: error %v", tc.reason, err)
			}
		})
	}
}

func TestClaims(t *testing.T) {
	object := &metav1.ObjectMeta{
		Namespace: "ops",
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Name: "lamp.v1", UID: "1"},
			{APIVersion: "operators.coreos.com/v1alpha1", Kind: "Subscription", Name: "lamp", UID: "2"},
			{APIVersion: "other.example/v1", Kind: "ClusterServiceVersion", Name: "lamp.v1", UID: "3"},
		},
		Labels: plansteps.OwnerLabels("tray.v1", "kitchen"),
	}
	want := []ownerKey{
		{NamespacedName: types.NamespacedName{Namespace: "ops", Name: "lamp.v1"}, uid: "1"},
		{NamespacedName: types.NamespacedName{Namespace: "kitchen", Name: "tray.v1"}},
	}
	if diff := cmp.Diff(want, ownerKeys(object), cmp.AllowUnexported(ownerKey{})); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	object.Labels = plansteps.OwnerLabels("lamp.v1", "ops")
	if got := ownerKeys(object); len(got) != 1 || got[0].uid != "1" {
		t.Errorf("one version that says so twice: %v", got)
	}
	if got := ownerKeys(&metav1.ObjectMeta{Labels: map[string]string{api.LabelOwner: "lamp.v1"}}); got != nil {
		t.Errorf("a label alone: %v", got)
	}
}

const ofLamp = `{"properties":[{"type":"olm.gvk","value":{"kind":"Lamp"}},{"type":"olm.package","value":{"packageName":"lamp","version":"1.0.0"}}]}`

func TestSameOperator(t *testing.T) {
	me := &owner{namespace: "ops", name: "lamp.v2", pkg: "lamp", replaces: "lamp.v1"}
	version := func(namespace, name, properties string, labels map[string]string) *metav1.ObjectMeta {
		return &metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels, Annotations: map[string]string{api.AnnotationProperties: properties}}
	}
	for _, tt := range []struct {
		reason string
		other  *metav1.ObjectMeta
		want   bool
	}{
		{reason: "it is the same version", other: version("ops", "lamp.v2", "", nil), want: true},
		{reason: "it is replaced", other: version("ops", "lamp.v1", "", nil), want: true},
		{reason: "it has that name, elsewhere", other: version("other", "lamp.v1", "", nil)},
		{reason: "its properties say so", other: version("other", "lamp.v0", ofLamp, nil), want: true},
		{reason: "its label says so", other: version("other", "lamp.v0", "", map[string]string{plansteps.ComponentLabel("lamp", "other"): ""}), want: true},
		{reason: "it is of another package", other: version("ops", "tray.v1", `{"properties":[{"type":"olm.package","value":{"packageName":"tray"}}]}`, nil)},
		{reason: "it does not say", other: version("ops", "tray.v1", "nonsense", nil)},
	} {
		if got := sameOperator(me, tt.other); got != tt.want {
			t.Errorf("%s: %v", tt.reason, got)
		}
	}
	if sameOperator(&owner{namespace: "ops", name: "lamp.v2"}, version("ops", "tray.v1", "", nil)) {
		t.Error("two versions that do not say what they are of are taken for one operator's")
	}
}

// TestRecordedVersionIsOf has lamp.v2, which replaces the recorded lamp.v1 of its namespace.
func TestRecordedVersionIsOf(t *testing.T) {
	const ofTray = `{"properties":[{"type":"olm.package","value":{"packageName":"tray"}}]}`
	for _, tt := range []struct {
		reason, pkg, other string
		want               bool
	}{
		{reason: "both say the same", pkg: "lamp", other: ofLamp, want: true},
		{reason: "they say different packages", pkg: "lamp", other: ofTray},
		{reason: "the other does not say", pkg: "lamp", other: "nonsense", want: true},
		{reason: "the owner does not say", other: ofTray},
	} {
		known := packages{}
		r := &recordedVersion{NamespacedName: types.NamespacedName{Namespace: "ops", Name: "lamp.v1"}}
		for range 2 {
			r.pkg = known.of(&metav1.ObjectMeta{Annotations: map[string]string{api.AnnotationProperties: tt.other}})
			if got := r.isOf(&owner{namespace: "ops", name: "lamp.v2", pkg: tt.pkg, replaces: "lamp.v1"}); got != tt.want {
				t.Errorf("%s: %v", tt.reason, got)
			}
		}
	}
}

func TestReplacedBy(t *testing.T) {
	version := func(name, replaces string) operatorsv1alpha1.ClusterServiceVersion {
		v := operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Name: name}}
		v.Spec.Replaces = replaces
		return v
	}
	versions := []operatorsv1alpha1.ClusterServiceVersion{version("v3", "v2"), version("v2", "v1"), version("v1", "v3"), version("other", "")}
	for name, want := range map[string]bool{"v3": true, "v2": true, "v1": true, "other": false, "gone": false} {
		if got := replacedBy(name, &owner{replaces: "v3"}, versions); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestVersionGetsFinalizerBeforeItsObjects applies the objects of a version that another client has just created.
func TestVersionGetsFinalizerBeforeItsObjects(t *testing.T) {
	csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: "kettle.v1", UID: "1"}}
	plain := fake.NewClientBuilder().WithScheme(fixtures.Scheme(t)).WithObjects(csv).Build()
	finalizers := map[string][]string{}
	var patches int
	c := interceptor.NewClient(plain, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			now := &operatorsv1alpha1.ClusterServiceVersion{}
			if err := c.Get(ctx, client.ObjectKeyFromObject(csv), now); err != nil {
				return err
			}
			finalizers[o.GetName()] = now.Finalizers
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			patches++
			if patches == 1 {
				return apierrors.NewConflict(schema.GroupResource{Resource: "clusterserviceversions"}, o.GetName(), errors.New("it has changed"))
			}
			return c.Patch(ctx, o, patch, opts...)
		},
	})
	o := &observer{namespace: "kitchen", live: c, content: &content{namespace: "kitchen"}}
	e := &execution{
		namespace: "kitchen", observer: o, content: o.content,
		owners: &owners{observer: o, byName: map[string]*owner{}}, objects: &objectApplier{observer: o, writer: c, own: c},
	}
	for _, kind := range []string{"ConfigMap", "PriorityClass"} {
		manifest := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"ConfigMap"}}`
		if kind != "ConfigMap" {
			manifest = `{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"PriorityClass"}}`
		}
		step := &operatorsv1alpha1.Step{Resolving: "kettle.v1", Resource: operatorsv1alpha1.StepResource{Kind: kind, Name: kind, Manifest: manifest}}
		if _, err := e.apply(t.Context(), step); err != nil {
			t.Errorf("applying a %s: %v", kind, err)
		}
	}
	want := map[string][]string{"ConfigMap": nil, "PriorityClass": {api.FinalizerCleanup}}
	if diff := cmp.Diff(want, finalizers); diff != "" {
		t.Errorf("finalizers of the version at each creation (-want +got):\n%s", diff)
	}
}
