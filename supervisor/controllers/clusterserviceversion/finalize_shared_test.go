package clusterserviceversion

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
)

func TestHeirs(t *testing.T) {
	class := brought{schema.GroupKind{Group: "scheduling.k8s.io", Kind: "PriorityClass"}, "kettle"}
	planned := func(namespace, version, name string) operatorsv1alpha1.InstallPlan {
		return operatorsv1alpha1.InstallPlan{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "install"},
			Status: operatorsv1alpha1.InstallPlanStatus{Plan: []*operatorsv1alpha1.Step{{
				Resolving: version, Status: operatorsv1alpha1.StepStatusCreated,
				Resource: operatorsv1alpha1.StepResource{Group: class.Group, Version: "v1", Kind: class.Kind, Name: name},
			}}},
		}
	}
	in := func(namespace string) *operatorsv1alpha1.ClusterServiceVersion {
		csv := version("kettle.v1", "", succeeded)
		csv.Namespace = namespace
		return csv
	}
	leaving := in("east")
	leaving.DeletionTimestamp = &metav1.Time{Time: noon()}
	with := func(status operatorsv1alpha1.StepStatus, p operatorsv1alpha1.InstallPlan) operatorsv1alpha1.InstallPlan {
		p.Status.Plan[0].Status = status
		return p
	}
	of := func(pkg string, csv *operatorsv1alpha1.ClusterServiceVersion) *operatorsv1alpha1.ClusterServiceVersion {
		csv.Annotations = map[string]string{api.AnnotationProperties: `{"properties":[{"type":"olm.package","value":{"packageName":"` + pkg + `","version":"1.0.0"}}]}`}
		return csv
	}
	goes := of("kettle", in("west"))
	cases := map[string]struct {
		reason string
		others csvs
		plans  []operatorsv1alpha1.InstallPlan
		want   map[brought]types.NamespacedName
	}{
		"Alone":   {"nobody else brought it", csvs{goes}, []operatorsv1alpha1.InstallPlan{planned("west", "kettle.v1", "kettle")}, nil},
		"Other":   {"another has another", csvs{goes, in("east")}, []operatorsv1alpha1.InstallPlan{planned("east", "kettle.v1", "pot")}, map[brought]types.NamespacedName{{class.GroupKind, "pot"}: {Namespace: "east", Name: "kettle.v1"}}},
		"Shared":  {"it goes on as the other's", csvs{goes, in("east")}, []operatorsv1alpha1.InstallPlan{planned("west", "kettle.v1", "kettle"), planned("east", "kettle.v1", "kettle")}, map[brought]types.NamespacedName{class: {Namespace: "east", Name: "kettle.v1"}}},
		"First":   {"of several, the first", csvs{in("north"), in("east")}, []operatorsv1alpha1.InstallPlan{planned("north", "kettle.v1", "kettle"), planned("east", "kettle.v1", "kettle")}, map[brought]types.NamespacedName{class: {Namespace: "east", Name: "kettle.v1"}}},
		"Present": {"its plan found it", csvs{goes, in("east")}, []operatorsv1alpha1.InstallPlan{with(operatorsv1alpha1.StepStatusPresent, planned("east", "kettle.v1", "kettle"))}, map[brought]types.NamespacedName{class: {Namespace: "east", Name: "kettle.v1"}}},
		"Refused": {"its plan did not apply it", csvs{goes, in("east")}, []operatorsv1alpha1.InstallPlan{with(operatorsv1alpha1.StepStatusUnknown, planned("east", "kettle.v1", "kettle"))}, nil},
		"Rightful": {"one before it did not", csvs{goes, in("aaa"), in("east")}, []operatorsv1alpha1.InstallPlan{
			with(operatorsv1alpha1.StepStatusUnknown, planned("aaa", "kettle.v1", "kettle")), planned("east", "kettle.v1", "kettle"),
		}, map[brought]types.NamespacedName{class: {Namespace: "east", Name: "kettle.v1"}}},
		"Package": {"another package has the same name", csvs{goes, of("pot", in("east"))}, []operatorsv1alpha1.InstallPlan{planned("east", "kettle.v1", "kettle")}, nil},
		"Leaving": {"who leaves too takes nothing", csvs{goes, leaving}, []operatorsv1alpha1.InstallPlan{planned("east", "kettle.v1", "kettle")}, nil},
		"Gone":    {"an old plan's version has gone", csvs{goes, in("east")}, []operatorsv1alpha1.InstallPlan{planned("east", "kettle.v0", "kettle")}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := heirs(goes, tc.others, tc.plans)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(brought{})); diff != "" && (len(got) > 0 || len(tc.want) > 0) {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
