package suite_test

import (
	"testing"
	"time"

	"github.com/onsi/gomega"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// homeless adds a node selector that no node matches, so that the installation does not end.
func homeless(csv *operatorsv1alpha1.ClusterServiceVersion) {
	csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.NodeSelector = map[string]string{
		"chandlery.dev/no-such-node": "true",
	}
}

// impatient sets a short progress deadline of the Deployment.
func impatient(csv *operatorsv1alpha1.ClusterServiceVersion) {
	csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.ProgressDeadlineSeconds = ptr.To[int32](1)
}

func TestWaitsUntilTheOperatorMayBeUpgraded(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	w.Create(w.group("own", w.Namespace), w.kettle("kettle.v1"))
	w.succeeds("kettle.v1")
	condition := &operatorsv2.OperatorCondition{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "kettle.v1"},
		Spec: operatorsv2.OperatorConditionSpec{Conditions: []metav1.Condition{{
			Type: operatorsv2.Upgradeable, Status: metav1.ConditionFalse, Reason: "Brewing", Message: "the water is hot",
			LastTransitionTime: metav1.Now(),
		}}},
	}
	w.Create(condition, w.kettle("kettle.v2", replaces("kettle.v1")))

	csv := w.reaches("kettle.v2", operatorsv1alpha1.CSVPhasePending, operatorsv1alpha1.CSVReasonOperatorConditionNotUpgradeable)
	w.Expect(csv.Status.Message).To(gomega.And(gomega.HavePrefix("operator is not upgradeable: "), gomega.ContainSubstring("the water is hot")))
	w.Consistently(func() operatorsv1alpha1.ClusterServiceVersionPhase { return w.csv("kettle.v1").Status.Phase }).
		WithTimeout(2*time.Second).Should(gomega.Equal(operatorsv1alpha1.CSVPhaseSucceeded), "the version that runs is no longer looked after")

	w.Eventually(func() error {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(condition), condition); err != nil {
			return err
		}
		condition.Spec.Overrides = []metav1.Condition{{
			Type: operatorsv2.Upgradeable, Status: metav1.ConditionTrue, Reason: "Admin", Message: "go on", LastTransitionTime: metav1.Now(),
		}}
		return w.Update(t.Context(), condition)
	}).Should(gomega.Succeed())
	w.succeeds("kettle.v2")
	w.EventuallyGone(w.kettle("kettle.v1"))
}

func TestFailedVersionIsReplacedWhereThatIsAllowed(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	group := w.group("own", w.Namespace)
	w.Create(group, w.kettle("kettle.v1", homeless, impatient))
	w.reaches("kettle.v1", operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVReasonInstallCheckFailed)
	w.Create(w.kettle("kettle.v2", replaces("kettle.v1")))
	waiting := w.reaches("kettle.v2", operatorsv1alpha1.CSVPhasePending, operatorsv1alpha1.CSVReasonRequirementsMet)
	w.Expect(waiting.Status.Message).To(gomega.ContainSubstring("spec.upgradeStrategy: TechPreviewUnsafeFailForward on OperatorGroup own"))

	w.Eventually(func() error {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(group), group); err != nil {
			return err
		}
		group.Spec.UpgradeStrategy = operatorsv1.UpgradeStrategyUnsafeFailForward
		return w.Update(t.Context(), group)
	}).Should(gomega.Succeed())
	w.succeeds("kettle.v2")
	w.EventuallyGone(w.kettle("kettle.v1"))
}

func TestAVersionThatCannotRunGivesWayToOneThatCan(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	w.Create(w.group("own", w.Namespace), w.kettle("kettle.v1", owns("gone.outlived.example.com")))
	w.reaches("kettle.v1", operatorsv1alpha1.CSVPhasePending, operatorsv1alpha1.CSVReasonRequirementsNotMet)
	w.Create(w.kettle("kettle.v2", replaces("kettle.v1")))
	w.succeeds("kettle.v2")
	w.EventuallyGone(w.kettle("kettle.v1"))
}

// TestReturnsToAnOlderVersion installs an older version again to replace the newer one, which
// replaced it before. The cycle ends with the younger object.
func TestReturnsToAnOlderVersion(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	w.Create(w.group("own", w.Namespace), w.kettle("kettle.v2", replaces("kettle.v1"), image("example.com/kettle:2")))
	first := w.succeeds("kettle.v2")
	// The API stores creation times in whole seconds, by which the younger object is determined.
	w.Eventually(func() bool { return time.Since(first.CreationTimestamp.Time) > 2*time.Second }).Should(gomega.BeTrue())

	w.Create(w.kettle("kettle.v1", replaces("kettle.v2"), image("example.com/kettle:1")))

	w.succeeds("kettle.v1")
	w.EventuallyGone(w.kettle("kettle.v2"))
}

func TestInstallsWithoutTheReplacedVersion(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	w.Create(w.group("own", w.Namespace), w.kettle("kettle.v2", replaces("kettle.v1")))
	csv := w.succeeds("kettle.v2")
	var said []string
	for _, c := range csv.Status.Conditions {
		said = append(said, c.Message)
	}
	w.Expect(said).To(gomega.ContainElement(
		"all requirements found, attempting install"))
}
