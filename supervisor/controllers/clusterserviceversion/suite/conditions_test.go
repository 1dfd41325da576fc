package suite_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/controllers/operatorcondition"
	"github.com/chandlery/chandlery/test/testenv"
)

const (
	reportTrue, reportFalse = metav1.ConditionTrue, metav1.ConditionFalse
	// refused is the message about an operator that reports, or is declared, not upgradeable.
	refused = "operator is not upgradeable: the operator is not upgradeable: the water is hot"
)

func outdated(status metav1.ConditionStatus) string {
	return fmt.Sprintf("operator is not upgradeable: the operatorcondition status \"Upgradeable\"=%q is outdated", status)
}

// kettleCondition holds the steps of a test for the OperatorCondition of kettle.v1.
type kettleCondition struct{ *world }

func (k kettleCondition) get(g gomega.Gomega) *operatorsv2.OperatorCondition {
	condition := &operatorsv2.OperatorCondition{}
	g.Expect(k.Get(k.T.Context(), client.ObjectKey{Namespace: k.Namespace, Name: "kettle.v1"}, condition)).To(gomega.Succeed())
	return condition
}

func upgradeable(status metav1.ConditionStatus, observed int64) metav1.Condition {
	return metav1.Condition{
		Type: operatorsv2.Upgradeable, Status: status, Reason: "Brewing", Message: "the water is hot",
		ObservedGeneration: observed, LastTransitionTime: metav1.NewTime(time.Now().Truncate(time.Second)),
	}
}

// patch writes a field of the spec or the status.
func (k kettleCondition) patch(part, field string, conditions ...metav1.Condition) {
	k.T.Helper()
	text, err := json.Marshal(map[string]any{part: map[string]any{field: conditions}})
	if err != nil {
		k.T.Fatal(err)
	}
	patch := client.RawPatch(types.MergePatchType, text)
	condition := k.get(k.WithT)
	if part == "status" {
		k.Expect(k.Status().Patch(k.T.Context(), condition, patch)).To(gomega.Succeed())
		return
	}
	k.Expect(k.Patch(k.T.Context(), condition, patch)).To(gomega.Succeed())
}

// ready waits for the OperatorCondition, and raises its generation to 3 by overrides of another
// type.
func (k kettleCondition) ready() {
	k.T.Helper()
	k.Eventually(func(g gomega.Gomega) { k.get(g) }).Should(gomega.Succeed())
	for i := range 2 {
		other := upgradeable(reportTrue, 0)
		other.Type, other.Message = "Hot", fmt.Sprint("override ", i)
		k.patch("spec", "overrides", other)
	}
	k.Expect(k.get(k.WithT).Generation).To(gomega.BeEquivalentTo(3))
}

// reports writes to the status, as operators without spec.conditions do.
func (k kettleCondition) reports(status metav1.ConditionStatus, observed int64) func() {
	return func() { k.patch("status", "conditions", upgradeable(status, observed)) }
}

func (k kettleCondition) declares(field string, status metav1.ConditionStatus) func() {
	return func() { k.patch("spec", field, upgradeable(status, 0)) }
}

func (k kettleCondition) shows(status metav1.ConditionStatus) {
	k.T.Helper()
	k.Eventually(func(g gomega.Gomega) {
		condition := k.get(g)
		shown := apimeta.FindStatusCondition(condition.Status.Conditions, operatorsv2.Upgradeable)
		g.Expect(shown).NotTo(gomega.BeNil())
		g.Expect(shown.Status).To(gomega.Equal(status))
		g.Expect(shown.ObservedGeneration).To(gomega.Equal(condition.Generation))
	}).Should(gomega.Succeed())
}

// isHeld waits until the upgrade is held with a message. The running version stays.
func (k kettleCondition) isHeld(message string) {
	k.T.Helper()
	csv := k.reaches("kettle.v2", operatorsv1alpha1.CSVPhasePending, operatorsv1alpha1.CSVReasonOperatorConditionNotUpgradeable)
	k.Expect(csv.Status.Message).To(gomega.Equal(message))
	k.Expect(k.csv("kettle.v1").Status.Phase).To(gomega.Equal(operatorsv1alpha1.CSVPhaseSucceeded))
}

// isAtRest checks that the upgrade and the OperatorCondition are not written.
func (k kettleCondition) isAtRest() {
	k.T.Helper()
	versions := func() [3]string {
		return [3]string{k.csv("kettle.v1").ResourceVersion, k.csv("kettle.v2").ResourceVersion, k.get(k.WithT).ResourceVersion}
	}
	var before [3]string
	// The status after the change is written within settlingTime.
	k.Eventually(func() bool {
		last := before
		before = versions()
		return last == before
	}).WithPolling(2 * time.Second).Should(gomega.BeTrue())
	k.Consistently(versions).WithTimeout(3 * time.Second).Should(gomega.Equal(before))
}

// steps are actions in their order.
type steps []func()

// heldUpgrade returns what is done before an upgrade, the message of the version while it is held, and what is done after
// that. The message is empty if the upgrade is not held.
type heldUpgrade func(kettleCondition) (before steps, held string, after steps)

// TestOperatorConditionHoldsTheUpgrade runs the reports of an operator, group J of the
// compatibility scenarios.
func TestOperatorConditionHoldsTheUpgrade(t *testing.T) {
	supervisor := newWorld(t)
	supervisor.superviseAt(nil, func(mgr ctrl.Manager) error {
		return operatorcondition.Setup(mgr, operatorcondition.Options{})
	})
	for name, upgrade := range testenv.Sample(t, map[string]heldUpgrade{
		"J1 no report":     func(kettleCondition) (steps, string, steps) { return nil, "", nil },
		"J2 True, present": func(k kettleCondition) (steps, string, steps) { return steps{k.reports(reportTrue, 3)}, "", nil },
		"J3 J9 False, present": func(k kettleCondition) (steps, string, steps) {
			return steps{k.reports(reportFalse, 3)}, refused, steps{k.declares("overrides", reportTrue)}
		},
		"J4 J8 J14 J16 True, earlier": func(k kettleCondition) (steps, string, steps) {
			return steps{k.reports(reportTrue, 2)}, outdated(reportTrue), steps{k.isAtRest, k.annotate, k.isAtRest, k.reports(reportTrue, 3)}
		},
		"J5 J9 True, later": func(k kettleCondition) (steps, string, steps) {
			return steps{k.reports(reportTrue, 4)}, outdated(reportTrue), steps{k.declares("overrides", reportTrue)}
		},
		"J6 J9 True, without a generation": func(k kettleCondition) (steps, string, steps) {
			return steps{k.reports(reportTrue, 0)}, outdated(reportTrue), steps{k.declares("overrides", reportTrue)}
		},
		"J7 J9 False, earlier": func(k kettleCondition) (steps, string, steps) {
			return steps{k.reports(reportFalse, 2)}, outdated(reportFalse), steps{k.declares("overrides", reportTrue)}
		},
		"J10 an override says False": func(k kettleCondition) (steps, string, steps) {
			return steps{k.reports(reportTrue, 3), k.declares("overrides", reportFalse)}, refused, steps{k.declares("overrides", reportTrue)}
		},
		"J10 an override says Unknown": func(k kettleCondition) (steps, string, steps) {
			return steps{k.reports(reportTrue, 3), k.declares("overrides", metav1.ConditionUnknown)}, refused, steps{k.declares("overrides", reportTrue)}
		},
		"J11 True in the spec": func(k kettleCondition) (steps, string, steps) {
			return steps{k.declares("conditions", reportTrue), func() { k.shows(reportTrue) }}, "", nil
		},
		"J12 True in the spec, False in the status": func(k kettleCondition) (steps, string, steps) {
			return steps{k.reports(reportFalse, 2), k.declares("conditions", reportTrue), func() { k.shows(reportTrue) }}, "", nil
		},
		"J13 an override of another type": func(k kettleCondition) (steps, string, steps) {
			other := func() {
				k.patch("spec", "overrides", metav1.Condition{Type: "Cold", Status: reportTrue, Reason: "Known", Message: "it is"})
			}
			return steps{k.declares("conditions", reportFalse), other}, refused, steps{other, k.isAtRest, k.declares("overrides", reportTrue)}
		},
		"J15 the spec of the version that runs stays": func(k kettleCondition) (steps, string, steps) {
			same := func() { k.Expect(k.get(k.WithT).Generation).To(gomega.BeEquivalentTo(3)) }
			return steps{k.reports(reportFalse, 3)}, refused, steps{k.isAtRest, same, k.reports(reportTrue, 3)}
		},
		"J15 the version that runs is edited": func(k kettleCondition) (steps, string, steps) {
			same := func() { k.Expect(k.get(k.WithT).Generation).To(gomega.BeEquivalentTo(3)) }
			return steps{k.reports(reportFalse, 3)}, refused, steps{k.runsAs("other"), same, k.reports(reportTrue, 3)}
		},
		"J17 a report that is removed": func(k kettleCondition) (steps, string, steps) {
			gone := func() { k.patch("spec", "conditions") }
			return steps{k.declares("conditions", reportFalse), func() { k.shows(reportFalse) }}, refused, steps{gone}
		},
	}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kettleCondition{newWorld(t)}.upgrades(upgrade)
		})
	}
}

// upgrades replaces version 1 by version 2, and does the steps before and after.
func (k kettleCondition) upgrades(upgrade heldUpgrade) {
	k.T.Helper()
	before, held, after := upgrade(k)
	k.Create(k.group("own", k.Namespace), k.kettle("kettle.v1"))
	k.succeeds("kettle.v1")
	k.ready()
	for _, step := range before {
		step()
	}
	k.Create(k.kettle("kettle.v2", replaces("kettle.v1")))
	if held != "" {
		k.isHeld(held)
	}
	for _, step := range after {
		step()
	}
	csv := k.succeeds("kettle.v2")
	for _, c := range csv.Status.Conditions {
		if held == "" && c.Reason == operatorsv1alpha1.CSVReasonOperatorConditionNotUpgradeable {
			k.T.Errorf("the upgrade was held: %s", c.Message)
		}
	}
	k.EventuallyGone(k.kettle("kettle.v1"))
}

// annotate makes a change that does not raise the generation.
func (k kettleCondition) annotate() {
	k.T.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/seen":"yes"}}}`))
	k.Expect(k.Patch(k.T.Context(), k.get(k.WithT), patch)).To(gomega.Succeed())
}

// runsAs edits the running version, and waits until its new account may report conditions.
func (k kettleCondition) runsAs(account string) func() {
	return func() {
		k.T.Helper()
		k.Create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: account}})
		csv := k.kettle("kettle.v1")
		k.change(csv, func() {
			csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.ServiceAccountName = account
		})
		binding := &rbacv1.RoleBinding{}
		k.Eventually(func(g gomega.Gomega) {
			g.Expect(k.Get(k.T.Context(), client.ObjectKeyFromObject(csv), binding)).To(gomega.Succeed())
			g.Expect(binding.Subjects).To(gomega.ConsistOf(gomega.HaveField("Name", account)))
		}).Should(gomega.Succeed())
	}
}
