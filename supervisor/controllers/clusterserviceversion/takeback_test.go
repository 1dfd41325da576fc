package clusterserviceversion

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/versions"
)

func going(csv *operatorsv1alpha1.ClusterServiceVersion) *operatorsv1alpha1.ClusterServiceVersion {
	csv.DeletionTimestamp = &metav1.Time{Time: noon()}
	return csv
}

// TestTakesBackFromAVersionThatGoes deletes the new version after a failed upgrade: the old one
// gets its Deployment back without an interruption.
func TestTakesBackFromAVersionThatGoes(t *testing.T) {
	old, next := version("kettle.v1", "", replacing), going(version("kettle.v2", "kettle.v1", installs))
	old.UID, next.UID = types.UID("1"), types.UID("2")
	taken, err := desiredDeployments(next, settings{}, func(*appsv1.Deployment) {}, podAnnotations)
	if err != nil {
		t.Fatal(err)
	}
	o := good(replacing, "BeingReplaced")
	o.CSV.ObjectMeta = old.ObjectMeta
	o.CSV.Annotations, o.CSV.Labels = phase.GroupAnnotations(&o.Groups[0]), phase.Labels(o.CSV, &o.Groups[0])
	all := versions.List{o.CSV, next}
	var path []operatorsv1alpha1.ClusterServiceVersionPhase
	for range 3 {
		wanted, err := desiredDeployments(o.CSV, settings{}, func(*appsv1.Deployment) {}, podAnnotations)
		if err != nil {
			t.Fatal(err)
		}
		o.Replacement = phase.ReplacementOf(o.CSV, all)
		o.Components = components(o.CSV, wanted, map[string]*appsv1.Deployment{"kettle": taken[0]}, all, "")
		move := phase.Next(o)
		o.CSV.Status = phase.Status(o.CSV.Status, move, o)
		o.Now = o.Now.Add(move.After)
		path = append(path, move.Phase)
	}
	if diff := cmp.Diff([]operatorsv1alpha1.ClusterServiceVersionPhase{pending, ready, installs}, path); diff != "" {
		t.Errorf("-want, +got:\n%s%s", diff, o.CSV.Status.Message)
	}
}
