package clusterserviceversion

import (
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

const (
	none      operatorsv1alpha1.ClusterServiceVersionPhase = operatorsv1alpha1.CSVPhaseNone
	pending                                                = operatorsv1alpha1.CSVPhasePending
	ready                                                  = operatorsv1alpha1.CSVPhaseInstallReady
	installs                                               = operatorsv1alpha1.CSVPhaseInstalling
	succeeded                                              = operatorsv1alpha1.CSVPhaseSucceeded
	broken                                                 = operatorsv1alpha1.CSVPhaseFailed
	replacing                                              = operatorsv1alpha1.CSVPhaseReplacing
	deleting                                               = operatorsv1alpha1.CSVPhaseDeleting
	unknown                                                = operatorsv1alpha1.CSVPhaseUnknown
)

// kettle returns an operator with one Deployment that supports its own namespace.
func kettle() *operatorsv1alpha1.ClusterServiceVersion {
	csv := fixtures.Kettle("kitchen", "kettle.v1", operatorsv1alpha1.InstallModeTypeOwnNamespace)
	csv.UID = "uid-1"
	csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Label = map[string]string{"tier": "hot"}
	return csv
}

// noon is the time of every observation unless a test moves it.
func noon() time.Time { return time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC) }

// good returns the observation of an operator without problems, in a phase that it has been in for
// a minute.
func good(p operatorsv1alpha1.ClusterServiceVersionPhase, reason operatorsv1alpha1.ConditionReason, change ...func(*phase.Input)) phase.Input {
	since := metav1.NewTime(noon().Add(-time.Minute))
	updated := metav1.NewTime(noon().Add(-time.Hour))
	csv := kettle()
	csv.Status.Phase, csv.Status.Reason, csv.Status.Message, csv.Status.LastTransitionTime = p, reason, "as before", &since
	o := phase.Input{
		CSV: csv,
		Now: noon(),
		Groups: []operatorsv1.OperatorGroup{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: "own"},
			Status:     operatorsv1.OperatorGroupStatus{Namespaces: []string{"kitchen"}, LastUpdated: &updated},
		}},
		Requirements: phase.Requirements{Met: true},
	}
	csv.Annotations, csv.Labels = phase.GroupAnnotations(&o.Groups[0]), phase.Labels(csv, &o.Groups[0])
	for _, c := range change {
		c(&o)
	}
	return o
}

func version(name, replaces string, p operatorsv1alpha1.ClusterServiceVersionPhase) *operatorsv1alpha1.ClusterServiceVersion {
	csv := kettle()
	csv.Name, csv.UID = name, "uid-"+csv.UID
	csv.Spec.Replaces, csv.Status.Phase = replaces, p
	return csv
}

// hooked returns the kettle with a webhook of each type.
func hooked() *operatorsv1alpha1.ClusterServiceVersion {
	csv := kettle()
	csv.Spec.InstallModes[0].Type = operatorsv1alpha1.InstallModeTypeAllNamespaces
	fixtures.AddWebhooks(csv)
	return csv
}

// memory returns a client of objects in memory.
func memory(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	s := fixtures.Scheme(t)
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	return fake.NewClientBuilder().WithScheme(s).WithIndex(csv, indexState, stateKeys).WithIndex(csv, indexCRD, crdKeys).WithObjects(objects...).Build()
}
