package opcondition_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/opcondition"
)

// generation is the generation of each OperatorCondition of the tests.
const generation = 3

func noon() time.Time { return time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC) }

func condition(kind string, status metav1.ConditionStatus, observed int64) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: "Boiling", Message: "the kettle is on", ObservedGeneration: observed, LastTransitionTime: metav1.NewTime(noon())}
}

func at(c metav1.Condition, when time.Time) metav1.Condition {
	c.LastTransitionTime = metav1.NewTime(when)
	return c
}

func of(spec operatorsv2.OperatorConditionSpec, status ...metav1.Condition) *operatorsv2.OperatorCondition {
	return &operatorsv2.OperatorCondition{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: "kettle.v1", Generation: generation},
		Spec:       spec, Status: operatorsv2.OperatorConditionStatus{Conditions: status},
	}
}

func TestConditions(t *testing.T) {
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	list := func(conditions ...metav1.Condition) []metav1.Condition { return conditions }
	for name, tt := range map[string]struct {
		spec   operatorsv2.OperatorConditionSpec
		status []metav1.Condition
		marked string
		want   []metav1.Condition
	}{
		"nothing": {},
		"a report is copied, as of now": {
			spec: operatorsv2.OperatorConditionSpec{Conditions: list(condition("Upgradeable", no, 1))},
			want: list(condition("Upgradeable", no, generation)),
		},
		"a newer report takes the place of the copy": {
			spec:   operatorsv2.OperatorConditionSpec{Conditions: list(condition("Upgradeable", yes, 0))},
			status: list(condition("Upgradeable", no, 2)),
			want:   list(condition("Upgradeable", yes, generation)),
		},
		"an override wins": {
			spec: operatorsv2.OperatorConditionSpec{
				Conditions: list(condition("Upgradeable", no, 0), condition("Hot", no, 0)), Overrides: list(condition("Upgradeable", yes, 0)),
			},
			want: list(condition("Upgradeable", yes, generation), condition("Hot", no, generation)),
		},
		"an override that does not say since when": {
			spec: operatorsv2.OperatorConditionSpec{
				Conditions: list(condition("Upgradeable", no, 0)), Overrides: list(at(condition("Upgradeable", yes, 0), time.Time{})),
			},
			status: list(condition("Upgradeable", no, 2)),
			want:   list(at(condition("Upgradeable", yes, generation), noon().Add(time.Hour))),
		},
		"an override that is shown": {
			spec: operatorsv2.OperatorConditionSpec{
				Conditions: list(condition("Upgradeable", no, 0)), Overrides: list(at(condition("Upgradeable", yes, 0), time.Time{})),
			},
			status: list(at(condition("Upgradeable", yes, 2), noon().Add(time.Minute))),
			want:   list(at(condition("Upgradeable", yes, generation), noon().Add(time.Minute))),
		},
		"an override of what nobody reports shows nothing": {
			spec: operatorsv2.OperatorConditionSpec{Overrides: list(condition("Upgradeable", yes, 0))},
		},
		"the last of two counts": {
			spec: operatorsv2.OperatorConditionSpec{Conditions: list(condition("Hot", no, 0), condition("Upgradeable", no, 0), condition("Hot", unknown, 0))},
			want: list(condition("Upgradeable", no, generation), condition("Hot", unknown, generation)),
		},
		"a copy goes with its original":     {status: list(condition("Upgradeable", no, 2)), marked: "Hot,Upgradeable"},
		"a report for an earlier one stays": {status: list(condition("Upgradeable", no, 2)), want: list(condition("Upgradeable", no, 2))},
		"a report for a later one stays":    {status: list(condition("Upgradeable", no, 4)), marked: "Upgradeable", want: list(condition("Upgradeable", no, 4))},
		"a report after the original was removed": {
			status: list(condition("Upgradeable", no, generation)), marked: "Upgradeable", want: list(condition("Upgradeable", no, generation)),
		},
		"what an operator wrote itself stays":   {status: list(condition("Upgradeable", no, 0)), want: list(condition("Upgradeable", no, 0))},
		"so does what it says of this very one": {status: list(condition("Hot", no, generation)), want: list(condition("Hot", no, generation))},
		"and it is not written over by an override": {
			spec:   operatorsv2.OperatorConditionSpec{Overrides: list(condition("Upgradeable", yes, 0))},
			status: list(condition("Upgradeable", no, 0)),
			want:   list(condition("Upgradeable", no, 0)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := of(tt.spec, tt.status...)
			c.Annotations = map[string]string{api.AnnotationShownConditions: tt.marked}
			got := opcondition.Conditions(c, noon().Add(time.Hour))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			c.Status.Conditions = got
			if diff := cmp.Diff(got, opcondition.Conditions(c, noon().Add(2*time.Hour))); diff != "" {
				t.Errorf("a second look changes them (-first +second):\n%s", diff)
			}
		})
	}
}

func TestUpgradeable(t *testing.T) {
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	spec := func(reported, override metav1.ConditionStatus) operatorsv2.OperatorConditionSpec {
		var s operatorsv2.OperatorConditionSpec
		if reported != "" {
			s.Conditions = []metav1.Condition{condition("Upgradeable", reported, 0)}
		}
		if override != "" {
			s.Overrides = []metav1.Condition{condition("Hot", no, 0), condition("Upgradeable", override, 0)}
		}
		return s
	}
	marked := func(c *operatorsv2.OperatorCondition) *operatorsv2.OperatorCondition {
		c.Annotations = map[string]string{api.AnnotationShownConditions: "Upgradeable"}
		return c
	}
	const (
		refuses  = "the operator is not upgradeable: the kettle is on"
		outdated = `the operatorcondition status "Upgradeable"="%s" is outdated`
	)
	for name, tt := range map[string]struct {
		condition *operatorsv2.OperatorCondition
		want      opcondition.Cause
		says      string
	}{
		"no OperatorCondition":                      {condition: nil},
		"J1 nothing reported":                       {condition: of(spec("", ""))},
		"another condition":                         {condition: of(spec("", ""), condition("Hot", no, 0))},
		"J2 True of the present generation":         {condition: of(spec("", ""), condition("Upgradeable", yes, 3))},
		"Unknown of the present generation":         {condition: of(spec("", ""), condition("Upgradeable", unknown, 3))},
		"J3 False of the present generation":        {of(spec("", ""), condition("Upgradeable", no, 3)), opcondition.Reported, refuses},
		"J4 True of an earlier generation":          {of(spec("", ""), condition("Upgradeable", yes, 2)), opcondition.Outdated, fmt.Sprintf(outdated, yes)},
		"J5 True of a later generation":             {of(spec("", ""), condition("Upgradeable", yes, 4)), opcondition.Outdated, fmt.Sprintf(outdated, yes)},
		"J6 True of no generation":                  {of(spec("", ""), condition("Upgradeable", yes, 0)), opcondition.Outdated, fmt.Sprintf(outdated, yes)},
		"J7 False of an earlier generation":         {of(spec("", ""), condition("Upgradeable", no, 2)), opcondition.Outdated, fmt.Sprintf(outdated, no)},
		"J9 J3 overridden":                          {condition: of(spec("", yes), condition("Upgradeable", no, 3))},
		"J9 J4 overridden":                          {condition: of(spec("", yes), condition("Upgradeable", yes, 2))},
		"J9 J5 overridden":                          {condition: of(spec("", yes), condition("Upgradeable", yes, 4))},
		"J9 J6 overridden":                          {condition: of(spec("", yes), condition("Upgradeable", yes, 0))},
		"J9 J7 overridden":                          {condition: of(spec("", yes), condition("Upgradeable", no, 2))},
		"J10 an override says False":                {of(spec("", no), condition("Upgradeable", yes, 3)), opcondition.Overridden, refuses},
		"J10 an override says Unknown":              {of(spec("", unknown), condition("Upgradeable", yes, 3)), opcondition.Overridden, refuses},
		"J11 True in the spec, not yet shown":       {condition: of(spec(yes, ""))},
		"J12 True in the spec, False in the status": {condition: of(spec(yes, ""), condition("Upgradeable", no, 2))},
		"False in the spec":                         {of(spec(no, "")), opcondition.Reported, refuses},
		"False in the spec, True in the status":     {of(spec(no, ""), condition("Upgradeable", yes, 3)), opcondition.Reported, refuses},
		"Unknown in the spec":                       {condition: of(spec(unknown, ""))},
		"J17 a copy whose original was removed":     {condition: marked(of(spec("", ""), condition("Upgradeable", no, 2)))},
	} {
		t.Run(name, func(t *testing.T) {
			got, message := opcondition.Upgradeable(tt.condition)
			if got != tt.want || message != tt.says {
				t.Errorf("got %q, message %q; want %q, %q", got, message, tt.want, tt.says)
			}
		})
	}
}

// TestShown checks which types the annotation names.
func TestShown(t *testing.T) {
	reports := operatorsv2.OperatorConditionSpec{Conditions: []metav1.Condition{
		condition("Upgradeable", metav1.ConditionTrue, 0), condition("Hot", metav1.ConditionTrue, 0), condition("Hot", metav1.ConditionFalse, 0),
	}}
	for name, tt := range map[string]struct {
		spec   operatorsv2.OperatorConditionSpec
		marked string
		status []metav1.Condition
		want   string
	}{
		"nothing":                           {},
		"what is reported":                  {spec: reports, want: "Hot,Upgradeable"},
		"a copy that is still shown":        {marked: "Hot,Upgradeable", status: []metav1.Condition{condition("Hot", metav1.ConditionTrue, 2)}, want: "Hot"},
		"what the operator wrote itself":    {status: []metav1.Condition{condition("Hot", metav1.ConditionTrue, 2)}},
		"an own report after a copy":        {marked: "Hot", status: []metav1.Condition{condition("Hot", metav1.ConditionTrue, generation)}},
		"nothing of what was shown is left": {marked: "Hot,Upgradeable"},
	} {
		t.Run(name, func(t *testing.T) {
			c := of(tt.spec, tt.status...)
			c.Annotations = map[string]string{api.AnnotationShownConditions: tt.marked}
			if got := opcondition.Shown(c); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
