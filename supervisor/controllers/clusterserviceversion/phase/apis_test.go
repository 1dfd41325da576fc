package phase

import (
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// requiring returns a version that requires PodMetrics of another operator and Deployments of the
// API server.
func requiring(phase operatorsv1alpha1.ClusterServiceVersionPhase) *operatorsv1alpha1.ClusterServiceVersion {
	csv := good(phase, "").CSV
	csv.Spec.NativeAPIs = []metav1.GroupVersionKind{{Group: "apps", Version: "v1", Kind: "Deployment"}}
	csv.Spec.APIServiceDefinitions.Required = []operatorsv1alpha1.APIServiceDescription{{Group: "metrics.k8s.io", Version: "v1beta1", Kind: "PodMetrics"}}
	return csv
}

func TestLooksAgainAtAPIsThatItNeeds(t *testing.T) {
	o := good(succeeded, "InstallSucceeded", certificates)
	if got := Next(o).After; got != time.Hour {
		t.Errorf("without such APIs: after %s", got)
	}
	o.CSV.Spec = requiring(succeeded).Spec
	o.CSV.Labels = Labels(o.CSV, &o.Groups[0])
	if got := Next(o).After; got != time.Minute {
		t.Errorf("with such APIs: after %s", got)
	}
}
