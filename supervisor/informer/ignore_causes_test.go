package informer_test

import (
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/informer"
)

func TestIgnoreCauses(t *testing.T) {
	t.Parallel()
	version := func(change func(*operatorsv1alpha1.ClusterServiceVersion)) client.Object {
		csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{
			Name: "lamp.v1", Generation: 1, ResourceVersion: "1", Annotations: map[string]string{"a": "b"},
		}}
		change(csv)
		return csv
	}
	caused := func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		csv.ResourceVersion = "2"
		api.SetCause(csv, &api.Cause{Reason: api.ReasonRetrying})
	}
	same := func(*operatorsv1alpha1.ClusterServiceVersion) {}
	also := func(change func(*operatorsv1alpha1.ClusterServiceVersion)) client.Object {
		return version(func(csv *operatorsv1alpha1.ClusterServiceVersion) {
			caused(csv)
			change(csv)
		})
	}
	for name, tt := range map[string]struct {
		before, after client.Object
		want          bool
	}{
		"a cause is set":     {version(same), version(caused), false},
		"a cause is removed": {version(caused), version(same), false},
		"the first annotation": {
			version(func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.Annotations = nil }),
			also(func(csv *operatorsv1alpha1.ClusterServiceVersion) { delete(csv.Annotations, "a") }), false,
		},
		"the status changes too":     {version(same), also(func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.Status.Phase = "Failed" }), true},
		"the spec changes too":       {version(same), also(func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.Generation++ }), true},
		"an annotation changes too":  {version(same), also(func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.Annotations["a"] = "c" }), true},
		"the deletion begins too":    {version(same), also(func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.DeletionTimestamp = &metav1.Time{} }), true},
		"the cause stays":            {version(caused), also(same), true},
		"objects of another kind":    {&corev1.Pod{}, &corev1.Pod{}, true},
		"objects of different kinds": {version(same), &corev1.Pod{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := informer.IgnoreCauses().Update(event.UpdateEvent{ObjectOld: tt.before, ObjectNew: tt.after}); got != tt.want {
				t.Errorf("accepted: %t, want %t", got, tt.want)
			}
		})
	}
}
