package cleanup

import (
	"errors"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
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
	labels := map[string]string{"app": "kettle"}
	return &operatorsv1alpha1.ClusterServiceVersion{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: "kettle.v1", UID: "uid-1"},
		Spec: operatorsv1alpha1.ClusterServiceVersionSpec{
			InstallModes: []operatorsv1alpha1.InstallMode{{Type: operatorsv1alpha1.InstallModeTypeOwnNamespace, Supported: true}},
			InstallStrategy: operatorsv1alpha1.NamedInstallStrategy{
				StrategyName: operatorsv1alpha1.InstallStrategyNameDeployment,
				StrategySpec: operatorsv1alpha1.StrategyDetailsDeployment{
					DeploymentSpecs: []operatorsv1alpha1.StrategyDeploymentSpec{{
						Name: "kettle",
						Spec: appsv1.DeploymentSpec{
							Selector: &metav1.LabelSelector{MatchLabels: labels},
							Template: corev1.PodTemplateSpec{
								ObjectMeta: metav1.ObjectMeta{Labels: labels},
								Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "example.com/kettle:1"}}},
							},
						},
					}},
				},
			},
		},
	}
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
	csv.Spec.InstallModes = []operatorsv1alpha1.InstallMode{{Type: operatorsv1alpha1.InstallModeTypeAllNamespaces, Supported: true}}
	csv.Spec.CustomResourceDefinitions.Owned = []operatorsv1alpha1.CRDDescription{{Name: "cups.example.com", Version: "v1", Kind: "Cup"}}
	csv.Spec.WebhookDefinitions = []operatorsv1alpha1.WebhookDescription{
		{GenerateName: "vcup.example.com", Type: operatorsv1alpha1.ValidatingAdmissionWebhook, DeploymentName: "kettle"},
		{GenerateName: "mcup.example.com", Type: operatorsv1alpha1.MutatingAdmissionWebhook, DeploymentName: "kettle"},
		{GenerateName: "ccup.example.com", Type: operatorsv1alpha1.ConversionWebhook, DeploymentName: "kettle", ConversionCRDs: []string{"cups.example.com"}},
	}
	return csv
}

// memory returns a client of objects in memory.
func memory(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(apiextensionsv1.AddToScheme(s), operatorsv1alpha1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).Build()
}
