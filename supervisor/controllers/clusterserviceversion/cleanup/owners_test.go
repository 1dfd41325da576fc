package cleanup

import (
	"fmt"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/versions"
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

func TestRemainingOwners(t *testing.T) {
	class := sharedClass()
	planned := func(namespace, version string, status operatorsv1alpha1.StepStatus, generation int) operatorsv1alpha1.InstallPlan {
		return planOfClass(namespace, version, class.Name, status, generation)
	}
	in := func(namespace string) *operatorsv1alpha1.ClusterServiceVersion {
		return versionOf("kettle", namespace, "kettle.v1")
	}
	leaving := in("east")
	leaving.DeletionTimestamp = &metav1.Time{Time: noon()}
	failed := versionOf("kettle", "east", "kettle.v1", "kettle.east")
	failed.Status.Phase = operatorsv1alpha1.CSVPhaseFailed
	const made, found, not = operatorsv1alpha1.StepStatusCreated, operatorsv1alpha1.StepStatusPresent, operatorsv1alpha1.StepStatusUnknown
	type plans = []operatorsv1alpha1.InstallPlan
	checkRemainingOwners(t, map[string]ownersCase{
		"Alone":    {"no other version brought it", nil, plans{planned("west", "kettle.v2", made, 1)}, ""},
		"Other":    {"another version brought another object", versions.List{in("east")}, plans{planOfClass("east", "kettle.v1", "pot", made, 1)}, ""},
		"Shared":   {"another version brought it too", versions.List{in("east")}, plans{planned("west", "kettle.v2", made, 1), planned("east", "kettle.v1", made, 1)}, "east/kettle.v1"},
		"First":    {"of several namespaces, the first counts", versions.List{in("north"), in("east")}, plans{planned("north", "kettle.v1", made, 1), planned("east", "kettle.v1", made, 1)}, "east/kettle.v1"},
		"Present":  {"its plan found it", versions.List{in("east")}, plans{planned("east", "kettle.v1", found, 1)}, "east/kettle.v1"},
		"Refused":  {"its plan did not apply it", versions.List{in("east")}, plans{planned("east", "kettle.v1", not, 1)}, ""},
		"Rightful": {"the plan of the first did not apply it", versions.List{in("aaa"), in("east")}, plans{planned("aaa", "kettle.v1", not, 1), planned("east", "kettle.v1", made, 1)}, "east/kettle.v1"},
		"RefusedAgain": {
			"an older plan applied it, with rights that are gone",
			versions.List{in("east")},
			plans{planned("east", "kettle.v1", not, 2), planned("east", "kettle.v1", made, 1)},
			"",
		},
		"Predecessor":     {"the version before it remains", versions.List{in("west")}, plans{planned("west", "kettle.v1", made, 1)}, "west/kettle.v1"},
		"Package":         {"another package has the same name of a version", versions.List{versionOf("pot", "east", "kettle.v1")}, plans{planned("east", "kettle.v1", made, 1)}, ""},
		"NoPackage":       {"its package is unknown", versions.List{versionOf("", "east", "kettle.v1")}, plans{planned("east", "kettle.v1", made, 1)}, ""},
		"Leaving":         {"it is being deleted too", versions.List{leaving}, plans{planned("east", "kettle.v1", made, 1)}, ""},
		"Gone":            {"the version of an old plan does not exist", versions.List{in("east")}, plans{planned("east", "kettle.v0", made, 1)}, ""},
		"NoPlan":          {"its Subscription was deleted, with its plans", versions.List{versionOf("kettle", "east", "kettle.v1", "kettle.east")}, nil, "east/kettle.v1"},
		"NoPlanNoLabel":   {"the object is no component of its Operator", versions.List{versionOf("kettle", "north", "kettle.v1", "kettle.north")}, nil, ""},
		"NoPlanFailed":    {"it has no plan and does not run", versions.List{failed}, nil, ""},
		"NoPlanSameHome":  {"the label may be that of the deleted version", versions.List{versionOf("kettle", "west", "kettle.v1", "kettle.west")}, nil, ""},
		"NoPlanOtherHome": {"its bundle brought the label of another namespace", versions.List{versionOf("kettle", "north", "kettle.v1", "kettle.west")}, nil, ""},
		"PlanFirst": {
			"a version whose plan applied it precedes one without a plan",
			versions.List{versionOf("kettle", "east", "kettle.v1", "kettle.east"), in("north")},
			plans{planned("north", "kettle.v1", made, 1)},
			"north/kettle.v1",
		},
	})
}

// TestRemainingOwnersDuringUpgrade has several versions of one package in a namespace.
func TestRemainingOwnersDuringUpgrade(t *testing.T) {
	east := func(version, replaced string, after time.Duration) *operatorsv1alpha1.ClusterServiceVersion {
		csv := versionOf("kettle", "east", version)
		csv.Spec.Replaces, csv.CreationTimestamp = replaced, metav1.NewTime(noon().Add(after))
		return csv
	}
	planned := func(version string, status operatorsv1alpha1.StepStatus, generation int) operatorsv1alpha1.InstallPlan {
		return planOfClass("east", version, sharedClass().Name, status, generation)
	}
	const made, not = operatorsv1alpha1.StepStatusCreated, operatorsv1alpha1.StepStatusUnknown
	type plans = []operatorsv1alpha1.InstallPlan
	both := plans{planned("kettle.v1", made, 1), planned("kettle.v2", made, 2)}
	checkRemainingOwners(t, map[string]ownersCase{
		"Upgrade": {
			"the older version is about to be replaced by the younger",
			versions.List{east("kettle.v1", "", 0), east("kettle.v2", "", time.Minute)},
			both, "east/kettle.v2",
		},
		"Begins": {
			"the younger version did not apply it yet",
			versions.List{east("kettle.v1", "", 0), east("kettle.v2", "", time.Minute)},
			plans{planned("kettle.v1", made, 1), planned("kettle.v2", not, 2)},
			"east/kettle.v1",
		},
		"SameSecond": {
			"both were created in the same second",
			versions.List{east("kettle.v1", "", 0), east("kettle.v2", "kettle.v1", 0)},
			both, "east/kettle.v2",
		},
		"Chain": {
			"the last of the chain replaces all others",
			versions.List{east("kettle.v1", "", 0), east("kettle.v2", "kettle.v3", 0), east("kettle.v3", "kettle.v1", 0)},
			append(plans{planned("kettle.v3", made, 3)}, both...), "east/kettle.v2",
		},
		"Recreated": {
			"the replaced version was recreated later",
			versions.List{east("kettle.v1", "", time.Minute), east("kettle.v2", "kettle.v1", 0)},
			both, "east/kettle.v2",
		},
		"Circle": {
			"they replace each other, so that the younger counts",
			versions.List{east("kettle.v1", "kettle.v2", time.Minute), east("kettle.v2", "kettle.v1", 0)},
			both, "east/kettle.v1",
		},
	})
}

// ownersCase states which version takes over a PriorityClass.
type ownersCase struct {
	reason string
	others versions.List
	plans  []operatorsv1alpha1.InstallPlan
	// want is the namespace and name of the next owner; empty for none.
	want string
}

// checkRemainingOwners checks which version takes over a PriorityClass from version kettle.v2 in namespace
// west.
func checkRemainingOwners(t *testing.T, cases map[string]ownersCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if next := remainingOwnersOf(versionOf("kettle", "west", "kettle.v2"), tc.others, tc.plans).of(sharedClass()); next != nil {
				got = client.ObjectKeyFromObject(next).String()
			}
			if got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
