package clusterserviceversion

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func going(csv *operatorsv1alpha1.ClusterServiceVersion) *operatorsv1alpha1.ClusterServiceVersion {
	csv.DeletionTimestamp = &metav1.Time{Time: noon()}
	return csv
}

// TestKin checks the versions whose objects a version may take over.
func TestKin(t *testing.T) {
	a, b := version("a", "", replacing), version("b", "a", succeeded)
	cases := map[string]struct {
		reason string
		others csvs
		want   []string
	}{
		"Chain":          {"who is replaced and who replaces", csvs{a, b, version("c", "b", pending)}, []string{"a", "c"}},
		"FailedUpgrade":  {"a replacement that goes gives back", csvs{a, b, going(version("c", "b", broken))}, []string{"a", "c"}},
		"AllOfIt":        {"one after the other too", csvs{a, b, going(version("c", "b", broken)), going(version("d", "c", pending))}, []string{"a", "c", "d"}},
		"OfTheOlder":     {"one that was to replace the same", csvs{a, b, going(version("other", "a", broken))}, []string{"a", "other"}},
		"Stranger":       {"who goes and has nothing to do with it is none", csvs{a, b, going(version("stranger", "", succeeded))}, []string{"a"}},
		"ReplacesAbsent": {"nor who replaces what is not there", csvs{a, b, going(version("stranger", "never", succeeded))}, []string{"a"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, csv := range tc.others.kin(b) {
				got = append(got, csv.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nkin(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTakesBackFromAVersionThatGoes deletes the new version after a failed upgrade: the old one
// gets its Deployment back without an interruption.
func TestTakesBackFromAVersionThatGoes(t *testing.T) {
	old, next := version("kettle.v1", "", replacing), going(version("kettle.v2", "kettle.v1", installs))
	old.UID, next.UID = types.UID("1"), types.UID("2")
	taken, err := desiredDeployments(next, settings{}, func(*appsv1.Deployment) {})
	if err != nil {
		t.Fatal(err)
	}
	o := good(replacing, "BeingReplaced")
	o.CSV.ObjectMeta = old.ObjectMeta
	o.CSV.Annotations = groupAnnotations(&o.Groups[0])
	all := csvs{o.CSV, next}
	var path []operatorsv1alpha1.ClusterServiceVersionPhase
	for range 3 {
		wanted, err := desiredDeployments(o.CSV, settings{}, func(*appsv1.Deployment) {})
		if err != nil {
			t.Fatal(err)
		}
		o.Replacement = replacementOf(o.CSV, all)
		o.Components = components(o.CSV, wanted, map[string]*appsv1.Deployment{"kettle": taken[0]}, all, "")
		move := Next(o)
		follow(&o, move)
		path = append(path, move.Phase)
	}
	if diff := cmp.Diff([]operatorsv1alpha1.ClusterServiceVersionPhase{pending, ready, installs}, path); diff != "" {
		t.Errorf("-want, +got:\n%s%s", diff, o.CSV.Status.Message)
	}
}
