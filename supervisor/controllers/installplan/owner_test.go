package installplan

import (
	"context"
	"errors"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/supervisor/plan"
)

// TestDeletesOnlyWhatItRead replaces the object whose labels were read, just before its deletion.
func TestDeletesOnlyWhatItRead(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := schedulingv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mine := plan.OwnerLabels("kettle.v1", "kitchen")
	other := plan.OwnerLabels("kettle.v1", "elsewhere")
	for name, tt := range map[string]struct {
		reason string
		labels map[string]string
		// uid and version replace those of the object before it is deleted; empty for the same.
		uid     types.UID
		version string
		stays   bool
	}{
		"Same":     {"what belongs to the version that went is deleted", mine, "", "", false},
		"Other":    {"what belongs to another version stays", other, "", "", true},
		"Nobody's": {"and so does what belongs to none", nil, "", "", true},
		"Replaced": {"and another object of the name", mine, "another", "", true},
		"Changed":  {"and one that another version has taken over since", mine, "", "another", true},
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
			if err := a.deleteOwned(t.Context(), step); err != nil {
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
	scheme := runtime.NewScheme()
	if err := operatorsv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
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
			if err := o.confirm(t.Context(), "kettle.v1"); errors.Is(err, errOwnerGone) != tc.gone || err != nil && !tc.gone {
				t.Errorf("%s: error %v", tc.reason, err)
			}
		})
	}
}
