// Package opcondition evaluates an OperatorCondition: which conditions its status must show, and whether the
// operator may be upgraded.
//
// It is pure. The controller that writes the status and the one that blocks an upgrade thus use the same rules
// and need not wait for each other.
package opcondition

import (
	"slices"
	"strings"
	"time"

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
)

// Conditions returns the conditions that the status must show.
//
// Conditions from spec.conditions are shown with the current generation. If spec.overrides has one of the same
// type, that one is shown instead. Other conditions in the status are the operator's own and remain, outdated
// or not, except copies whose original was removed.
//
// An override need not have a time of transition, and the status must. This is the time at which it was first
// shown, or now if it is not shown yet.
func Conditions(c *operatorsv2.OperatorCondition, now time.Time) []metav1.Condition {
	var out []metav1.Condition
	for i := range c.Spec.Conditions {
		one := c.Spec.Conditions[i]
		if override := last(c.Spec.Overrides, one.Type); override != nil {
			one = *override
		}
		one.ObservedGeneration = c.Generation
		if one.LastTransitionTime.IsZero() {
			one.LastTransitionTime = since(c.Status.Conditions, &one, now)
		}
		// The last condition of a type takes precedence.
		out = append(slices.DeleteFunc(out, func(o metav1.Condition) bool { return o.Type == one.Type }), one)
	}
	shown := shownTypes(c)
	for i := range c.Status.Conditions {
		one := c.Status.Conditions[i]
		if last(c.Spec.Conditions, one.Type) == nil && !removedCopy(c, shown, &one) {
			out = append(out, one)
		}
	}
	return out
}

// Shown returns the value that api.AnnotationShownConditions must have before the status is written. It lists
// the types in spec.conditions, and those whose copy has yet to be removed. It is empty if the annotation is
// not needed.
func Shown(c *operatorsv2.OperatorCondition) string {
	var types []string
	for i := range c.Spec.Conditions {
		types = append(types, c.Spec.Conditions[i].Type)
	}
	shown := shownTypes(c)
	for i := range c.Status.Conditions {
		if removedCopy(c, shown, &c.Status.Conditions[i]) {
			types = append(types, c.Status.Conditions[i].Type)
		}
	}
	slices.Sort(types)
	return strings.Join(slices.Compact(types), ",")
}

func shownTypes(c *operatorsv2.OperatorCondition) []string {
	return strings.Split(c.Annotations[api.AnnotationShownConditions], ",")
}

// removedCopy reports whether a condition in the status is a copy, by the supervisor, of one that
// spec.conditions no longer has. The removal changed the generation, so a report with the current generation is
// the operator's own.
func removedCopy(c *operatorsv2.OperatorCondition, shown []string, one *metav1.Condition) bool {
	return one.ObservedGeneration < c.Generation && slices.Contains(shown, one.Type) && last(c.Spec.Conditions, one.Type) == nil
}

// Cause is the reason why an upgrade is blocked.
type Cause string

// The causes.
const (
	// Allowed means that the upgrade is not blocked.
	Allowed Cause = ""
	// Overridden is an entry of spec.overrides.
	Overridden Cause = "Overridden"
	// Reported is the operator's report that it is not upgradeable.
	Reported Cause = "Reported"
	// Outdated is a report of another generation of the OperatorCondition.
	Outdated Cause = "Outdated"
)

// Upgradeable returns why the operator of an OperatorCondition must not be replaced by another version of
// itself, in the words of OLM. An operator without an OperatorCondition, nil, may be replaced.
//
// An override takes precedence over any report, and only True allows the upgrade. A report counts only with the
// current generation. Any other one is outdated and blocks the upgrade, whatever its status. A current report
// blocks it only with False.
func Upgradeable(condition *operatorsv2.OperatorCondition) (cause Cause, message string) {
	if condition == nil {
		return Allowed, ""
	}
	if override := last(condition.Spec.Overrides, operatorsv2.Upgradeable); override != nil {
		if override.Status == metav1.ConditionTrue {
			return Allowed, ""
		}
		return Overridden, notUpgradeable(override)
	}
	reported := apimeta.FindStatusCondition(Conditions(condition, time.Time{}), operatorsv2.Upgradeable)
	switch {
	case reported == nil:
		return Allowed, ""
	case reported.ObservedGeneration != condition.Generation:
		return Outdated, olmtext.ReportOutdated(reported.Type, string(reported.Status))
	case reported.Status == metav1.ConditionFalse:
		return Reported, notUpgradeable(reported)
	}
	return Allowed, ""
}

func notUpgradeable(c *metav1.Condition) string {
	return olmtext.ReportedNotUpgradeable(c.Message)
}

// since returns the time since which a condition has its status, according to the shown conditions.
func since(shown []metav1.Condition, one *metav1.Condition, now time.Time) metav1.Time {
	if before := last(shown, one.Type); before != nil && before.Status == one.Status && !before.LastTransitionTime.IsZero() {
		return before.LastTransitionTime
	}
	return metav1.NewTime(now)
}

// last returns the last condition of a type; nil if there is none.
func last(conditions []metav1.Condition, kind string) *metav1.Condition {
	for i := range slices.Backward(conditions) {
		if conditions[i].Type == kind {
			return &conditions[i]
		}
	}
	return nil
}
