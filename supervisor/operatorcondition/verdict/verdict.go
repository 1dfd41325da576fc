// Package verdict says what an OperatorCondition comes to: which conditions hold, and
// whether the operator may be upgraded.
//
// It is pure, so that the controller that writes the status and the one that holds back
// an upgrade go by the same rules and need not wait for each other.
package verdict

import (
	"fmt"
	"slices"
	"time"

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Conditions are the conditions that hold, as the status is to show them.
//
// Those that the operator reports in spec.conditions are shown as being of the present
// generation; where spec.overrides has one of the same type, an administrator knows
// better, and that one is shown in its place. Operators of the time before spec.conditions
// write to the status itself: what they wrote stays theirs, overridden or not, since
// writing over it would begin a quarrel. A copy whose original has been taken back is of
// an earlier generation, and goes.
//
// An override need not say since when it holds, and the status must: that is since it is
// shown, and now where it is not yet.
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
		// The later of two of one type is the one that counts.
		out = append(slices.DeleteFunc(out, func(o metav1.Condition) bool { return o.Type == one.Type }), one)
	}
	for i := range c.Status.Conditions {
		one := c.Status.Conditions[i]
		outdated := one.ObservedGeneration != 0 && one.ObservedGeneration < c.Generation
		if !outdated && last(c.Spec.Conditions, one.Type) == nil {
			out = append(out, one)
		}
	}
	return out
}

// Upgradeable says whether the operator that an OperatorCondition speaks for may be
// replaced by another version of itself; message says why not and what to do about it. An
// operator that has none, nil, has nothing against it.
//
// An override decides, whatever the operator reports, and only True means yes. Of the
// operator's own reports only False means no.
func Upgradeable(condition *operatorsv2.OperatorCondition) (ok bool, message string) {
	if condition == nil {
		return true, ""
	}
	if override := last(condition.Spec.Overrides, operatorsv2.Upgradeable); override != nil {
		if override.Status == metav1.ConditionTrue {
			return true, ""
		}
		return false, refusal(condition, "spec.overrides", override) + "; change or remove that entry to go on"
	}
	reported := apimeta.FindStatusCondition(Conditions(condition, time.Time{}), operatorsv2.Upgradeable)
	if reported == nil || reported.Status != metav1.ConditionFalse {
		return true, ""
	}
	return false, refusal(condition, "the operator", reported) +
		"; to go on all the same, give its spec.overrides an entry of type Upgradeable with status True"
}

// refusal words a condition that holds an upgrade back.
func refusal(c *operatorsv2.OperatorCondition, who string, condition *metav1.Condition) string {
	said := fmt.Sprintf("OperatorCondition %s/%s: %s says %s=%s", c.Namespace, c.Name, who, condition.Type, condition.Status)
	if condition.Reason != "" {
		said += " (" + condition.Reason + ")"
	}
	if condition.Message != "" {
		said += ": " + condition.Message
	}
	return said
}

// since is when a condition came to hold, by what is shown.
func since(shown []metav1.Condition, one *metav1.Condition, now time.Time) metav1.Time {
	if before := last(shown, one.Type); before != nil && before.Status == one.Status && !before.LastTransitionTime.IsZero() {
		return before.LastTransitionTime
	}
	return metav1.NewTime(now)
}

// last is the last condition of a type; nil when there is none.
func last(conditions []metav1.Condition, kind string) *metav1.Condition {
	for i := range slices.Backward(conditions) {
		if conditions[i].Type == kind {
			return &conditions[i]
		}
	}
	return nil
}
