package webhook

import (
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
	"github.com/chandlery/chandlery/supervisor/webhook"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// noon is the time of every observation unless a test moves it.
func noon() time.Time { return time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC) }

// hooked returns an operator with a webhook of each type.
func hooked() *operatorsv1alpha1.ClusterServiceVersion {
	csv := fixtures.Kettle("kitchen", "kettle.v1", operatorsv1alpha1.InstallModeTypeAllNamespaces)
	csv.UID = "uid-1"
	fixtures.AddWebhooks(csv)
	return csv
}

// hookedState returns the state of a version in phase Succeeded with all certificates.
func hookedState(t *testing.T) *State {
	t.Helper()
	csv := hooked()
	csv.Status.Phase = operatorsv1alpha1.CSVPhaseSucceeded
	servers, err := webhook.Servers(csv)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := webhook.Issue(servers[0], csv.Namespace, noon())
	if err != nil {
		t.Fatal(err)
	}
	group := &operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: "own"},
		Status:     operatorsv1.OperatorGroupStatus{Namespaces: []string{"kitchen"}, LastUpdated: new(metav1.NewTime(noon().Add(-time.Hour)))},
	}
	s := newState(Version{CSV: csv, Group: group, Now: noon()}, servers, webhook.Scope{})
	s.owners = webhook.OwnerCheck{CSV: csv, Exists: func(types.NamespacedName) bool { return true }}
	s.certs.current["kettle"] = cert
	return s
}

// deployment returns a Deployment of a version with its certificates.
func deployment(s *State, name string) *appsv1.Deployment {
	csv := s.version.CSV
	d := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: csv.Namespace, Name: name, Labels: ownership.ManagedLabels(csv)},
		Spec:       *csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.DeepCopy(),
	}
	s.Mount(d)
	return d
}

// memory returns a client of objects in memory.
func memory(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	s := fixtures.Scheme(t)
	return fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).Build()
}

// inMemory returns an Observer and a Writer of objects in memory.
func inMemory(c client.Client) (*Observer, *Writer) {
	return New(Options{Client: c, Live: c, CRDs: c, Cache: c, Namespace: "supervisors"})
}
