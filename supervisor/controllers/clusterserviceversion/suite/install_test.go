package suite_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

func TestInstallsOneDeployment(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	w.Create(w.group("own", w.Namespace), w.kettle("kettle.v1"))

	csv := w.succeeds("kettle.v1")

	want := []operatorsv1alpha1.ClusterServiceVersionPhase{
		operatorsv1alpha1.CSVPhasePending, operatorsv1alpha1.CSVPhaseInstallReady,
		operatorsv1alpha1.CSVPhaseInstalling, operatorsv1alpha1.CSVPhaseSucceeded,
	}
	if diff := cmp.Diff(want, phases(csv)); diff != "" {
		t.Errorf("phases (-want +got):\n%s", diff)
	}
	w.Expect(csv.Finalizers).To(gomega.ContainElement("operators.coreos.com/csv-cleanup"))
	w.Expect(csv.Annotations).To(gomega.HaveKeyWithValue("olm.targetNamespaces", w.Namespace))

	var d appsv1.Deployment
	w.Expect(w.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "kettle"}, &d)).To(gomega.Succeed())
	w.Expect(d.Labels).To(gomega.HaveKeyWithValue("olm.owner", "kettle.v1"))
	w.Expect(d.Spec.Template.Annotations).To(gomega.HaveKeyWithValue("olm.targetNamespaces", w.Namespace))
	w.Expect(d.OwnerReferences).To(gomega.HaveLen(1))
	wantEnv := []corev1.EnvVar{{Name: "HEAT", Value: "high"}, {Name: "OPERATOR_CONDITION_NAME", Value: "kettle.v1"}}
	if diff := cmp.Diff(wantEnv, d.Spec.Template.Spec.Containers[0].Env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	w.eventReasons("kettle.v1", "AllRequirementsMet", "InstallWaiting", "InstallSucceeded")
}

// eventReasons waits until the Events of an object have all these reasons.
func (w *world) eventReasons(name string, reasons ...string) {
	w.T.Helper()
	w.Eventually(func(g gomega.Gomega) {
		var list eventsv1.EventList
		g.Expect(w.List(w.T.Context(), &list, client.InNamespace(w.Namespace))).To(gomega.Succeed())
		var got []string
		for i := range list.Items {
			if list.Items[i].Regarding.Name == name {
				got = append(got, list.Items[i].Reason)
			}
		}
		for _, reason := range reasons {
			g.Expect(got).To(gomega.ContainElement(reason))
		}
	}).Should(gomega.Succeed())
}

func TestStaysQuietOnceInstalled(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	w.Create(w.group("own", w.Namespace), w.kettle("kettle.v1"))
	before := w.succeeds("kettle.v1")

	w.Consistently(func() string { return w.csv("kettle.v1").ResourceVersion }).
		WithTimeout(3 * time.Second).Should(gomega.Equal(before.ResourceVersion))
}

func TestWaitsForMissingCRD(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	crd := fixtures.CRD("waits.example.com", "Cup")
	w.Create(w.group("own", w.Namespace), w.kettle("kettle.v1", owns(crd.Name)))

	csv := w.reaches("kettle.v1", operatorsv1alpha1.CSVPhasePending, operatorsv1alpha1.CSVReasonRequirementsNotMet)
	w.Expect(csv.Status.RequirementStatus).To(gomega.HaveLen(1))
	w.Expect(csv.Status.RequirementStatus[0].Status).To(gomega.Equal(operatorsv1alpha1.RequirementStatusReasonNotPresent))
	before := csv.ResourceVersion
	w.Consistently(func() string { return w.csv("kettle.v1").ResourceVersion }).
		WithTimeout(2 * time.Second).Should(gomega.Equal(before))

	w.Create(crd)
	csv = w.succeeds("kettle.v1")
	w.Expect(csv.Status.RequirementStatus[0].Status).To(gomega.Equal(operatorsv1alpha1.RequirementStatusReasonPresent))
}

func TestWaitsForPermissions(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	w.Create(w.group("own", w.Namespace), w.kettle("kettle.v1", asks))
	w.reaches("kettle.v1", operatorsv1alpha1.CSVPhasePending, operatorsv1alpha1.CSVReasonRequirementsNotMet)

	sa, role, binding := w.permissions("kettle.v1-kettle-abc")
	w.Create(sa, role, binding)
	w.succeeds("kettle.v1")
}

func TestRefusesUnsupportedOperatorGroup(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	group := w.group("all")
	w.Create(group, w.kettle("kettle.v1", func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		csv.Spec.InstallModes[3].Supported = false
	}))
	csv := w.reaches("kettle.v1", operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVReasonUnsupportedOperatorGroup)
	w.Expect(csv.Status.Message).To(gomega.Equal("AllNamespaces InstallModeType not supported, cannot configure to watch all namespaces"))
	w.says(csv, "change spec.targetNamespaces of OperatorGroup all in namespace "+w.Namespace+" (without it all namespaces are selected): "+
		"this version supports OwnNamespace, SingleNamespace, MultiNamespace")

	group.Spec.TargetNamespaces = []string{w.Namespace}
	w.Eventually(func() error {
		var live operatorsv1.OperatorGroup
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(group), &live); err != nil {
			return err
		}
		live.Spec.TargetNamespaces = []string{w.Namespace}
		return w.Update(t.Context(), &live)
	}).Should(gomega.Succeed())
	w.succeeds("kettle.v1")
}

func TestSaysThatThereIsNoOrMoreThanOneOperatorGroup(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	w.Create(w.kettle("kettle.v1"))
	w.reaches("kettle.v1", operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVReasonNoOperatorGroup)

	one, two := w.group("one", w.Namespace), w.group("two", w.Namespace)
	w.Create(one, two)
	w.reaches("kettle.v1", operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVReasonTooManyOperatorGroups)
	w.Eventually(func(g gomega.Gomega) {
		g.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(one), one)).To(gomega.Succeed())
		g.Expect(one.Status.Conditions).To(gomega.HaveLen(1))
		g.Expect(one.Status.Conditions[0].Type).To(gomega.Equal("MultipleOperatorGroup"))
	}).Should(gomega.Succeed())

	w.Expect(w.Delete(t.Context(), two)).To(gomega.Succeed())
	w.succeeds("kettle.v1")
	w.Eventually(func(g gomega.Gomega) {
		g.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(one), one)).To(gomega.Succeed())
		g.Expect(one.Status.Conditions).To(gomega.BeEmpty())
	}).Should(gomega.Succeed())
}

func TestRefusesWebhooksOfOneName(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	w.Create(w.group("own", w.Namespace), w.kettle("kettle.v1", func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		webhook := operatorsv1alpha1.WebhookDescription{
			GenerateName: "check.example.com", Type: operatorsv1alpha1.ValidatingAdmissionWebhook,
			DeploymentName: "kettle", ContainerPort: 443, AdmissionReviewVersions: []string{"v1"}, SideEffects: noSideEffects(),
		}
		csv.Spec.WebhookDefinitions = []operatorsv1alpha1.WebhookDescription{webhook, webhook}
	}))
	csv := w.reaches("kettle.v1", operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVReasonInvalidWebhookDescription)
	w.Expect(csv.Status.Message).To(gomega.Equal("CSV contains repeated WebhookDescription name"))
	w.says(csv, "check.example.com")
	w.EventuallyGone(&appsv1.Deployment{ObjectMeta: w.kettle("x").ObjectMeta})
}

func TestHealsDeploymentDrift(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	w.Create(w.group("own", w.Namespace), w.kettle("kettle.v1"))
	w.succeeds("kettle.v1")
	var d appsv1.Deployment
	key := client.ObjectKey{Namespace: w.Namespace, Name: "kettle"}
	w.Expect(w.Get(t.Context(), key, &d)).To(gomega.Succeed())
	first := d.UID

	w.Expect(w.Delete(t.Context(), &d)).To(gomega.Succeed())

	w.Eventually(func(g gomega.Gomega) {
		var again appsv1.Deployment
		g.Expect(w.Get(t.Context(), key, &again)).To(gomega.Succeed())
		g.Expect(again.UID).NotTo(gomega.Equal(first))
	}).Should(gomega.Succeed())
	csv := w.succeeds("kettle.v1")
	var reasons []operatorsv1alpha1.ConditionReason
	for _, c := range csv.Status.Conditions {
		reasons = append(reasons, c.Reason)
	}
	w.Expect(slices.Contains(reasons, operatorsv1alpha1.CSVReasonComponentUnhealthy)).To(gomega.BeTrue(), "%v", reasons)
	w.Expect(slices.Contains(reasons, operatorsv1alpha1.CSVReasonNeedsReinstall)).To(gomega.BeTrue(), "%v", reasons)
}

func TestLeavesForeignDeploymentAlone(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	labels := map[string]string{"app": "somebody"}
	foreign := &appsv1.Deployment{Spec: w.kettle("x").Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec}
	foreign.Namespace, foreign.Name = w.Namespace, "kettle"
	foreign.Spec.Selector.MatchLabels, foreign.Spec.Template.Labels = labels, labels
	foreign.Spec.Template.Spec.Containers[0].Env = nil
	w.Create(foreign, w.group("own", w.Namespace), w.kettle("kettle.v1"))

	csv := w.reaches("kettle.v1", operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVReasonComponentFailed)
	w.Expect(csv.Status.Message).To(gomega.ContainSubstring(`deployment "kettle" exists and belongs to no ClusterServiceVersion`))
	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign)).To(gomega.Succeed())
	w.Expect(foreign.OwnerReferences).To(gomega.BeEmpty())
}
