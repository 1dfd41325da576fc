package cleanup

import (
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

const (
	succeeded = operatorsv1alpha1.CSVPhaseSucceeded
	broken    = operatorsv1alpha1.CSVPhaseFailed
	replacing = operatorsv1alpha1.CSVPhaseReplacing
	deleting  = operatorsv1alpha1.CSVPhaseDeleting
	installs  = operatorsv1alpha1.CSVPhaseInstalling
)

// noon is the time of every pass unless a test moves it.
func noon() time.Time { return time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC) }

// kettle returns an operator with one Deployment that supports its own namespace.
func kettle() *operatorsv1alpha1.ClusterServiceVersion {
	csv := fixtures.Kettle("kitchen", "kettle.v1", operatorsv1alpha1.InstallModeTypeOwnNamespace)
	csv.UID = "uid-1"
	return csv
}

// version returns a version that replaces another.
func version(name, replaces string, phase operatorsv1alpha1.ClusterServiceVersionPhase) *operatorsv1alpha1.ClusterServiceVersion {
	csv := kettle()
	csv.Name, csv.UID = name, "uid-"+csv.UID
	csv.Spec.Replaces, csv.Status.Phase = replaces, phase
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
	return fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).Build()
}
