package clusterserviceversion

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/versions"
)

func TestOutdatedDefinition(t *testing.T) {
	planned := func(phase operatorsv1alpha1.ClusterServiceVersionPhase) *operatorsv1alpha1.ClusterServiceVersion {
		csv := kettle()
		csv.Spec.CustomResourceDefinitions.Owned = []operatorsv1alpha1.CRDDescription{{Name: "cups.example.com", Kind: "Cup"}}
		csv.Labels = map[string]string{"chandlery.dev/catalog-namespace": "bar", "chandlery.dev/catalog": "shop"}
		csv.Status.Phase = phase
		return csv
	}
	crd := func(names ...string) *apiextensionsv1.CustomResourceDefinition {
		out := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "cups.example.com", Annotations: map[string]string{}}}
		for _, name := range names {
			out.Annotations[api.PrefixInstalledAlongside+name] = name
		}
		return out
	}
	byHand := planned(pending)
	byHand.Labels = nil
	requires := planned(pending)
	requires.Spec.CustomResourceDefinitions.Required = requires.Spec.CustomResourceDefinitions.Owned
	requires.Spec.CustomResourceDefinitions.Owned = nil
	cases := map[string]struct {
		reason string
		csv    *operatorsv1alpha1.ClusterServiceVersion
		crd    *apiextensionsv1.CustomResourceDefinition
		want   string
	}{
		"NotYet":    {"its plan has yet to apply the definition", planned(pending), crd("kitchen/kettle.v0", "bar/kettle.v1"), "bar/kettle.v1, kettle.v0"},
		"Applied":   {"and has", planned(pending), crd("kitchen/kettle.v0", "kitchen/kettle.v1"), ""},
		"ByHand":    {"no plan is to come", byHand, crd("kitchen/kettle.v0"), ""},
		"Unmarked":  {"nobody says whose the definition is", planned(pending), crd(), ""},
		"Installed": {"what is installed is not stopped", planned(succeeded), crd("kitchen/kettle.v0"), ""},
		"Required":  {"another brings the definition", requires, crd("kitchen/kettle.v0"), ""},
		"Absent":    {"there is none", planned(none), nil, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := outdated(tc.csv, tc.crd); got != tc.want {
				t.Errorf("%s\noutdated(...) = %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestOwnedAPIServices(t *testing.T) {
	csv := kettle()
	csv.Spec.APIServiceDefinitions.Owned = []operatorsv1alpha1.APIServiceDescription{
		{Group: "tea.example.com", Version: "v1", Kind: "Brew", DeploymentName: "kettle"},
		{Group: "milk.example.com", Version: "v1", Kind: "Jug", DeploymentName: "cow"},
	}
	want := []operatorsv1alpha1.RequirementStatus{
		{
			Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService", Name: "v1.milk.example.com", Status: "DeploymentNotFound",
		},
		{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService", Name: "v1.tea.example.com", Status: "DeploymentFound"},
	}
	if diff := cmp.Diff(want, ownedAPIServices(csv)); diff != "" {
		t.Errorf("ownedAPIServices(...): -want, +got:\n%s", diff)
	}
	csv.Spec.APIServiceDefinitions.Owned = csv.Spec.APIServiceDefinitions.Owned[:1]
	if got := requirements(csv, cluster{}); !got.Met {
		t.Errorf("requirements(...) are not met: %+v", got.Statuses)
	}
}

// TestRequiredAPIServices has the uuid of an APIService that is present, as OLM shows it, and of no other.
func TestRequiredAPIServices(t *testing.T) {
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	csv.Spec.APIServiceDefinitions.Required = []operatorsv1alpha1.APIServiceDescription{{Group: "milk.example.com", Version: "v1", Kind: "Churn"}}
	gvk := schema.GroupVersionKind{Group: "milk.example.com", Version: "v1", Kind: "Churn"}
	for _, tt := range []struct {
		found  servedAPI
		status operatorsv1alpha1.StatusReason
		uuid   string
	}{
		{servedAPI{served: true, uid: "u"}, operatorsv1alpha1.RequirementStatusReasonPresent, "u"},
		{servedAPI{unavailable: true, uid: "u"}, operatorsv1alpha1.RequirementStatusReasonNotAvailable, ""},
		{servedAPI{}, operatorsv1alpha1.RequirementStatusReasonNotPresent, ""},
	} {
		got := apiServices(csv, cluster{APIs: apis{gvk: tt.found}})[0]
		if got.Status != tt.status || got.UUID != tt.uuid {
			t.Errorf("status %s and uuid %q, want %s and %q", got.Status, got.UUID, tt.status, tt.uuid)
		}
	}
}

// TestNativeAPIName checks that the name of a native API is its version and group, and its kind the kind.
func TestNativeAPIName(t *testing.T) {
	for name, tc := range map[string]struct {
		native metav1.GroupVersionKind
		want   string
	}{
		"Group": {metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Nope"}, "Nope v1.apps: Native API does not exist"},
		"Core":  {metav1.GroupVersionKind{Version: "v1", Kind: "Nope"}, "Nope v1.: Native API does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			csv := kettle()
			csv.Spec.NativeAPIs = []metav1.GroupVersionKind{tc.native}
			s := requirements(csv, cluster{}).Statuses[0]
			if got := s.Kind + " " + s.Name + ": " + s.Message; got != tc.want {
				t.Errorf("the requirement is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestCRDConflict(t *testing.T) {
	owner := func(name, replaces string, created time.Duration) *operatorsv1alpha1.ClusterServiceVersion {
		csv := version(name, replaces, succeeded)
		csv.UID = "uid-" + csv.UID + "-" + "x"
		csv.CreationTimestamp = metav1.NewTime(noon().Add(created))
		csv.Spec.CustomResourceDefinitions.Owned = []operatorsv1alpha1.CRDDescription{{Name: "cups.example.com"}}
		return csv
	}
	pot, mug, next := owner("pot", "", 0), owner("mug", "", time.Hour), owner("pot2", "pot", 2*time.Hour)
	pot.UID, mug.UID, next.UID = "1", "2", "3"
	others := versions.List{mug, pot, next}
	if got, want := crdConflict(mug, others), "spec.customresourcedefinitions.owned names cups.example.com, which csv pot owns already; remove one of the two operators"; got != want {
		t.Errorf("crdConflict(newcomer) = %q, want %q", got, want)
	}
	if got := crdConflict(pot, others); got != "" {
		t.Errorf("crdConflict(first owner) = %q, want none", got)
	}
	if got := crdConflict(next, versions.List{pot, next}); got != "" {
		t.Errorf("crdConflict(successor) = %q, want none", got)
	}
}
