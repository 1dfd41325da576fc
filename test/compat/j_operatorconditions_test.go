package compat_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/fakecatalog"
)

const (
	notUpgradeable = "operator is not upgradeable: the operator is not upgradeable: the bulb is hot"
	reportTrue     = metav1.ConditionTrue
	reportFalse    = metav1.ConditionFalse
)

func outdatedReport(status metav1.ConditionStatus) string {
	return fmt.Sprintf("operator is not upgradeable: the operatorcondition status \"Upgradeable\"=%q is outdated", status)
}

// upgradeCase is a case with a running version lamp.v1, whose OperatorCondition has generation 2 or more, and
// its update lamp.v2.
type upgradeCase struct {
	*compattest.Cluster

	t           *testing.T
	condition   *operatorsv2.OperatorCondition
	first, next *operatorsv1alpha1.ClusterServiceVersion
}

// shownSoon bounds how long an OperatorCondition needs to show what its spec declares.
func shownSoon() time.Duration { return compattest.Limit(2*time.Second, compattest.Patience) }

func newUpgradeCase(t *testing.T, c *compattest.Cluster) *upgradeCase {
	t.Helper()
	u := &upgradeCase{
		Cluster: c, t: t,
		condition: &operatorsv2.OperatorCondition{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "lamp.v1"}},
		first:     c.CSV("lamp.v1"),
		next:      c.CSV("lamp.v2", func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.Spec.Replaces = "lamp.v1" }),
	}
	c.Make(u.first)
	reaches(c, u.first, operatorsv1alpha1.CSVPhaseSucceeded, "")
	u.settle()
	return u
}

// settle waits for the OperatorCondition with its account, and raises its generation.
func (u *upgradeCase) settle() {
	u.t.Helper()
	u.Eventually(compattest.Patience, func() string {
		if left := u.Read(u.condition); left != "" {
			return left
		}
		if len(u.condition.Spec.ServiceAccounts) == 0 {
			return "the OperatorCondition has no accounts"
		}
		return ""
	})
	u.set("spec", "overrides", "Hot", reportTrue, 0)
}

// set writes a condition to a field of the spec or the status.
func (u *upgradeCase) set(part, field, kind string, status metav1.ConditionStatus, observed int64) {
	u.t.Helper()
	text := `{"` + part + `":{"` + field + `":` + u.Manifest([]metav1.Condition{{
		Type: kind, Status: status, Reason: "Shining", Message: "the bulb is hot", ObservedGeneration: observed,
		LastTransitionTime: metav1.NewTime(time.Now().Truncate(time.Second)),
	}}) + `}}`
	if part == "status" {
		mergeStatus(u.t, u.Cluster, u.condition, text)
	} else {
		mergePatch(u.t, u.Cluster, u.condition, text)
	}
}

// reports writes a report to the status. Its generation differs from the current one by delta.
func (u *upgradeCase) reports(status metav1.ConditionStatus, delta int64) {
	u.t.Helper()
	u.set("status", "conditions", operatorsv2.Upgradeable, status, u.condition.Generation+delta)
}

// declares writes a condition to a field of the spec.
func (u *upgradeCase) declares(field string, status metav1.ConditionStatus) {
	u.t.Helper()
	u.set("spec", field, operatorsv2.Upgradeable, status, 0)
}

// shows waits until the status has a condition for the current generation. An empty status stands for none.
func (u *upgradeCase) shows(status metav1.ConditionStatus) {
	u.t.Helper()
	u.Eventually(shownSoon(), func() string {
		if left := u.Read(u.condition); left != "" {
			return left
		}
		shown := apimeta.FindStatusCondition(u.condition.Status.Conditions, operatorsv2.Upgradeable)
		if shown == nil && status == "" || shown != nil && shown.Status == status && shown.ObservedGeneration == u.condition.Generation {
			return ""
		}
		return fmt.Sprintf("the status shows %v", shown)
	})
}

// held waits until the update is blocked with a message.
func (u *upgradeCase) held(message string) {
	u.t.Helper()
	u.Eventually(compattest.Patience, func() string {
		if left := u.Read(u.next); left != "" {
			return left
		}
		if s := u.next.Status; s.Phase != operatorsv1alpha1.CSVPhasePending || s.Reason != operatorsv1alpha1.CSVReasonOperatorConditionNotUpgradeable || s.Message != message {
			return fmt.Sprintf("phase %s, reason %s, message %q", s.Phase, s.Reason, s.Message)
		}
		return ""
	})
}

// stays checks that the update stays blocked with a message.
func (u *upgradeCase) stays(message string) {
	u.t.Helper()
	u.AtRest(restTime, u.condition, u.next)
	u.held(message)
}

// continuesWithin waits until the update is no longer blocked, at most until the limit, and then until it has succeeded.
func (u *upgradeCase) continuesWithin(limit time.Duration) {
	u.t.Helper()
	u.Eventually(limit, func() string {
		if left := u.Read(u.next); left != "" {
			return left
		}
		if u.next.Status.Reason == operatorsv1alpha1.CSVReasonOperatorConditionNotUpgradeable {
			return "the update is blocked: " + u.next.Status.Message
		}
		return ""
	})
	u.continues()
}

// continues waits until the update has succeeded.
func (u *upgradeCase) continues() {
	u.t.Helper()
	reaches(u.Cluster, u.next, operatorsv1alpha1.CSVPhaseSucceeded, "")
}

// keepsGeneration checks that the OperatorCondition is not written.
func (u *upgradeCase) keepsGeneration() {
	u.t.Helper()
	generation := u.condition.Generation
	u.AtRest(restTime, u.condition)
	if u.condition.Generation != generation {
		u.t.Errorf("generation %d, want %d", u.condition.Generation, generation)
	}
}

// allowed runs a case whose update is not blocked.
func allowed(t *testing.T, id string, before func(*upgradeCase)) {
	t.Helper()
	compattest.Check(t, id, func(t *testing.T, c *compattest.Cluster) {
		u := newUpgradeCase(t, c)
		before(u)
		u.Make(u.next)
		u.continues()
		for _, condition := range u.next.Status.Conditions {
			if condition.Reason == operatorsv1alpha1.CSVReasonOperatorConditionNotUpgradeable {
				t.Errorf("the upgrade was blocked: %s", condition.Message)
			}
		}
	})
}

// blocked runs a case whose update is blocked, until something happens. It stays blocked if nothing does.
func blocked(t *testing.T, id, message string, before, after func(*upgradeCase)) {
	t.Helper()
	compattest.Check(t, id, func(t *testing.T, c *compattest.Cluster) {
		u := newUpgradeCase(t, c)
		before(u)
		u.Make(u.next)
		u.held(message)
		if after == nil {
			u.stays(message)
		} else {
			after(u)
		}
	})
}

// reporting returns a function that writes a report to the status. Its generation differs from the current one by delta.
func reporting(status metav1.ConditionStatus, delta int64) func(*upgradeCase) {
	return func(u *upgradeCase) { u.reports(status, delta) }
}

// TestUpgradeable checks which reports and overrides block an upgrade.
func TestUpgradeable(t *testing.T) {
	t.Parallel()
	override := func(u *upgradeCase) {
		u.declares("overrides", reportTrue)
		u.continues()
	}
	allowed(t, "J1", func(*upgradeCase) {})
	allowed(t, "J2", reporting(reportTrue, 0))
	blocked(t, "J3", notUpgradeable, reporting(reportFalse, 0), nil)
	blocked(t, "J3-Current", notUpgradeable, reporting(reportFalse, 0), func(u *upgradeCase) {
		u.AtRest(restTime, u.first)
		if phase := u.first.Status.Phase; phase != operatorsv1alpha1.CSVPhaseSucceeded {
			u.t.Errorf("%s is %s: %s", u.first.Name, phase, u.first.Status.Message)
		}
	})
	blocked(t, "J4", outdatedReport(reportTrue), reporting(reportTrue, -1), nil)
	blocked(t, "J5", outdatedReport(reportTrue), reporting(reportTrue, 1), nil)
	unset := func(u *upgradeCase) { u.set("status", "conditions", operatorsv2.Upgradeable, reportTrue, 0) }
	blocked(t, "J6", outdatedReport(reportTrue), unset, nil)
	blocked(t, "J7", outdatedReport(reportFalse), reporting(reportFalse, -1), nil)
	blocked(t, "J8", outdatedReport(reportTrue), reporting(reportTrue, -1), func(u *upgradeCase) {
		u.reports(reportTrue, 0)
		u.continuesWithin(soon())
	})
	blocked(t, "J9-False", notUpgradeable, reporting(reportFalse, 0), override)
	blocked(t, "J9-Earlier", outdatedReport(reportTrue), reporting(reportTrue, -1), override)
	blocked(t, "J9-Later", outdatedReport(reportTrue), reporting(reportTrue, 1), override)
	blocked(t, "J9-None", outdatedReport(reportTrue), unset, override)
	blocked(t, "J9-FalseEarlier", outdatedReport(reportFalse), reporting(reportFalse, -1), override)
	for id, status := range map[string]metav1.ConditionStatus{"J10-False": reportFalse, "J10-Unknown": metav1.ConditionUnknown} {
		blocked(t, id, "operator is not upgradeable: the operator is not upgradeable: wait for the weekend", func(u *upgradeCase) {
			mergePatch(u.t, u.Cluster, u.condition, `{"spec":{"overrides":`+u.Manifest([]metav1.Condition{{
				Type: operatorsv2.Upgradeable, Status: status, Reason: "Waiting", Message: "wait for the weekend",
				LastTransitionTime: metav1.NewTime(time.Now().Truncate(time.Second)),
			}})+`}}`)
			u.reports(reportTrue, 0)
		}, nil)
	}
}

// TestDeclaredConditions checks conditions that the operator declares in the spec, and upgrades that stay blocked.
func TestDeclaredConditions(t *testing.T) {
	t.Parallel()
	allowed(t, "J11", func(u *upgradeCase) {
		u.declares("conditions", reportTrue)
		u.shows(reportTrue)
	})
	allowed(t, "J12", func(u *upgradeCase) {
		u.reports(reportFalse, -1)
		u.declares("conditions", reportTrue)
		u.shows(reportTrue)
	})
	blocked(t, "J13", notUpgradeable, func(u *upgradeCase) {
		u.declares("conditions", reportFalse)
		u.shows(reportFalse)
	}, func(u *upgradeCase) {
		u.set("spec", "overrides", "Cold", reportTrue, 0)
		u.shows(reportFalse)
		u.stays(notUpgradeable)
	})
	blocked(t, "J14", outdatedReport(reportTrue), reporting(reportTrue, -1), func(u *upgradeCase) {
		mergePatch(u.t, u.Cluster, u.condition, `{"metadata":{"annotations":{"compat.example/seen":"yes"}}}`)
		u.AtRest(restTime, u.condition, u.next)
	})
	blocked(t, "J15", notUpgradeable, reporting(reportFalse, 0), (*upgradeCase).keepsGeneration)
	blocked(t, "J15-Accounts", notUpgradeable, func(u *upgradeCase) {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: u.Namespace, Name: "shade"}}
		u.Make(account)
		u.next.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.ServiceAccountName = account.Name
		u.reports(reportFalse, 0)
	}, (*upgradeCase).keepsGeneration)
	compattest.Check(t, "J16", testHeldSubscription)
	blocked(t, "J17", notUpgradeable, func(u *upgradeCase) {
		u.declares("conditions", reportFalse)
		u.shows(reportFalse)
	}, func(u *upgradeCase) {
		mergePatch(u.t, u.Cluster, u.condition, `{"spec":{"conditions":[]}}`)
		u.shows("")
		u.continues()
	})
}

// testHeldSubscription has an update from a catalog that an outdated report blocks.
func testHeldSubscription(t *testing.T, c *compattest.Cluster) {
	one := c.CSV("lamp.v1")
	server := c.Catalog("shelf", fakecatalog.Simple("lamp", lampEntry(c, one, "1.0.0")))
	sub := c.Subscribe("shelf", "lamp", func(s *operatorsv1alpha1.Subscription) { s.Spec.Channel = "stable" })
	subscriptionStatus(c, sub, "lamp.v1", "lamp.v1", operatorsv1alpha1.SubscriptionStateAtLatest)
	u := &upgradeCase{
		Cluster: c, t: t,
		condition: &operatorsv2.OperatorCondition{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "lamp.v1"}},
		next:      c.CSV("lamp.v2", func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.Spec.Replaces = "lamp.v1" }),
	}
	u.settle()
	u.reports(reportTrue, -1)
	replaceContent(server, fakecatalog.Simple("lamp", lampEntry(c, one, "1.0.0"), lampEntry(c, u.next, "2.0.0")))
	u.held(outdatedReport(reportTrue))
	c.Eventually(compattest.Patience, func() string {
		if left := c.Read(sub); left != "" {
			return left
		}
		condition := sub.Status.GetCondition("NewerVersionHeld")
		if condition.Status != "True" || !strings.Contains(condition.Message, outdatedReport(reportTrue)) {
			return fmt.Sprintf("condition %v", condition)
		}
		// The health checks of docs/gitops.md recognize the blocked update by these fields.
		if sub.Status.State != operatorsv1alpha1.SubscriptionStateUpgradePending || sub.Status.InstalledCSV != "lamp.v1" ||
			condition.Reason != string(operatorsv1alpha1.CSVReasonOperatorConditionNotUpgradeable) {
			return "the status of the Subscription is " + c.Manifest(sub.Status)
		}
		return ""
	})
	c.AtRest(c.Rest(), sub, u.next, u.condition)
}
