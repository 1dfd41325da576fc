package clusterserviceversion

import (
	"fmt"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
)

// sharedClass returns a PriorityClass that two Operators have as a component.
func sharedClass() *metav1.PartialObjectMetadata {
	class := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "kettle", Labels: map[string]string{"operators.coreos.com/kettle.east": "", "operators.coreos.com/kettle.west": ""},
	}}
	class.SetGroupVersionKind(schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"})
	return class
}

// planOfClass returns a plan whose step for a PriorityClass has a status.
func planOfClass(namespace, version, class string, status operatorsv1alpha1.StepStatus, generation int) operatorsv1alpha1.InstallPlan {
	return operatorsv1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("install-%d", generation)},
		Spec:       operatorsv1alpha1.InstallPlanSpec{Generation: generation},
		Status: operatorsv1alpha1.InstallPlanStatus{Plan: []*operatorsv1alpha1.Step{{
			Resolving: version, Status: status,
			Resource: operatorsv1alpha1.StepResource{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass", Name: class},
		}}},
	}
}

// versionOf returns a version of a package that runs; an empty package means none is stated.
func versionOf(pkg, namespace, name string, components ...string) *operatorsv1alpha1.ClusterServiceVersion {
	csv := version(name, "", succeeded)
	csv.Namespace, csv.Labels = namespace, map[string]string{}
	csv.CreationTimestamp = metav1.NewTime(noon())
	if pkg != "" {
		csv.Annotations = map[string]string{api.AnnotationProperties: `{"properties":[{"type":"olm.package","value":{"packageName":"` + pkg + `","version":"1.0.0"}}]}`}
	}
	for _, component := range components {
		csv.Labels["operators.coreos.com/"+component] = ""
	}
	return csv
}

func TestInheritance(t *testing.T) {
	class, of := sharedClass(), versionOf
	planned := func(namespace, version string, status operatorsv1alpha1.StepStatus, generation int) operatorsv1alpha1.InstallPlan {
		return planOfClass(namespace, version, class.Name, status, generation)
	}
	in := func(namespace string) *operatorsv1alpha1.ClusterServiceVersion {
		return of("kettle", namespace, "kettle.v1")
	}
	younger := func(csv *operatorsv1alpha1.ClusterServiceVersion) *operatorsv1alpha1.ClusterServiceVersion {
		csv.CreationTimestamp = metav1.NewTime(noon().Add(time.Minute))
		return csv
	}
	leaving := in("east")
	leaving.DeletionTimestamp = &metav1.Time{Time: noon()}
	failed := of("kettle", "east", "kettle.v1", "kettle.east")
	failed.Status.Phase = operatorsv1alpha1.CSVPhaseFailed
	const made, found, not = operatorsv1alpha1.StepStatusCreated, operatorsv1alpha1.StepStatusPresent, operatorsv1alpha1.StepStatusUnknown
	type plans = []operatorsv1alpha1.InstallPlan
	cases := map[string]struct {
		reason string
		others csvs
		plans  plans
		want   string
	}{
		"Alone":    {"no other version brought it", nil, plans{planned("west", "kettle.v2", made, 1)}, ""},
		"Other":    {"another version brought another object", csvs{in("east")}, plans{planOfClass("east", "kettle.v1", "pot", made, 1)}, ""},
		"Shared":   {"another version brought it too", csvs{in("east")}, plans{planned("west", "kettle.v2", made, 1), planned("east", "kettle.v1", made, 1)}, "east/kettle.v1"},
		"First":    {"of several namespaces, the first counts", csvs{in("north"), in("east")}, plans{planned("north", "kettle.v1", made, 1), planned("east", "kettle.v1", made, 1)}, "east/kettle.v1"},
		"Present":  {"its plan found it", csvs{in("east")}, plans{planned("east", "kettle.v1", found, 1)}, "east/kettle.v1"},
		"Refused":  {"its plan did not apply it", csvs{in("east")}, plans{planned("east", "kettle.v1", not, 1)}, ""},
		"Rightful": {"the plan of the first did not apply it", csvs{in("aaa"), in("east")}, plans{planned("aaa", "kettle.v1", not, 1), planned("east", "kettle.v1", made, 1)}, "east/kettle.v1"},
		"RefusedAgain": {
			"an older plan applied it, with rights that are gone",
			csvs{in("east")},
			plans{planned("east", "kettle.v1", not, 2), planned("east", "kettle.v1", made, 1)},
			"",
		},
		"Upgrade": {
			"the older version is about to be replaced by the younger",
			csvs{in("east"), younger(of("kettle", "east", "kettle.v2"))},
			plans{planned("east", "kettle.v1", made, 1), planned("east", "kettle.v2", made, 2)},
			"east/kettle.v2",
		},
		"UpgradeBegins": {
			"the younger version did not apply it yet",
			csvs{in("east"), younger(of("kettle", "east", "kettle.v2"))},
			plans{planned("east", "kettle.v1", made, 1), planned("east", "kettle.v2", not, 2)},
			"east/kettle.v1",
		},
		"Predecessor":     {"the version before it remains", csvs{in("west")}, plans{planned("west", "kettle.v1", made, 1)}, "west/kettle.v1"},
		"Package":         {"another package has the same name of a version", csvs{of("pot", "east", "kettle.v1")}, plans{planned("east", "kettle.v1", made, 1)}, ""},
		"NoPackage":       {"its package is unknown", csvs{of("", "east", "kettle.v1")}, plans{planned("east", "kettle.v1", made, 1)}, ""},
		"Leaving":         {"it is being deleted too", csvs{leaving}, plans{planned("east", "kettle.v1", made, 1)}, ""},
		"Gone":            {"the version of an old plan does not exist", csvs{in("east")}, plans{planned("east", "kettle.v0", made, 1)}, ""},
		"NoPlan":          {"its Subscription was deleted, with its plans", csvs{of("kettle", "east", "kettle.v1", "kettle.east")}, nil, "east/kettle.v1"},
		"NoPlanNoLabel":   {"the object is no component of its Operator", csvs{of("kettle", "north", "kettle.v1", "kettle.north")}, nil, ""},
		"NoPlanFailed":    {"it has no plan and does not run", csvs{failed}, nil, ""},
		"NoPlanSameHome":  {"the label may be that of the deleted version", csvs{of("kettle", "west", "kettle.v1", "kettle.west")}, nil, ""},
		"NoPlanOtherHome": {"its bundle brought the label of another namespace", csvs{of("kettle", "north", "kettle.v1", "kettle.west")}, nil, ""},
		"PlanFirst": {
			"a version whose plan applied it precedes one without a plan",
			csvs{of("kettle", "east", "kettle.v1", "kettle.east"), in("north")},
			plans{planned("north", "kettle.v1", made, 1)},
			"north/kettle.v1",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if heir := inheritanceOf(of("kettle", "west", "kettle.v2"), tc.others, tc.plans).heir(class); heir != nil {
				got = client.ObjectKeyFromObject(heir).String()
			}
			if got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
